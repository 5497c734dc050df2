"""Whether a home is sound: diagnoses and settings."""

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

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Diagnosis:
        """Reads what `to_json` wrote."""
        level = Level[str(said["level"]).upper()]
        return cls(said["check"], level, said["sentence"], said["advice"], said["figures"])


@dataclass(frozen=True)
class Described:
    """One setting: its value here and without a word, as text, and what it means."""

    name: str
    value: str
    default: str
    says: str


SUMMARY = {
    Level.OK: "Nothing is wrong.",
    Level.WARN: "Nothing is broken; something deserves a look.",
    Level.ERROR: "Something is broken.",
}


def worst(found: Iterable[Diagnosis]) -> Level:
    """Returns the worst level among diagnoses."""
    return max((one.level for one in found), default=Level.OK)
