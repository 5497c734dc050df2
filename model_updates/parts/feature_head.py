"""A domain's head on cached trunk features: what the encoder's own head gives, and what the domain adds to it.

``head(x) = b + |b| * W2 drop(gelu(W1 drop(layer_norm(x)) + c1))``, with b what the base route makes of the trunk
features x. The image tower is not run: a picture whose features are cached is not decoded again. W2 starts at zero, so
that a new head changes nothing.
"""

from collections.abc import Mapping
from typing import Any, Self

from torch import Tensor, nn
from torch.nn import functional

from model_updates.inserts import Insert, Owner, RunImages

HIDDEN = 512
DROPOUT = 0.5


class FeatureHead(Insert):
    """One hidden layer beside the encoder's own head; for encoders whose tower has one (`trunk_dim`)."""

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
