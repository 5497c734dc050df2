"""Families of strategies: what several have in common, so that a list of many can be read."""

from enum import Enum


class Family(Enum):
    """Where a strategy stands in a list; the order here is the order there.

    Attributes:
        title: above its strategies.
        common: what its strategies have in common, in a sentence.
    """

    BOUNDS = ("Bounds", "What the others are measured against: nothing protected, or everything at once.")
    LANGUAGES = ("Languages", "The text side alone learns; the image tower stays bit-identical.")
    HELD_WEIGHTS = ("Weights held back", "Weights that mattered before cost something to move.")
    DISTILLATION = (
        "An older encoder as teacher",
        "What an older encoder says of a batch is to be said again.",
    )
    MEMORY = ("Old pairs replayed", "Pairs of earlier chunks are kept and trained on again.")
    MERGING = ("Weights averaged", "Trained as ever; what is released lies between older and newer weights.")
    MODULES = ("Prompts and adapters", "The towers stay as they are, or nearly; small modules in them learn.")
    OURS = ("Our own", "What is new gets modules of its own, so that what is known cannot change.")

    def __init__(self, title: str, common: str) -> None:
        self.title = title
        self.common = common
