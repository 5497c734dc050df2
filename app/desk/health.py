"""Whether a home is sound: diagnoses and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import computed_field

from app.desk.releases import SliceSummary
from ingest.records import ChunkRecord, JobRecord
from ingest.sentence import phrase


class Level(StrEnum):
    """How bad it is, mildest first."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


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


@dataclass(frozen=True)
class Described:
    """One setting: its value here and without a word, as text, and what it means."""

    name: str
    value: str
    default: str
    says: str


SUMMARY = {
    Level.OK: phrase("Nothing is wrong."),
    Level.WARN: phrase("Nothing is broken; something deserves a look."),
    Level.ERROR: phrase("Something is broken."),
}


def worst(found: Iterable[Diagnosis]) -> Level:
    """Returns the worst level among diagnoses."""
    return max((one.level for one in found), key=list(Level).index, default=Level.OK)


@dataclass(frozen=True)
class Examination:
    """What an examination of a home found."""

    found: tuple[Diagnosis, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def level(self) -> Level:
        """The worst that was found."""
        return worst(self.found)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """That sums it up."""
        return SUMMARY[self.level]


@dataclass(frozen=True)
class SkippedCommit:
    """A commit that cannot be trusted and is passed over; `why` is a sentence."""

    number: int
    why: str


@dataclass(frozen=True)
class Live:
    """What is live: the release, the commit that made it so, and what it measured.

    `release` is empty where nothing that was released can be trusted.
    """

    release: str = ""
    commit: int = 0
    since: str = ""
    by: str = ""
    why: str = ""
    version: str = ""
    generation: str = ""
    languages: tuple[str, ...] = ()
    slices: tuple[SliceSummary, ...] = ()
    skipped: tuple[SkippedCommit, ...] = ()


@dataclass(frozen=True)
class Updating:
    """The process that holds the updater lock."""

    pid: int
    since: str
    what: str


@dataclass(frozen=True)
class Status:
    """Where a home stands.

    Attributes:
        live: what answers; None when nothing was ever released.
        problem: why the newest release is not the one that answers; empty when it is.
        counts: of what there is, by name.
        updating: who updates at this moment; None when nobody does.
        interrupted: jobs whose process was found dead just now.
        jobs: the latest.
        chunks: all, newest first, without their reports.
        used_bytes: of the home.
        free_bytes: of its disk.
    """

    live: Live | None
    problem: str
    counts: Mapping[str, int]
    updating: Updating | None
    interrupted: tuple[str, ...]
    jobs: tuple[JobRecord, ...]
    chunks: tuple[ChunkRecord, ...]
    used_bytes: int
    free_bytes: int
