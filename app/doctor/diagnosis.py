"""What looking at one thing found: how bad it is, a sentence, what to do, and figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class Level(IntEnum):
    """How bad it is; a higher one is worse."""

    OK = 0
    WARN = 1
    ERROR = 2

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Diagnosis:
    """What looking at one thing found.

    Attributes:
        check: stable name of what was looked at.
        level: how bad it is.
        sentence: what was found.
        advice: what to do; empty when nothing is.
        figures: numbers behind it.
    """

    check: str
    level: Level
    sentence: str
    advice: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "check": self.check,
            "level": str(self.level),
            "sentence": self.sentence,
            "advice": self.advice,
            "figures": dict(self.figures),
        }


def worst(found: Iterable[Diagnosis]) -> Level:
    """Returns the worst level among diagnoses."""
    return max((one.level for one in found), default=Level.OK)
