"""The adapter of a domain: low-rank deltas in the tower, or a head where the encoder has one on cached features."""

from collections.abc import Mapping
from typing import Any, Self

from torch import Tensor, nn
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.inserts import Insert, Owner, RunImages
from model_updates.parts.low_rank import LowRank

HIDDEN = 512
DROPOUT = 0.5


class FeatureHead(Insert):
    """What an encoder's own head on trunk features gives (`trunk_dim`), and what the domain adds to it.

    ``head(x) = b + |b| * W2 drop(gelu(W1 drop(layer_norm(x)) + c1))``, with b what the base route makes of the trunk
    features x. The image tower is not run: a picture whose features are cached is not decoded again. W2 starts at zero,
    so that a new head changes nothing.
    """

    kind = "feature-head"
    tower = "image"
    runs_in_tower = False

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        self.hidden = nn.Linear(int(config["trunk"]), int(config["hidden"]))
        self.added = nn.Linear(int(config["hidden"]), int(config["dim"]), bias=False)
        nn.init.zeros_(self.added.weight)
        self.dropout = nn.Dropout(float(config["dropout"]))

    @staticmethod
    def configuration(
        trunk: int, dim: int, *, hidden: int = HIDDEN, dropout: float = DROPOUT
    ) -> dict[str, Any]:
        """Returns the configuration of a new head."""
        return {"trunk": trunk, "dim": dim, "hidden": hidden, "dropout": dropout}

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a head whose hidden layer is drawn at random and adds nothing yet."""
        return cls(owner, config).to(next(model.parameters()).device)

    def around_head(self, run: RunImages, trunk: Tensor) -> Tensor:
        base = run(trunk)
        features = self.dropout(functional.layer_norm(trunk, trunk.shape[-1:]))
        added: Tensor = self.added(self.dropout(functional.gelu(self.hidden(features))))
        length: Tensor = base.norm(dim=-1, keepdim=True)
        return base + length * added

    def loosen(self) -> None:
        """Makes the head ready to train."""
        self.requires_grad_(True)

    def settle(self) -> None:
        """Ends training."""
        self.requires_grad_(False)


Adapter = FeatureHead | LowRank


def adapter_for(encoder: Encoder, owner: Owner, *, rank: int) -> Adapter:
    """Returns an owner's adapter, ready to train: the encoder's, or a new insert that changes nothing yet."""
    for insert in encoder.inserts:
        if insert.owner == owner and isinstance(insert, Adapter):
            insert.loosen()
            return insert
    model = encoder.model
    made: Adapter
    if maps_features(encoder):
        made = FeatureHead.build(owner, FeatureHead.configuration(encoder.trunk_dim, encoder.dim), model)
    else:
        made = LowRank.build(owner, LowRank.configuration(model, rank=rank, alpha=2 * rank), model)
    encoder.inserts.append(made)
    made.loosen()
    return made


def maps_features(encoder: Encoder) -> bool:
    """True when an encoder has a head on cached trunk features, so that a domain's own head needs no picture."""
    return hasattr(encoder.model, "image_head")
