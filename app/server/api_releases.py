"""REST about releases beside promoting: where they come from, and what two of them differ in."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter

from app.learning.difference import difference_between
from app.server.api_context import State

router = APIRouter(prefix="/v1")


@router.get("/lineage")
def lineage(state: State) -> dict[str, Any]:
    """Lists every release with its parent, and when it was live, by whom and why; newest first."""
    return {"releases": [asdict(node) for node in state.lineage()]}


@router.get("/releases/{release_id}/difference/{other_id}")
def difference(release_id: str, other_id: str, state: State) -> dict[str, Any]:
    """Says what a second release has that the first has not, and the other way round."""
    return asdict(difference_between(state.workspace, release_id, other_id))
