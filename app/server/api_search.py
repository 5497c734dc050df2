"""REST for everybody: searching, comparing, pictures, and reading releases."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from app.home.store import ReleaseRecord
from app.learning.judged import judged_release
from app.query.results import picture_to_look_at
from app.query.snapshot import Answer
from app.server.api_context import Admin, Anyone, State
from app.server.api_models import (
    CompareRequest,
    FoundCaptionOut,
    PartOut,
    ReleaseDetail,
    ReleaseOut,
    RollBack,
    SearchResponse,
    Why,
    search_response,
)
from app.server.api_query import SearchRequest, question_of
from app.server.api_reports import judged_out
from app.server.left_out import require_shown, shown_model
from app.server.serving import Serving, WentLive

router = APIRouter(prefix="/v1")

# A picture's address names its content, so what is kept can never become stale. Private: behind a password.
_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.post("/search")
def search(body: SearchRequest, state: State) -> SearchResponse:
    """Finds pictures by texts, pictures, both, or what is like some of the gallery's."""
    settings = state.settings
    question = question_of(body, longest=settings.max_query_characters, default_k=settings.default_k)
    answer = state.find(question, release=body.release)
    described = _decorated(state, answer)
    described.mode = answer.mode
    described.parts = [
        PartOut(kind=term.kind, value=term.value[:200], weight=term.weight, at=term.at)
        for term in answer.terms
    ]
    described.index_size, described.searched = answer.gallery, answer.searched
    described.first, described.next, described.relevance = answer.first, answer.next, answer.relevance
    described.eta, described.unlearned = answer.eta, answer.unlearned
    described.captions = [
        FoundCaptionOut(text=one.text, language=one.language, score=one.score, images=list(one.images))
        for one in answer.captions
    ]
    return described


@router.post("/compare")
def compare(body: CompareRequest, state: State) -> dict[str, Any]:
    """Asks two releases the same; says how pictures moved and what each release measured."""
    compared = state.compare(body.text, body.a, body.b, language=body.language, k=body.k)
    return {
        "a": _decorated(state, compared.a).model_dump(),
        "b": _decorated(state, compared.b).model_dump(),
        "overlap": compared.overlap,
        "moves": [
            {"id": move.image_id, "rank_a": move.rank_a, "rank_b": move.rank_b} for move in compared.moves
        ],
        "slices": {
            side: [summary.to_json() for summary in state.slices(answer.release)]
            for side, answer in (("a", compared.a), ("b", compared.b))
        },
    }


@router.get("/images/{image_id}/thumbnail", response_class=Response, responses=_PICTURE)
def thumbnail(image_id: str, state: State, account: Anyone) -> Response:
    """Returns a picture's thumbnail."""
    require_shown(image_id, state, account)
    return Response(state.workspace.blobs.thumbnail(image_id), media_type="image/webp", headers=_FOREVER)


@router.get("/images/{image_id}", response_class=Response, responses=_PICTURE)
def image(image_id: str, state: State, account: Anyone) -> Response:
    """Returns a picture to look at: drawn anew, so that nothing hidden in the uploaded file goes out."""
    require_shown(image_id, state, account)
    data = picture_to_look_at(state.workspace, image_id)
    return Response(data, media_type="image/webp", headers=_FOREVER)


@router.get("/captions")
def captions(
    state: State,
    text: Annotated[str, Query(min_length=1, max_length=500)],
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> dict[str, Any]:
    """Finds captions that contain all words of a text, the last of them perhaps only begun."""
    found = state.workspace.catalog.find_captions(text, limit=limit)
    return {"captions": [asdict(caption) for caption in found]}


@router.get("/releases")
def releases(state: State) -> dict[str, list[ReleaseOut]]:
    """Lists all releases, newest first."""
    live = state.live_id()
    return {"releases": [ReleaseOut(**_facts(record, live)) for record in state.releases()]}


@router.get("/releases/{release_id}")
def release(release_id: str, state: State, account: Anyone) -> ReleaseDetail:
    """Returns a release with its gate report, and what its shadow has shown, if it was in one."""
    record = state.workspace.releases.release(release_id)
    told = state.shadowing.report(record.id)
    detail = ReleaseDetail(
        **_facts(record, state.live_id()),
        manifest=record.manifest.to_json(),
        judged=judged_out(judged_release(state.workspace.releases, record.id)),
        shadow=asdict(told) if told.started else None,
    )
    return shown_model(detail, state, account)


@router.post("/releases/{release_id}/promote")
def promote(release_id: str, body: Why, state: State, account: Admin) -> dict[str, Any]:
    """Makes a release live."""
    return _committed(state.promote(release_id, why=body.why, by=account.name, force=body.force))


@router.post("/rollback")
def roll_back(body: RollBack, state: State, account: Admin) -> dict[str, Any]:
    """Goes back to an earlier release."""
    return _committed(state.roll_back(body.release, why=body.why, by=account.name))


def _committed(done: WentLive) -> dict[str, Any]:
    return {
        "release": done.commit.release,
        "commit": done.commit.number,
        "reason": done.commit.reason,
        "left_out": done.left_out,
        "job": asdict(done.job) if done.job else None,
    }


def _decorated(state: Serving, answer: Answer) -> SearchResponse:
    return search_response(
        answer, state.found([hit.image_id for hit in answer.hits], answer.language.split(" ")[0])
    )


def _facts(record: ReleaseRecord, live: str | None) -> dict[str, Any]:
    said = record.manifest
    return {
        "id": record.id,
        "live": record.id == live,
        "version": record.version,
        "generation": record.generation,
        "parent": said.parent,
        "strategy": said.strategy,
        "verdict": said.verdict,
        "mode": said.mode,
        "images_embedded": said.images_embedded,
        "languages": list(said.languages),
        "created": said.created,
    }
