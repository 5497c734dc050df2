"""Which kinds of index are offered, and which one suits how many vectors.

Apart from FAISS, so that settings can be read without loading it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

FACTORIES = "Flat, SQfp16, SQ8, IVF<lists>,Flat, IVF<lists>,SQfp16, IVF<lists>,SQ8 and HNSW<links>"
AUTO = "auto"
ELSEWHERE = (
    "elsewhere"  # in place of what was asked: another engine is to search, and the file needs no lists
)
HALVED = "SQfp16"
EXACT_BELOW = 10_000  # vectors; an exact search among fewer takes well under a millisecond
QUICK_ANYWHERE = 20_000_000  # numbers; to compare so many takes no machine long
SLOW = 20.0  # milliseconds of a search from which on a quicker kind is taken
ROWS_A_LIST = 39  # FAISS's own least number of vectors a list to learn lists from
_OFFERED = re.compile(r"(IVF[1-9][0-9]*,)?(Flat|SQfp16|SQ8)|HNSW[1-9][0-9]*(,Flat)?")


class Speeds(NamedTuple):
    """How many numbers a search compares in a millisecond."""

    flat: float  # as they are
    halved: float  # with half the bits


@dataclass(frozen=True)
class Chosen:
    """Which kind a generation is to be of, and why."""

    kind: str  # a FAISS factory string
    asked: str = ""  # what the setting was; `auto` where nobody asked for a kind
    of: int = 0  # vectors that there were when it was chosen
    ms: Mapping[str, float] = field(
        default_factory=dict
    )  # what a search of each exact kind would take, in milliseconds

    @property
    def is_approximate(self) -> bool:
        """Whether a search of that kind may miss what an exact one finds."""
        return self.kind.startswith(("IVF", "HNSW"))

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Self:
        """Reads it from what a generation says of itself; nobody asked for that of an earlier version."""
        said = manifest.get("choice")
        return cls(**said) if said else cls(str(manifest["factory"]), "", int(manifest["count"]))

    def holds(self, asked: str, count: int) -> bool:
        """Whether it need not be made again: no other kind is asked for, and vectors have not doubled or halved."""
        return self.asked == asked and self.of <= 2 * count and count < 2 * self.of


TYPICAL = Speeds(5e6, 14e6)  # of a thread of the machine that this was written on


def is_offered(factory: str) -> bool:
    """Whether a FAISS factory string is one of the kinds that give their vectors back."""
    return _OFFERED.fullmatch(factory) is not None


def fitting(factory: str, count: int, dim: int, speeds: Speeds = TYPICAL) -> str:
    """Returns the kind that so many vectors get where one is asked for; `auto` goes by what a search would take."""
    if count < EXACT_BELOW:
        return "Flat"
    if factory != AUTO:
        return factory
    if count * dim <= SLOW * speeds.flat:
        return "Flat"
    if count * dim <= SLOW * speeds.halved:
        return HALVED
    return f"IVF{1 << round(math.log2(math.sqrt(count)))},{HALVED}"


def of_segment(kind: str, count: int) -> str:
    """Returns the kind that a segment of so many vectors gets in a generation of a kind: of few, no lists are made."""
    lists = re.match(r"IVF(\d+),", kind)
    if lists and count < ROWS_A_LIST * int(lists[1]):
        kind = kind[lists.end() :]
    return "Flat" if count < EXACT_BELOW else kind
