"""Searching: what is asked, the hits that are found, and how far the answers of two releases lie apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Annotated, Self

from pydantic import (
    Field,
    StrictBool,
    ValidationError,
    WrapValidator,
    computed_field,
    model_validator,
)

from app.desk.fields import Strict
from app.desk.slices import SliceSummary
from ingest.sentence import phrase

AUTO = "auto"
"""The language of words that nobody has told: it is detected."""
MOST_PARTS = 16
"""Parts of a query."""
HEAVIEST = 100.0
"""The largest weight of a part."""
FURTHEST = 5000
"""Hits that pages reach; whoever looks further is better served by a filter."""
MOST_AT_ONCE = 64
"""Searches, comparisons, texts or pictures in one request."""

_IMAGE_CHARACTERS = 42 * 1024**2  # 30 MB in base64: a phone takes pictures of 10 to 25
Name = Annotated[str, Field(max_length=80)]
FileName = Annotated[str, Field(max_length=2000)]
Picture = Annotated[str, Field(max_length=_IMAGE_CHARACTERS, description="A picture file in base64.")]
ItemId = Annotated[str, Field(pattern="^[0-9a-fA-F]{6,64}$")]
Numbers = Annotated[list[float], Field(min_length=1, max_length=8192)]


class Mode(StrEnum):
    """What a query is looked up in."""

    VECTORS = "vectors"
    CAPTIONS = "captions"
    HYBRID = "hybrid"


class Sort(StrEnum):
    """What pictures are ordered by, the newest first."""

    ADDED = "added"
    TAKEN = "taken"


class Relevance(StrEnum):
    """What a hit is worth."""

    STRONG = "strong"
    WEAK = "weak"
    NOTHING = "nothing"


def _day(given: object, read: Callable[[object], date]) -> date:
    try:
        if not isinstance(given, (int, float)):  # which would be taken for seconds since 1970
            return read(given.strip() if isinstance(given, str) else given)
    except ValidationError:
        pass
    found = f"{str(given).strip()[:40]!r}"
    raise ValueError(phrase("A day is written as 2026-01-31; found {found}.", found=found))


Day = Annotated[date, WrapValidator(_day, json_schema_input_type=date)]


class QueryPart(Strict):
    """One part of a query: exactly one of text, image, item and embedding; a weight below zero takes it away."""

    text: Annotated[str, Field(max_length=2000)] | None = None
    image: Picture | None = None
    item: ItemId | None = None
    embedding: Numbers | None = None
    weight: float = Field(default=1.0, ge=-HEAVIEST, le=HEAVIEST)

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [self.text, self.image, self.item, self.embedding]
        if sum(one is not None for one in given) != 1:
            raise ValueError("a part is exactly one of text, image, item and embedding")
        if self.weight == 0:
            raise ValueError("a part of weight 0 says nothing; leave it out")
        return self


class SearchRequest(Strict):
    """What is asked, by `text` in the query grammar or by parts, and which pictures may answer.

    `text`, `image`, `items`, `embedding` and `parts` may come together; all of them are parts of one query. Without any
    the pictures are browsed, the newest first.
    """

    text: str | None = Field(default=None, description="In the query grammar: 2:red car + ./a.jpg - fruit")
    image: Picture | None = None
    images: dict[FileName, Picture] = Field(
        default_factory=dict, max_length=MOST_PARTS, description="The pictures that `text` names, by name."
    )
    image_url: str | None = Field(default=None, description="Refused: nothing is fetched from the network.")
    items: list[ItemId] = Field(
        default_factory=list, max_length=MOST_PARTS, description="More like these pictures of the gallery."
    )
    embedding: Numbers | None = None
    parts: list[QueryPart] = Field(default_factory=list, max_length=MOST_PARTS)
    language: str = Field(default=AUTO, max_length=40)
    translation: str = Field(
        default="", max_length=500, description="Of a text, in English; both count, as validation has shown."
    )
    k: int | None = Field(default=None, ge=1, le=1000)
    cursor: str = Field(default="", max_length=400, description="`next` of the answer before.")
    offset: int = Field(
        default=0, ge=0, le=FURTHEST, description="Hits to pass over, where there is no cursor."
    )
    mode: Mode = Mode.VECTORS
    sort: Sort = Field(
        default=Sort.ADDED,
        description="Newest first by when they were added, or by when they were taken. With a query, added leaves "
        "the order to it, and taken orders its 200 best hits.",
    )
    domains: list[Name] | None = Field(default=None, max_length=100, description="Of one of these.")
    languages: list[Name] | None = Field(
        default=None, max_length=100, description="Captioned in one of these."
    )
    chunks: list[Name] | None = Field(
        default=None, max_length=100, description="Brought by one of these, by id or its beginning."
    )
    since: Day | None = Field(default=None, description="Taken in on this day (UTC) or later.")
    until: Day | None = Field(default=None, description="Taken in on this day (UTC) or earlier.")
    caption: str = Field(
        default="",
        max_length=500,
        description="With a caption that has all these words, the last perhaps only begun.",
    )
    where: str = Field(
        default="",
        max_length=1000,
        description='A filter: taken = 2024 AND (folder = "Italy" OR meta.brand ~ acme). See docs/search.md.',
    )
    release: str | None = Field(default=None, max_length=80)
    dedup: StrictBool = Field(default=False, description="Show of near-copies only the best.")
    rerank: StrictBool = Field(
        default=False, description="The first 50 in the order of the release's fusion encoder."
    )
    captions: int = Field(default=0, ge=0, le=500, description="How many captions to return, nearest first.")
    caption_languages: list[Name] | None = Field(
        default=None, max_length=100, description="Of these captions; all learned languages when not given."
    )
    min_relevance: Relevance | None = Field(default=None, description="Leave out hits worth less than this.")
    explain: StrictBool = Field(default=False, description="Say of each hit how near each part is.")


class Addressed:
    """A picture by its id; its addresses are relative to the server's."""

    id: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thumb_url(self) -> str:
        """Where its thumbnail is."""
        return f"/v1/images/{self.id}/thumbnail"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def url(self) -> str:
        """Where the picture is."""
        return f"/v1/images/{self.id}"


