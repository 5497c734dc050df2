"""Replay with an old encoder as teacher: icarl, ucir, geodl and co2l, each with a loss of its own on old features.

The old features of the chunk and of the memory are cached: those of the encoder before the update.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from model_updates.errors import BadStrategyOption
from model_updates.pairs import Batch
from model_updates.parts.distillation import Distilled
from model_updates.parts.replaying import MemoryOptions, Replaying
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import UpdateContext


@dataclass(frozen=True)
class OldFeatureOptions(MemoryOptions, TwoTowerOptions):
    """Adds memory and teacher to the options of two towers.

    Attributes:
        weight: of the term that holds to the old features.
        from_scratch: the encoder of the first update knows nothing worth holding to yet.
    """

    weight: float = 1.0
    from_scratch: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weight < 0:
            raise BadStrategyOption(f"weight is not negative, got {self.weight}")


class OldFeatures(Replaying, Distilled):
    """Base of the replaying strategies that compare features with what they were.

    Attributes:
        follows_sizes: the weight grows with how much is old: by the root of old pairs over new ones (UCIR). What the
            base was trained on counts as a chunk like the first.
    """

    follows_sizes: ClassVar[bool] = False
    options: OldFeatureOptions

    @abstractmethod
    def kept_close(self, new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        """Returns the term, not weighted yet, of raw image and text features, new and old; (b, dim) each."""

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train, and decides how much the old features count."""
        super().before_update(context)
        first = context.update_number == 1 and not self._seen
        self._holds = not (self.options.from_scratch and first)
        ratio = self._seen / len(context.pairs) if self._seen else 1.0
        self._weight = self.options.weight * (math.sqrt(ratio) if self.follows_sizes else 1.0)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term, and the distillation where there is something to hold to."""
        return super().terms(batch) if self._holds else TwoTowers.terms(self, batch)

    def distillation(self, new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor], batch: Batch) -> Tensor:
        """Returns the weighted term."""
        return self._weight * self.kept_close(new, old, batch)
