"""Replay with an old encoder as teacher: icarl, ucir, geodl and co2l, each with a loss of its own on old features.

The old features of the chunk and of the memory are cached: those of the encoder before the update.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.parts.replaying import MemoryOptions, ReplayMemory
from model_updates.parts.two_towers import TwoTowerOptions
from model_updates.strategy import Part, UpdateContext


@dataclass(frozen=True)
class OldFeatureOptions(MemoryOptions, TwoTowerOptions):
    """Adds memory and teacher to the options of two towers."""

    weight: NotNegative = 1.0  # of the term that holds to the old features.
    from_scratch: bool = False  # the encoder of the first update knows nothing worth holding to yet.


class OldFeatures(Part):
    """How much the old features count in an update: nothing while nothing is worth holding to yet.

    With `follows_sizes` the weight grows with how much is old: by the root of old pairs over new ones (UCIR). What the
    base was trained on counts as a chunk like the first.
    """

    def __init__(
        self, options: OldFeatureOptions, kept: ReplayMemory, *, follows_sizes: bool = False
    ) -> None:
        self._options, self._kept, self._follows_sizes = options, kept, follows_sizes

    def before_update(self, context: UpdateContext) -> None:
        """Decides how much they count."""
        seen = self._kept.seen
        ratio = seen / len(context.pairs) if seen and self._follows_sizes else 1.0
        self._counts = bool(seen) or context.update_number > 1 or not self._options.from_scratch
        self._weight = self._options.weight * math.sqrt(ratio)

    def term(self, distance: Callable[[], Tensor]) -> Tensor | None:
        """Returns the weighted distance to them, where they count."""
        return self._weight * distance() if self._counts else None
