"""The records that the catalog takes and returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ingest.pair import ImageId, Split

if TYPE_CHECKING:
    from ingest.sources import PictureSource

JOB_STATES = ("queued", "running", "interrupted", "succeeded", "rejected", "review", "failed", "cancelled")
FINAL_STATES = frozenset({"succeeded", "rejected", "review", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class NewImage:
    """An accepted picture on its way into the catalog: where it belongs and what it looks like."""

    id: ImageId
    domain: str
    split: Split
    width: int  # in pixels, upright
    height: int
    format: str
    group: str | None = None  # what an upload stated
    cluster: str | None = None  # names the pictures of one thing; None for one that is alone
    taken: str = ""  # when, as the camera says: ISO 8601, without a zone where it told none; empty: not known
    camera: str = ""  # maker and model
    latitude: float | None = None  # where, in degrees
    longitude: float | None = None
    sketch: bytes | None = None  # of `ingest.sketch`; None for one not made yet, and in an `ImageRecord`


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRecord(NewImage):
    """One picture of the catalog."""

    chunk_id: str
    in_gallery: bool
    withdrawn: bool = False  # it is in no chunk but withdrawn ones
    gone: bool = False  # none of the places where it was seen is left


@dataclass(frozen=True, slots=True)
class SketchRecord:
    """The sketch of a picture, with the cluster (or id) and split that its near-copies share with it."""

    id: ImageId
    cluster: str
    split: Split
    sketch: bytes


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One accepted upload. `pairs` and `images` count all it holds, `new_*` what no earlier chunk had.

    `standing` is one of `ingest.standing.STANDINGS`; `measures`: a person accepted it as measuring material.
    `standing_by`, `standing_why` and `standing_since` (ISO 8601 in UTC) tell of the last change of standing
    and are empty before the first.
    """

    id: str
    name: str
    created: str
    in_gallery: bool
    pairs: int
    images: int
    new_pairs: int
    new_images: int
    languages: dict[str, int]
    domains: dict[str, int]
    report: dict[str, Any]
    standing: str = "new"
    measures: bool = False
    standing_by: str = ""
    standing_why: str = ""
    standing_since: str = ""

    @property
    def can_teach(self) -> bool:
        """Whether any of its pairs may be trained on, as far as its report tells; a list of chunks has no reports."""
        slices = self.report.get("per_slice", {}).values()
        told = sum(sum(counts.values()) for counts in slices)
        trained = sum(counts.get("train", 0) for counts in slices)
        return self.pairs > told or (trained > 0 and self.pairs > 0)


@dataclass(frozen=True, slots=True)
class ChunkStanding:
    """What one accepted upload counts as: a chunk's record without what has to be counted or read for it."""

    id: str
    name: str
    created: str
    in_gallery: bool
    standing: str
    measures: bool
    new_pairs: int


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One run of an update or another long task; times are ISO 8601 in UTC."""

    id: str
    kind: str
    state: str
    arguments: dict[str, Any]
    progress: dict[str, Any]
    result: dict[str, Any]
    error: str | None
    pid: int | None
    created: str
    started: str | None
    finished: str | None


@dataclass(frozen=True, slots=True)
class Pin:
    """A canary: this query must keep this image as its first answer."""

    query: str
    language: str
    image_id: ImageId


@dataclass(frozen=True, slots=True)
class NewAside:
    """A row of an upload that was held or rejected, on its way into the catalog."""

    place: str  # where it stood in the upload
    outcome: str  # "held" or "rejected"
    code: str  # stable name of the reason
    sentence: str  # the reason
    image_id: ImageId  # of its picture
    language: str = ""  # as stated; empty where it was not
    text: str = ""  # its caption; of a rejected one no more than its beginning
    domain: str = ""  # as stated, for the pair or the whole upload; empty where it was not
    split: str = ""  # as stated
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsidePair(NewAside):
    """A pair that was put aside."""

    id: int  # a number; stable
    chunk: str  # id of the chunk that its upload became
    decided: str = ""  # one of `ingest.aside.DECISIONS`; empty while it waits
    decided_by: str = ""  # who decided
    decided_why: str = ""  # that person's note
    decided_at: str = ""  # ISO 8601 in UTC


@dataclass(frozen=True, slots=True)
class QuestionedPair:
    """A pair of a chunk that one of its checks names."""

    number: int  # the number of its caption, which never changes
    image_id: ImageId
    language: str
    text: str
    check: str  # the check that names it
    why: str  # what the check says about it


@dataclass(frozen=True, slots=True)
class NewChunk:
    """Everything one intake wants recorded in one transaction.

    `captions` are `(image id, language, text)`; each image id is among `images`. `aside` are rows that were held or
    rejected; `sources` say where the images were seen.
    """

    id: str
    name: str
    in_gallery: bool
    images: Sequence[NewImage]
    captions: Sequence[tuple[ImageId, str, str]]
    aside: Sequence[NewAside] = ()
    sources: Sequence[PictureSource] = ()
    goes_on: bool = False  # it is a further part of the chunk of its id, which was recorded just before
    held_by: str = ""  # who brought it and may not let it teach; empty where it may
    held_why: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What recording a chunk changed."""

    new_images: int  # pictures that the home did not show before
    new_pairs: int  # captions that it did not have before
    known_chunk: bool  # the chunk was there already
    returned: bool = False  # it was withdrawn, and is taken in again as new
    withheld: int = 0  # pictures of it that a person took out, and that stay out
