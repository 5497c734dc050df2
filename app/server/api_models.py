"""What REST callers send and receive; a field that is not here is refused by name."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from app.query.snapshot import Answer
from app.server.api_reports import JudgedOut
from app.server.serving import Found

Value = str | float | int | bool

_SLUG = Field(min_length=1, max_length=80)


Name = Annotated[str, Field(max_length=80)]


class Strict(BaseModel):
    """A request in which every field must be known."""

    model_config = ConfigDict(extra="forbid")


class CompareRequest(Strict):
    """`POST /v1/compare`."""

    text: str
    a: str = _SLUG
    b: str = _SLUG
    language: str = Field(default="auto", max_length=40)
    k: int | None = Field(default=None, ge=1, le=1000)


class StartUpdate(Strict):
    """`POST /v1/updates`."""

    chunk: str = _SLUG
    strategy: str | None = Field(default=None, max_length=80)
    options: dict[str, Value] = Field(default_factory=dict, max_length=50)
    seed: int = Field(default=0, ge=0, lt=2**31)
    promote: StrictBool = True
    why: str = Field(default="", max_length=500)


class Why(Strict):
    """`POST /v1/releases/{id}/promote`."""

    why: str = Field(default="", max_length=500)
    force: StrictBool = False


class Note(Strict):
    """`POST /v1/pin`, `/v1/unpin`, `/v1/releases/{id}/keep`; the note may be empty."""

    why: str = Field(default="", max_length=500)


class Withdraw(Strict):
    """`POST /v1/chunks/{id}/withdraw`; the reason is kept."""

    why: str = Field(min_length=1, max_length=500)


class Accept(Withdraw):
    """`POST /v1/chunks/{id}/accept`; `measure`: its held-out pairs measure other updates too."""

    measure: StrictBool = False


class RollBack(Strict):
    """`POST /v1/rollback`; without a release, the one that was live before."""

    release: str | None = Field(default=None, max_length=80)
    why: str = Field(default="", max_length=500)


class CaptionOut(BaseModel):
    """A caption of a hit."""

    language: str
    text: str


class HitOut(BaseModel):
    """One picture found.

    `score` is the cosine of query and picture; `match` the log-odds where hits were re-ranked; `by` says which halves
    of the search found it, and `fused` what they were fused to; `copies` are near-copies folded under it; `parts` the
    cosine of each part of the query, where `explain` asked; `relevance` is strong, weak or nothing, and empty where
    that is not known.
    """

    id: str
    score: float
    rank: int
    match: float | None = None
    by: list[str] = []
    fused: float | None = None
    copies: list[str] = []
    parts: list[float] = []
    relevance: str = ""
    domain: str | None
    captions: list[CaptionOut]
    thumb_url: str
    url: str


class Timing(BaseModel):
    """Where the time of a query went, in seconds."""

    encode: float
    index: float
    rerank: float = 0.0


class PartOut(BaseModel):
    """A part of the query as it was understood; `at` is where it begins in the text, from 0."""

    kind: str
    value: str
    weight: float
    at: int


class FoundCaptionOut(BaseModel):
    """A caption nearest to the query; `images` are the first of the pictures that have it."""

    text: str
    language: str
    score: float
    images: list[str]


class SearchResponse(BaseModel):
    """Hits, and the release that found them.

    `next` is the cursor of the next page, empty when there is none; `unlearned` the language of the words where the
    release has not learned it and no translation was given.
    """

    release: str
    commit: int
    query: str
    language: str
    detected: list[tuple[str, float]]
    note: str
    timing: Timing
    hits: list[HitOut]
    mode: str = "vectors"
    parts: list[PartOut] = []
    index_size: int = 0
    searched: int = 0
    first: int = 0
    next: str = ""
    relevance: str = ""
    captions: list[FoundCaptionOut] = []
    eta: float | None = None
    unlearned: str = ""


def search_response(answer: Answer, found: dict[str, Found]) -> SearchResponse:
    """Joins an answer with what the catalog knows of its pictures."""
    return SearchResponse(
        release=answer.release,
        commit=answer.commit,
        query=answer.query,
        language=answer.language,
        detected=list(answer.detected),
        note=answer.note,
        timing=Timing(encode=answer.encode_seconds, index=answer.index_seconds, rerank=answer.rerank_seconds),
        hits=[
            HitOut(
                id=hit.image_id,
                score=hit.score,
                rank=hit.rank,
                match=hit.match,
                by=list(hit.by),
                fused=hit.fused,
                copies=list(hit.copies),
                parts=list(hit.parts),
                relevance=hit.relevance,
                domain=record.domain if (record := found[hit.image_id].record) else None,
                captions=[CaptionOut(language=c.language, text=c.text) for c in found[hit.image_id].captions],
                thumb_url=f"/v1/images/{hit.image_id}/thumbnail",
                url=f"/v1/images/{hit.image_id}",
            )
            for hit in answer.hits
        ],
    )


class ReleaseOut(BaseModel):
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
    languages: list[str]
    created: str | None


class ReleaseDetail(ReleaseOut):
    """A release with its gate report, what live queries have shown, and everything else its manifest says."""

    manifest: dict[str, Any]
    judged: JudgedOut
    shadow: dict[str, Any] | None = None