@dataclass(frozen=True)
class HitCaption:
    """A caption of a picture."""

    language: str
    text: str


@dataclass(frozen=True)
class SeenAt:
    """One place at which a picture was seen."""

    kind: str  # file, member of an archive, row of a table, url, or upload
    place: str  # path of the file, archive or table; address; what the upload was called
    name: str = ""  # inside the place; empty where the place is the picture itself
    key: str = ""  # the id that its owner gives it
    size: int = 0  # in bytes, of the file at the place; 0 where that is not known
    modified: str = ""  # when that file was changed last, ISO 8601 in UTC; empty where that is not known
    gone: str = ""  # since when it is no longer there, ISO 8601 in UTC; empty while it is
    fields: Mapping[str, str | int | float] = field(default_factory=dict)  # what its owner says of it

    @computed_field  # type: ignore[prop-decorator]
    @property
    def path(self) -> str:
        """The place with the name in it: of a file, where it lies."""
        return f"{self.place}!{self.name}" if self.name else self.place

    @property
    def label(self) -> str:
        """The name that a person knows it by."""
        return (self.name or self.place).rstrip("/").rsplit("/", 1)[-1]


@dataclass(frozen=True)
class Found(Addressed):
    """One picture found."""

    id: str  # of the picture
    score: float | None  # cosine of query and picture; None where nothing was looked for
    rank: int  # from 1
    match: float | None = None  # log-odds that text and picture belong together, where hits were re-ranked
    by: tuple[str, ...] = ()  # which halves of the search found it: vectors, captions
    fused: float | None = None  # what it was ranked by where both were asked
    copies: tuple[str, ...] = ()  # near-copies that are folded under it
    parts: tuple[float, ...] = ()  # the cosine of each part of the query, where `explain` asked
    relevance: str = ""  # strong, weak or nothing; empty where that is not known
    domain: str | None = None  # of the picture
    width: int = 0  # of the picture in pixels, upright; 0 where that is not known
    height: int = 0
    captions: tuple[HitCaption, ...] = ()  # the first ones, those in the language of the query before others
    taken: str = ""  # when, by its camera: ISO 8601; empty where that is not known
    sources: tuple[SeenAt, ...] = ()  # where it was seen, for those who may know (the setting `places_for`)

    @property
    def file(self) -> str:
        """Path of the first file that is still there; empty where there is none, or nobody may know."""
        return next((one.place for one in self.sources if one.kind == "file" and not one.gone), "")


@dataclass(frozen=True)
class Timing:
    """Where the time of a query went, in seconds."""

    encode: float
    index: float
    rerank: float = 0.0


@dataclass(frozen=True)
class ReadPart:
    """A part of the query as it was understood; `at` is where it begins in the text, from 0."""

    kind: str
    value: str
    weight: float
    at: int = 0


