"""Replay with an old encoder as teacher: icarl, ucir, geodl and co2l, each with a loss of its own on old features.

The old features of the chunk and of the memory are cached: those of the encoder before the update.
"""

import math
from dataclasses import dataclass

from model_updates.checked import NotNegative
from model_updates.parts.replaying import MemoryOptions
from model_updates.parts.two_towers import TwoTowerOptions
from model_updates.strategy import UpdateContext


@dataclass(frozen=True)
class OldFeatureOptions(MemoryOptions, TwoTowerOptions):
    """Adds memory and teacher to the options of two towers.

    Attributes:
        weight: of the term that holds to the old features.
        from_scratch: the encoder of the first update knows nothing worth holding to yet.
    """

    weight: NotNegative = 1.0
    from_scratch: bool = False


def weight_of_old(
    options: OldFeatureOptions, context: UpdateContext, seen: int, *, follows_sizes: bool = False
) -> float | None:
    """Returns how much the old features count in an update; None where nothing is worth holding to yet.

    `seen` pairs were taught by earlier updates. With `follows_sizes` the weight grows with how much is old: by the root
    of old pairs over new ones (UCIR). What the base was trained on counts as a chunk like the first.
    """
    if options.from_scratch and context.update_number == 1 and not seen:
        return None
    ratio = seen / len(context.pairs) if seen and follows_sizes else 1.0
    return options.weight * math.sqrt(ratio)
