"""What the checks of a chunk found: plain values that a report keeps and a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from ingest.pair import ImageId
from ingest.sentence import known_fields

Figure: TypeAlias = "float | int | str | list[Any]"


class Outcome(StrEnum):
    """What one check says of a chunk; `UNKNOWN` when no statistic can tell."""

    ACCEPT = "accept"
    HOLD = "hold"
    REJECT = "reject"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Example:
    """One pair that shows what a finding means. `why` is a sentence; `language` and `text` may be empty."""

    image_id: ImageId
    language: str
    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check of one chunk."""

    check: str  # the check's name, such as "row_shift"; a chunk keeps one finding of each check
    outcome: Outcome  # whether the chunk may teach, as far as this check can see
    sentence: str  # what was found and what to do, for a person
    figures: Mapping[str, Figure] = field(default_factory=dict)  # the numbers behind it, by name; JSON values
    examples: tuple[Example, ...] = ()  # pairs that show it

    def to_json(self) -> dict[str, Any]:
        """Returns the finding as JSON values."""
        return asdict(self) | {
            "outcome": self.outcome.value,
            "examples": [asdict(example) for example in self.examples],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Finding:
        """Reads what `to_json` wrote, here or in a newer Perennial, of which more fields are left out.

        Raises:
            KeyError, ValueError, TypeError: it is something else.
        """
        examples = tuple(Example(**known_fields(Example, example)) for example in values["examples"])
        known = known_fields(cls, values)
        return cls(**{**known, "outcome": Outcome(values["outcome"]), "examples": examples})


def holds(findings: Iterable[Finding]) -> bool:
    """Returns whether a chunk with these findings waits for a person's word."""
    return any(finding.outcome in (Outcome.HOLD, Outcome.REJECT) for finding in findings)


def findings_in(report: Mapping[str, Any]) -> list[Finding]:
    """Returns the findings that a chunk's report holds."""
    return [Finding.from_json(values) for values in report.get("findings", ())]
