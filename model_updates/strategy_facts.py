"""What a strategy says of itself, as plain values that can be read without loading it.

A strategy is a class that trains, and loading one loads torch. Menus, lists and a server read instead what its class
said when `make docs` ran last: `assets/strategies.json`, which a test compares with the classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

WRITTEN = "assets/strategies.json"


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


class Replay(Enum):
    """How the pairs of a strategy's memory reach its batches."""

    NONE = "none"
    """They do not; `take` hands them over and the strategy does what it likes."""
    BESIDE = "beside"
    """Every batch of the chunk is followed by as many pairs drawn from the memory (experience replay)."""
    JOINED = "joined"
    """They are part of the epoch, like pairs of the chunk."""


@dataclass(frozen=True)
class StrategyFacts:
    """What a strategy with its default options says of itself; each field is as `model_updates.strategy` has it."""

    name: str
    family: str  # the title of its family
    summary: str
    paper: str
    trains: str
    keeps: str
    embeds_again: str  # whose pictures get other vectors
    language_at_query: bool
    overhead: str
    moves_pictures: bool
    reads_pictures: bool
    replay: str  # how pairs of its memory reach its batches, in a few words
    needs: list[str]  # what its batches hold beside features
    options: Mapping[str, Any]  # defaults by name
    meanings: Mapping[str, str]  # what each option means, by its name

    @property
    def query_needs(self) -> str:
        """What a query must bring beside its text."""
        return "its language" if self.language_at_query else "nothing"


@cache
def written_facts() -> Mapping[str, StrategyFacts]:
    """Returns what Perennial's own strategies say, by name, in the order of their table."""
    text = files("model_updates").joinpath(WRITTEN).read_text(encoding="utf-8")
    return {one["name"]: StrategyFacts(**one) for one in json.loads(text)}


def by_family(said: Iterable[StrategyFacts]) -> list[tuple[Family, list[StrategyFacts]]]:
    """Returns the strategies of each family that has some, in the order in which people read them."""
    every = list(said)
    grouped = [(family, [one for one in every if one.family == family.title]) for family in Family]
    return [(family, ones) for family, ones in grouped if ones]
