"""REST for an answer as a file: the same question as `/v1/search`, answered with a table or with the pictures."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from app.query import results
from app.server.api_context import State
from app.server.api_query import SearchRequest, question_of
from app.server.serving import Serving

router = APIRouter(prefix="/v1")


def _file(kind: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {kind: {"schema": {"type": "string", "format": "binary"}}}}}


@router.post("/search.csv", response_class=Response, responses=_file("text/csv"))
def search_table(body: SearchRequest, state: State) -> Response:
    """Returns what a search finds as CSV, for a spreadsheet."""
    found, first = _found(body, state)
    return _attached(
        results.table(state.workspace, found, first=first), "text/csv; charset=utf-8", "results.csv"
    )


@router.post("/search.zip", response_class=Response, responses=_file("application/zip"))
def search_archive(body: SearchRequest, state: State) -> Response:
    """Returns the pictures that a search finds in a zip with their table; up to 100 at once."""
    found, first = _found(body, state)
    with state.packing.taken():
        packed = results.archive(state.workspace, found, first=first)
    return _attached(packed, "application/zip", "results.zip")


def _found(body: SearchRequest, state: Serving) -> tuple[results.Found, int]:
    settings = state.settings
    question = question_of(body, longest=settings.max_query_characters, default_k=settings.default_k)
    answer = state.find(question, release=body.release)
    return [(hit.image_id, hit.score) for hit in answer.hits], answer.first


def _attached(data: bytes, kind: str, name: str) -> Response:
    return Response(data, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