@dataclass(frozen=True)
class FoundCaption:
    """A caption found: its cosine to the query, and the first of the pictures that have it."""

    text: str
    language: str
    score: float
    images: tuple[str, ...]


@dataclass(frozen=True)
class SearchAnswer:
    """Hits, and the release that found them."""

    release: str  # that answered
    commit: int  # that made it live; 0 for another release than the live one
    query: str  # as it was understood, in the query grammar
    language: str  # it was read in; several joined by " + "
    detected: tuple[tuple[str, float], ...]  # the languages it may be in, with how sure that is
    note: str  # about the language, for people
    timing: Timing  # in seconds
    hits: tuple[Found, ...]  # best first
    mode: str = "vectors"  # what it was looked up in
    parts: tuple[ReadPart, ...] = ()  # of the query
    index_size: int = 0  # pictures that the release holds
    searched: int = 0  # how many of them could be found
    first: int = 0  # hits before these
    next: str = ""  # the cursor of the next page; empty when there is none
    relevance: str = ""  # what the best hit is worth
    measured_in: str = (
        ""  # the language whose captions tell what hits are worth; empty where that is not known
    )
    captions: tuple[FoundCaption, ...] = ()  # the nearest ones, where the request asked for some
    eta: float | None = None  # how much a translation counts, 0 to 1; None without one
    # the language of the words, where the release has not learned it and no translation was given
    unlearned: str = ""
    # R@10 of its languages in percent, over all their held-out captions, where the release measured it
    recalls: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LearnedLanguage:
    """A language that a release has learned; `recall` as in `SearchAnswer.recalls`, None where nothing was measured."""

    language: str
    recall: float | None


@dataclass(frozen=True)
class NamedChunk:
    """A chunk in a menu; `created` is ISO 8601 in UTC."""

    id: str
    name: str
    created: str


@dataclass(frozen=True)
class Choices:
    """What the fields of a search may be filled with."""

    release: str  # that answers
    pictures: int  # that it holds
    can_rerank: bool  # whether it has a fusion encoder
    learned: tuple[LearnedLanguage, ...]  # languages that words are read in
    languages: tuple[str, ...]  # that pictures are captioned in
    domains: tuple[str, ...]  # that pictures are of
    chunks: tuple[NamedChunk, ...]  # that brought pictures, newest first
    examples: tuple[str, ...] = ()  # words that find something here
    readable: tuple[str, ...] = ()  # other languages that words are read in, though nobody taught them


@dataclass(frozen=True)
class Searched:
    """What became of one of many searches: its answer, or why there is none."""

    status: int = 200
    answer: SearchAnswer | None = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class RankMove:
    """Where a picture stands in two answers; None where it was not found."""

    id: str
    rank_a: int | None
    rank_b: int | None


@dataclass(frozen=True)
class Compared:
    """One query in two releases: the share of hits in common, how pictures moved, and what each release measured."""

    a: SearchAnswer
    b: SearchAnswer
    overlap: float
    moves: tuple[RankMove, ...]
    slices: Mapping[str, tuple[SliceSummary, ...]]


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """How far the answer to one query differs between two releases."""

    query: str  # that was asked, in the query grammar
    read_a: str  # the language that release A read it in
    read_b: str  # the language that release B read it in
    overlap: float  # share of the hits that both have, 0 to 1
    same_first: bool  # whether both show the same picture first
    moved: float  # mean of how many places a picture that both found stands apart
    seconds_a: float  # that release A took
    seconds_b: float  # that release B took


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one query: how its answer changed, or why there is none; `status` and `code` as REST has them."""

    query: str
    status: int = 200
    change: AnswerChange | None = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ManyCompared:
    """Two releases asked the same queries."""

    a: str  # id of a release
    b: str  # id of another
    queries: int  # how many were asked
    # mean share of hits in common, of the queries that were answered; None when none was
    overlap: float | None
    # what became of them; where those that changed most were wanted, these, most changed first
    results: tuple[Asked, ...]


@dataclass(frozen=True)
class Embedded:
    """One vector of length 1, or why there is none.

    `language` is what a text was read in, `width` and `height` are a picture's, upright, in pixels.
    """

    status: int = 200
    embedding: tuple[float, ...] | None = None
    language: str | None = None
    width: int | None = None
    height: int | None = None
    error: str | None = None
    code: str | None = None


@dataclass(frozen=True)
class Embeddings:
    """Vectors of texts and then of pictures, in the order they were sent.

    Vectors of one `version` can be compared; `release` is what answered, and `dim` how many numbers each has.
    """

    release: str
    version: str
    dim: int
    results: tuple[Embedded, ...]
