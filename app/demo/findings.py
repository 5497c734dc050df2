"""What a step of the demo finds: its numbers, its claims, and the pictures that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from app.demo.player import HEADLINE, THINGS, AnswerSeen
from ingest.samples.scenes import partial_caption

THINGS_ASKED = partial_caption(HEADLINE, "en", THINGS)


@dataclass(frozen=True)
class Check:
    """A claim, and whether it holds."""

    claim: str
    holds: bool


@dataclass(frozen=True)
class Exhibit:
    """A question with the pictures that were found, for a page to show."""

    title: str
    image_ids: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What a step found."""

    lines: tuple[str, ...] = ()  # its numbers, as sentences
    checks: tuple[Check, ...] = ()  # its claims
    shown: tuple[Exhibit, ...] = ()  # questions and pictures
    seconds: float = 0.0  # what it took

    @property
    def passed(self) -> bool:
        """Whether every claim holds."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Findings:
        """Rebuilds what `to_json` wrote."""
        return cls(
            tuple(document["lines"]),
            tuple(Check(**check) for check in document["checks"]),
            tuple(Exhibit(one["title"], tuple(one["image_ids"])) for one in document["shown"]),
            float(document["seconds"]),
        )


@dataclass
class Notebook:
    """Collects the findings of a step while it runs."""

    lines: list[str] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    shown: list[Exhibit] = field(default_factory=list)

    def write(self, line: str) -> None:
        """Notes a line of numbers."""
        self.lines.append(line)

    def claim(self, claim: str, holds: bool) -> None:
        """Notes a claim and whether it holds."""
        self.checks.append(Check(claim, bool(holds)))

    def show(self, asked: AnswerSeen) -> str:
        """Notes a question with its pictures; returns what was found, in words."""
        answer = asked.answer
        right = "is not among" if asked.rank is None else f"is number {asked.rank} of"
        said = (
            f"“{answer.query}” (read as {answer.language}): the right picture {right} the first {len(answer.hits)}, "
            f"and {asked.alike} of them show {THINGS_ASKED}."
        )
        self.shown.append(Exhibit(f"{answer.release}: {said}", tuple(hit.id for hit in answer.hits)))
        return said
