"""REST for two releases side by side: many queries at once, those that changed most, and what people preferred."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from app.desk.hits import Asked, ManyCompared
from app.feedback import votes as feedback
from app.query.comparison import MOST_QUERIES
from app.query.known_queries import MOST_KNOWN
from app.server.api_context import Anyone, State
from app.server.api_errors import trouble_of
from app.server.api_models import Strict
from app.server.comparing import changed_most, compare_all

router = APIRouter(prefix="/v1")

_Release = Annotated[str, Field(min_length=1, max_length=80)]
_Language = Annotated[str, Field(max_length=40)]
_K = Annotated[int, Field(ge=1, le=500)]


class Comparisons(Strict):
    """`POST /v1/comparisons`: each query is judged by itself."""

    queries: list[Annotated[str, Field(max_length=2000)]] = Field(min_length=1, max_length=MOST_QUERIES)
    a: _Release
    b: _Release
    language: _Language = "auto"
    k: _K | None = None


class ComparedItem(BaseModel):
    """What became of one query: how its answer differs, or why there is none."""

    query: str
    status: int
    read_a: str = ""
    read_b: str = ""
    overlap: float | None = None
    same_first: bool | None = None
    moved: float | None = None
    seconds_a: float | None = None
    seconds_b: float | None = None
    error: str | None = None
    code: str | None = None


class ManyComparedOut(BaseModel):
    """Two releases asked the same queries; `overlap` is the mean of those that were answered."""

    a: str
    b: str
    queries: int
    overlap: float | None
    results: list[ComparedItem]


@router.post("/comparisons")
def comparisons(body: Comparisons, state: State) -> ManyComparedOut:
    """Asks two releases up to 64 queries; one that cannot be answered does not keep the others from it."""
    return _out(compare_all(state, body.queries, body.a, body.b, language=body.language, k=body.k))


@router.get("/comparisons/changed")
def changed(
    a: Annotated[str, Query(min_length=1, max_length=80)],
    b: Annotated[str, Query(min_length=1, max_length=80)],
    state: State,
    language: Annotated[str, Query(max_length=40)] = "auto",
    k: Annotated[int | None, Query(ge=1, le=500)] = None,
    most: Annotated[int, Query(ge=1, le=MOST_KNOWN)] = 20,
) -> ManyComparedOut:
    """Asks two releases canaries and a sample of held-out captions; returns those whose answers changed most."""
    return _out(changed_most(state, a, b, language=language, k=k, most=most))


@router.get("/votes")
def votes(
    a: Annotated[str, Query(min_length=1, max_length=80)],
    b: Annotated[str, Query(min_length=1, max_length=80)],
    state: State,
    account: Anyone,
) -> dict[str, Any]:
    """Counts the votes between two releases, the earlier one as `a`, with the 95 % interval of the share for `b`."""
    return asdict(feedback.votes_between(state.workspace, a, b))


def _out(compared: ManyCompared) -> ManyComparedOut:
    results = [_item(one) for one in compared.asked]
    return ManyComparedOut(
        a=compared.a, b=compared.b, queries=compared.queries, overlap=compared.overlap, results=results
    )


def _item(one: Asked) -> ComparedItem:
    if one.change is not None:
        return ComparedItem(status=200, **asdict(one.change))
    trouble = trouble_of(one.error) if one.error is not None else None
    if trouble is None:
        raise TypeError(f"{one.query!r} was neither answered nor refused")
    return ComparedItem(query=one.query, status=trouble.status, error=trouble.sentence, code=trouble.code)
