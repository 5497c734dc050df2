"""One head for all pictures: random features of what the tower gives out, mapped linearly onto texts' vectors.

Idea: a regression on many random features of fixed ones separates what a regression on the features alone cannot, and
still is solved in closed form from sums. One map serves every domain; every picture moves with each update.

Formula: ``phi(x) = ReLU(N(x) P)`` with P fixed by a seed, its entries drawn from a normal distribution of variance 1/f;
a picture's vector is ``phi(x) W + b`` with length 1 in each space of the texts.
Source: McDonnell et al., *RanPAC*, NeurIPS 2023, section 4; ACIL's expansion (Zhuang et al., NeurIPS 2022) is the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.checked import Checked, Count, CountOrZero
from model_updates.encoder import Encoder
from model_updates.inserts import ENCODER, Insert, Owner, RunImages
from model_updates.pair_sets import PairSet, UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.domain_memory import even_sample
from model_updates.parts.ridge import nothing_readable, standard
from model_updates.prospect import Prospect
from model_updates.strategy import Family, Schedule, State, Strategy, UpdateContext


class RandomHead(Insert):
    """The head; strategies set its `weight` and `bias`."""

    kind = "random-head"
    tower = "image"
    runs_in_tower = False
    projection: Tensor  # (f, m) P; made again from the seed, never saved
    weight: Tensor  # (m, dim) W of all spaces, beside one another
    bias: Tensor  # (dim,) b

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        self.widths, self.shares = list(config["widths"]), list(config["shares"])
        trunk, width, dim = int(config["trunk"]), int(config["width"]), sum(self.widths)
        drawn = torch.randn(trunk, width, generator=torch.Generator().manual_seed(int(config["seed"])))
        self.register_buffer("projection", drawn / trunk**0.5, persistent=False)
        self.register_buffer("weight", torch.zeros(width, dim))
        self.register_buffer("bias", torch.zeros(dim))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a head of the right shapes; its numbers come from a strategy or from a file."""
        return cls(owner, config).to(next(model.parameters()).device)

    def expanded(self, trunk: Tensor) -> Tensor:
        """Returns random features (n, m) of trunk features (n, f)."""
        return torch.relu(standard(trunk) @ self.projection.to(trunk.device))

    def around_head(self, run: RunImages, trunk: Tensor) -> Tensor:
        spaces = torch.split(self.expanded(trunk) @ self.weight + self.bias, self.widths, dim=-1)
        return torch.cat(
            [share * normalize(own, dim=-1) for share, own in zip(self.shares, spaces, strict=True)], dim=-1
        )


@dataclass(frozen=True)
class RandomHeadOptions(Checked):
    """Options of strategies with one random head."""

    # random features; more separate better, and take their square in what is carried
    width: Count = 2000
    seed: CountOrZero = 0  # of the projection; another one is another encoder
    # so many pairs of what the encoder knows are learned with the first chunk, or the head would not know them
    base_pairs: CountOrZero = 2000


class OneHead(Strategy):
    """Solves one head for all pictures in closed form; nothing is trained, and no old pair is kept.

    A subclass keeps what its `learn` has added up.
    """

    family = Family.MODULES
    trains = "one linear head on random features, in closed form"
    overhead = "none"
    needs = frozenset({"text_features"})
    touches = frozenset({"image"})
    options: RandomHeadOptions
    Options: ClassVar[type[Any]] = RandomHeadOptions

    def __init__(self, options: RandomHeadOptions | None = None) -> None:
        super().__init__(options)
        self._kept: Mapping[str, Tensor] = {}

    @property
    def reads_pictures(self) -> bool:
        """Never: features are enough."""
        return False

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses captions that nobody can read yet."""
        return nothing_readable(prospect, self.name)

    def carry(self, state: State) -> None:
        self._kept = state.tensors

    def carried(self) -> State:
        return State(self._kept)

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns with the first chunk a sample of what the encoder knows, later nothing."""
        if self._kept:
            return ()
        chunk = {(pair.image_id, pair.text) for pair in context.pairs}
        known = [pair for pair in context.open_known() if (pair.image_id, pair.text) not in chunk]
        return even_sample(known, self.options.base_pairs)

    def before_update(self, context: UpdateContext) -> None:
        """Finds the encoder's head, or makes one that `take` puts there."""
        self._encoder = context.encoder
        self._head = random_head(context.encoder, self.options.width, self.options.seed)

    def take(self, data: UpdateData) -> None:
        """Receives the pairs and solves the head."""
        pairs = data.train.followed_by(data.memory) if len(data.memory) else data.train
        self._kept = self.learn(self._head, pairs, self._kept)
        if self._head not in self._encoder.inserts:
            self._encoder.inserts.append(self._head)
        self._encoder.forget_fingerprints()

    @abstractmethod
    def learn(self, head: RandomHead, pairs: PairSet, kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Sets the head's weight and bias by pairs and by what was kept, and returns what to keep."""

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns one epoch, of which nothing is trained."""
        return Schedule(epochs=1)


def random_head(encoder: Encoder, width: int, seed: int) -> RandomHead:
    """Returns the encoder's random head, a new one of zeros where it has none."""
    for insert in encoder.inserts:
        if isinstance(insert, RandomHead):
            return insert
    base = getattr(encoder.model, "image_head", None)
    widths, shares = getattr(base, "widths", (encoder.dim,)), getattr(base, "shares", (1.0,))
    config = {
        "trunk": encoder.trunk_dim,
        "width": width,
        "seed": seed,
        "widths": list(widths),
        "shares": list(shares),
    }
    return RandomHead.build(ENCODER, config, encoder.model).requires_grad_(False)
