"""What a server answers, as typed values; what a newer server adds is kept."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class ServerAnswer(BaseModel):
    """Any of them."""

    model_config = ConfigDict(extra="allow", frozen=True)


class FoundCaption(ServerAnswer):
    """A caption of a hit."""

    language: str
    text: str


class FoundHit(ServerAnswer):
    """One picture found; addresses are relative to the server's (`Client.picture` fetches them)."""

    id: str
    score: float
    rank: int
    match: float | None = None
    relevance: str = ""
    by: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    parts: tuple[float, ...] = ()
    domain: str | None = None
    captions: tuple[FoundCaption, ...] = ()
    thumb_url: str = ""
    url: str = ""


class AskedPart(ServerAnswer):
    """A part of a query as it was understood."""

    kind: str
    value: str
    weight: float


class NearCaption(ServerAnswer):
    """A caption near to a query; `images` are pictures that have it."""

    text: str
    language: str
    score: float
    images: tuple[str, ...] = ()


class SearchAnswer(ServerAnswer):
    """Hits, and the release that found them; what the fields mean is in docs/search.md."""

    release: str
    commit: int
    query: str
    language: str
    note: str = ""
    mode: str = "vectors"
    parts: tuple[AskedPart, ...] = ()
    index_size: int = 0
    searched: int = 0
    relevance: str = ""
    next: str = ""
    hits: tuple[FoundHit, ...]
    captions: tuple[NearCaption, ...] = ()


class Moved(ServerAnswer):
    """Where a picture stands in two answers; None where it was not found."""

    id: str
    rank_a: int | None
    rank_b: int | None


class Compared(ServerAnswer):
    """One query in two releases."""

    a: SearchAnswer
    b: SearchAnswer
    overlap: float
    moves: tuple[Moved, ...]


class ListedRelease(ServerAnswer):
    """A release in a list."""

    id: str
    live: bool
    version: str
    generation: str
    parent: str | None = None
    strategy: str | None = None
    verdict: str | None = None
    mode: str | None = None
    images_embedded: int | None = None
    languages: tuple[str, ...] = ()
    created: str | None = None


class WentLiveAnswer(ServerAnswer):
    """A change by hand of what is live; `job` adds the pictures that the release does not hold."""

    release: str
    commit: int
    reason: str
    left_out: int = 0
    job: dict[str, Any] | None = None
