"""Releases: where they come from, what two differ in, how they travel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.desk.slices import SliceSummary
from ingest.records import JobRecord
from ingest.release_words import JUDGEMENTS, ReleaseWord

SUFFIX = ".perennial"
"""Of a file that carries a release from one home to another."""


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which a release was live."""

    commit: int  # number of the commit that began it
    reason: str  # `init`, `promote`, `rollback` or `ingest`
    by: str  # who
    why: str  # in that person's words
    since: str  # ISO 8601, UTC
    until: str | None  # the same; None while it lasts


@dataclass(frozen=True, slots=True)
class Node:
    """A release and its place in the drawing."""

    release: str  # its id
    # id of the release it was made from; None for the first, and for one that was imported
    parent: str | None
    version: str  # of its encoder
    strategy: str | None  # that trained the version; None for a base encoder
    verdict: str | None  # of the gate; None where nothing was judged
    languages: tuple[str, ...]  # learned
    created: str  # ISO 8601, UTC
    is_new_version: bool  # whether it brought an encoder, and not only pictures
    is_live: bool  # whether it is live now
    periods: tuple[Period, ...]  # in which it was live, oldest first
    lane: int  # its column; the live line's is 0
    joins: tuple[int, ...]  # lanes whose lines come down from newer releases and end here
    passes: tuple[int, ...]  # lanes whose lines pass by
    goes_on: bool  # whether its parent is among the releases
    pruned: str | None = None  # since when its encoder and index are gone; None while they are kept


@dataclass(frozen=True)
class Change:
    """What the second of two has and the first has not, and the other way round."""

    added: tuple[str, ...]
    gone: tuple[str, ...]

    @classmethod
    def between(cls, a: Collection[str], b: Collection[str]) -> Change:
        """Compares two collections, each in its order."""
        return cls(tuple(one for one in b if one not in a), tuple(one for one in a if one not in b))


@dataclass(frozen=True)
class SliceChange:
    """Recall on a slice in percent: the mean of R@1, R@5 and R@10 by text, measured when each release was made."""

    slice: str
    view: str
    a: float | None
    b: float | None


@dataclass(frozen=True)
class Difference:
    """What two releases differ in."""

    a: str  # id of the first
    b: str  # id of the second
    same_version: bool  # whether they share the encoder
    languages: Change  # learned
    chunks: Change  # taught
    # languages of both that are read differently; what is not here is read the same to the bit
    texts_changed: tuple[str, ...]
    texts_same: tuple[str, ...]  # languages of both that are read the same
    # domains that are seen differently; "" stands for all that have no adapter of their own
    pictures_changed: tuple[str, ...]
    pictures: tuple[int, int, int]  # counts: in a, in b, in both
    strategies: tuple[str, str]  # that trained them last
    slices: tuple[SliceChange, ...]  # recall on every slice that either measured


@dataclass(frozen=True)
class Exported:
    """A package that was written: where, how large, of which release, and its checksum."""

    release: str
    path: Path
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Imported:
    """A release that was taken in."""

    release: str  # its id here
    version: str  # of its encoder here
    origin: str  # its id in the home that it comes from
    languages: tuple[str, ...]  # that it knows
    images_embedded: int  # pictures of this home that its encoder embedded


@dataclass(frozen=True)
class ListedRelease:
    """A release in a list."""

    id: str
    live: bool
    version: str
    generation: str
    parent: str | None
    strategy: str | None
    verdict: str | None
    mode: str | None
    images_embedded: int | None
    languages: tuple[str, ...]
    created: str | None
    # since when its encoder and index are gone (ISO 8601, UTC); None while they are kept
    pruned: str | None


@dataclass(frozen=True)
class Staying:
    """A release that is not pruned, and why."""

    release: str  # its id
    why: str  # a sentence


@dataclass(frozen=True)
class Going:
    """A release whose encoder and index would be removed, or were."""

    release: str  # its id
    version: str  # of its encoder
    created: str  # ISO 8601, UTC
    was_live: bool  # whether it was ever live: updates are no longer compared with it then


@dataclass(frozen=True)
class PrunePlan:
    """What pruning removes, or removed."""

    going: tuple[Going, ...]  # newest first
    staying: tuple[Staying, ...]  # newest first
    folders: tuple[str, ...]  # encoders and indexes on the disk that go
    bytes: int  # room that they leave
    sentence: str  # for people


@dataclass(frozen=True)
class WentLive:
    """A change by hand of what is live."""

    release: str  # that is live now
    commit: int  # that made it so
    reason: str  # `promote` or `rollback`
    by: str = ""  # who did it
    why: str = ""  # in that person's words
    # how many pictures of the gallery the release does not hold, because they came after it
    left_out: int = 0
    job: JobRecord | None = None  # that adds them; None when there are none


@dataclass(frozen=True)
class ReleaseWords:
    """What people said of releases, newest first, and the pin that holds what is live, if any."""

    pinned: ReleaseWord | None
    words: tuple[ReleaseWord, ...]

    def judgement(self, release: str) -> ReleaseWord | None:
        """Returns the newest word that keeps or rejects a release, if any."""
        return next((one for one in self.words if one.release == release and one.said in JUDGEMENTS), None)


@dataclass(frozen=True)
class DifferingTensor:
    """What a replay made otherwise."""

    name: str  # of a tensor, or of a file
    most: float | None  # by which two numbers differ; None where they cannot be compared


@dataclass(frozen=True)
class Replayed:
    """A version that was trained again from what is recorded of it, beside the one that there is."""

    release: str  # that has it
    version: str
    is_identical: bool  # every file of both, to the bit
    files: int  # that were compared
    differing: tuple[DifferingTensor, ...]
    changed: tuple[str, ...]  # sentences: what is not as it was of the data beside that which was taught
    environment: Mapping[str, tuple[str, str]]  # what computed, by name: then, and now


@dataclass(frozen=True)
class Evaluated:
    """What a release reaches on today's held-out pairs."""

    release: str
    slices: tuple[SliceSummary, ...]
