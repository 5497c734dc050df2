"""What goes into an update and what comes out of it: plain records that travel as JSON through job rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from app.desk.jobs import Stage
from app.home.commits import CommitRecord
from ingest.report import IntakeReport
from ingest.sentence import phrase

Tell = Callable[[Stage], None]
"""Who is told how far something is."""


def say_nothing(_stage: Stage) -> None:
    """Tells nobody."""


def committing(outcome: Mapping[str, Any], live: CommitRecord) -> Stage:
    """Returns what is told right before a commit: a worker that dies after it is then known to have made it."""
    message = phrase("making {release} live", release=outcome["release"])
    return Stage("commit", message, details={"outcome": outcome, "parent": live.number})


@dataclass(frozen=True)
class UpdateOutcome:
    """How an update ended."""

    version: str  # the trained version; it is kept whatever the verdict
    strategy: str  # that trained it
    training: Mapping[str, Any]  # losses, chosen epoch, seconds, image forwards, share of English captions
    verdict: str = ""  # promote, reject or review
    release: str | None = None  # the published release; None when rejected
    commit: int | None = None  # its commit when it went live
    mode: str = "none"  # none, delta or full: how the gallery got its vectors
    images_embedded: int = 0  # pictures that went through the image tower for the gallery
    gate: Mapping[str, Any] = field(default_factory=dict)  # the gate report as plain values
    seconds: float = 0.0  # of the whole update
    sentence: str = ""  # for people
    judged_against: str = ""  # the version that was live when the gate judged

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> UpdateOutcome:
        """Reads what `asdict` made of one."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in data.items() if k in known})


@dataclass(frozen=True)
class AddOutcome:
    """What taking a chunk in did."""

    report: IntakeReport
    commit: CommitRecord | None
    images_embedded: int
    made_again: str = ""  # what was lost of the index before, for people
