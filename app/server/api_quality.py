"""REST for how good releases are: slices by versions, what was lost, drift, coverage, and what is asked for."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.feedback.asked import WINDOW_DAYS, advice, asked_languages
from app.learning.drift import drift_between
from app.learning.lost import slice_moves
from app.learning.quality import coverage, quality_table
from app.server.api_context import Admin, State

router = APIRouter(prefix="/v1")

_Release = Annotated[str, Query(min_length=1, max_length=80)]
_View = Annotated[str, Query(max_length=20, description="own, mixed or memory")]


@router.get("/quality")
def quality(
    state: State,
    metric: Annotated[
        str, Query(max_length=20, description="t2i_r1, t2i_r5, t2i_r10 or t2i_mean")
    ] = "t2i_r10",
    view: _View = "own",
) -> dict[str, Any]:
    """Returns recall of each slice under each released version, its coverage, and the languages that are asked for."""
    workspace = state.workspace
    table = quality_table(workspace, metric=metric, view=view)
    live = state.live()
    asked = asked_languages(workspace.catalog, live.languages if live else ())
    return {
        "table": asdict(table),
        "coverage": [asdict(one) for one in coverage(workspace)],
        "asked": {"days": WINDOW_DAYS, "languages": [asdict(one) for one in asked], "advice": advice(asked)},
    }


@router.get("/quality/moves")
def moves(
    language: Annotated[str, Query(min_length=1, max_length=40)],
    domain: Annotated[str, Query(min_length=1, max_length=80)],
    before: _Release,
    after: _Release,
    state: State,
    account: Admin,
    view: _View = "own",
) -> dict[str, Any]:
    """Looks a slice's captions up under two releases, today; returns those that lost and won most."""
    return asdict(slice_moves(state.workspace, language, domain, before, after, view=view))


@router.get("/drift")
def drift(
    before: _Release,
    after: _Release,
    state: State,
    account: Admin,
    pairs: Annotated[int, Query(ge=2, le=2000)] = 500,
) -> dict[str, Any]:
    """Says how far the vectors of two releases have turned, on held-out pairs (SAM, RAM, ImAM)."""
    return asdict(drift_between(state.workspace, before, after, most=pairs))
