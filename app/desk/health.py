"""Whether a home is sound: diagnoses and settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import computed_field

from app.desk.slices import SliceSummary
from ingest.records import ChunkRecord, JobRecord
from ingest.sentence import phrase


class Level(StrEnum):
    """How bad it is, mildest first."""

    OK = "ok"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True)
class Diagnosis:
    """What looking at one thing found."""

    check: str  # stable name of what was looked at
    level: Level  # how bad it is
    sentence: str  # what was found
    advice: str = ""  # what to do; empty when nothing is
    figures: Mapping[str, Any] = field(default_factory=dict)  # numbers behind it


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
    since: str = ""  # when it was first noticed


@dataclass(frozen=True)
class Degraded:
    """Something that is not as it should be, while the rest goes on."""

    part: str  # stable name of what: release, catalog, serving, index
    what: str  # a sentence
    since: str  # when it was noticed, ISO 8601, UTC
    mend: str = ""  # the command that mends it; empty where none does, and it goes on by itself


@dataclass(frozen=True)
class RepairPlan:
    """What mending a home would do, and how long it would take."""

    steps: tuple[str, ...] = ()  # a sentence each; none where nothing needs it
    pictures: int = 0  # that would be made searchable again
    embedded: int = 0  # of these, that would have to be embedded
    seconds: float = 0.0  # about, by trying a few
    # What is missing in the bucket, of which only what this machine has is put back; or that it cannot be asked
    bucket: str = ""


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
    needs_torch: str = ""  # why torch searches it; empty where the graphs of its version do


@dataclass(frozen=True)
class IndexSegment:
    """A piece of an index: pictures that were made searchable together."""

    number: int  # its files are called by
    kind: str  # a FAISS factory string
    vectors: int  # with those that were taken out
    taken_out: int  # that no search finds, until it is written again
    bytes: int  # of its files
    kept: float  # the share of what comparing all finds that a search of it finds
    parameters: str = ""  # how widely a search looks, as FAISS says it; empty where all are compared


@dataclass(frozen=True)
class IndexStatus:
    """What the live index is like."""

    release: str  # whose it is
    generation: str
    kind: str  # of its largest segment
    why: str  # it is of that kind: a sentence
    pictures: int  # that it finds
    taken_out: int  # vectors that it has and does not find
    bytes: int  # of its files
    # The median of a search by itself, and the share of what comparing all finds that it finds, as both were measured
    # when the release was published; None where they were not
    milliseconds: float | None
    kept: float | None
    segments: tuple[IndexSegment, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def taken_out_share(self) -> float:
        """Of all vectors."""
        return self.taken_out / max(1, self.pictures + self.taken_out)


@dataclass(frozen=True)
class Updating:
    """The process that holds the updater lock."""

    pid: int
    since: str
    what: str


@dataclass(frozen=True)
class Status:
    """Where a home stands."""

    live: Live | None  # what answers; None when nothing was ever released
    problem: str  # why the newest release is not the one that answers; empty when it is
    counts: Mapping[str, int]  # of what there is, by name
    updating: Updating | None  # who updates at this moment; None when nobody does
    interrupted: tuple[str, ...]  # jobs whose process was found dead just now
    jobs: tuple[JobRecord, ...]  # the latest
    chunks: tuple[ChunkRecord, ...]  # all, newest first, without their reports
    used_bytes: int  # of the home
    free_bytes: int  # of its disk
    degraded: tuple[Degraded, ...] = ()  # what is not as it should be
    catalog: str = ""  # the address of the database that holds it; empty where it lies in the home
    objects: str = (
        ""  # the address of the bucket that holds pictures and releases; empty where they lie in the home
    )
