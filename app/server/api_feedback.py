"""REST for what people say of answers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Query
from fastapi.responses import FileResponse
from pydantic import Field, model_validator
from starlette.background import BackgroundTask

from app.feedback import votes as feedback
from app.server import reviewing
from app.server.api_context import Admin, Anyone, State
from app.server.api_models import Strict
from ingest.feedback import FeedbackRecord

router = APIRouter(prefix="/v1")

_Release = Annotated[str, Field(min_length=1, max_length=80)]
_ZIP: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
}


class Feedback(Strict):
    """`POST /v1/feedback`: a thumb (`release`, `image`, `verdict`), or a vote between releases (`a`, `b`, `choice`)."""

    query: str = Field(min_length=1, max_length=2000)
    language: str = Field(default="auto", min_length=1, max_length=80)
    release: _Release | None = None
    image: str | None = Field(default=None, max_length=64)
    verdict: Literal["up", "down"] | None = None
    a: _Release | None = None
    b: _Release | None = None
    choice: Literal["a", "b", "tie", "both_bad"] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        thumb = [self.release, self.image, self.verdict]
        vote = [self.a, self.b, self.choice]
        whole = [all(one is not None for one in kind) for kind in (thumb, vote)]
        begun = [any(one is not None for one in kind) for kind in (thumb, vote)]
        if whole != begun or sum(whole) != 1:
            raise ValueError("send release, image and verdict for a thumb, or a, b and choice for a vote")
        try:
            self.query.encode()
        except UnicodeEncodeError as error:
            raise ValueError("the query is not valid text") from error
        return self


@router.post("/feedback", status_code=201)
def give(body: Feedback, state: State, account: Anyone) -> dict[str, Any]:
    """Keeps a thumb or a vote; a person's newest word on the same thing takes the place of an earlier one."""
    said = {"query": body.query, "language": body.language, "by": account.name}
    record: FeedbackRecord
    if body.image is not None:
        facts = {"release": str(body.release), "image_id": body.image, "verdict": str(body.verdict)}
        record = feedback.thumb(state.workspace, **said, **facts)
    else:
        sides = {"a": str(body.a), "b": str(body.b), "choice": str(body.choice)}
        record = feedback.vote(state.workspace, **said, **sides)
    return asdict(record)


@router.get("/feedback")
def given(
    state: State, account: Admin, limit: Annotated[int, Query(ge=1, le=10_000)] = 1000
) -> dict[str, Any]:
    """Lists feedback, newest first, and counts all votes by pair of releases."""
    every = state.workspace.catalog.feedback.all()
    return {
        "feedback": [asdict(one) for one in every[:limit]],
        "votes": [asdict(one) for one in feedback.votes(every)],
    }


class PinIt(Strict):
    """`POST /v1/feedback/{number}/pin`: the right picture, which only a thumb up names by itself."""

    image: str = Field(default="", max_length=64)
    language: str = Field(default="", max_length=40)


class RemoveCanary(Strict):
    """`POST /v1/canaries/remove`: the query as it was pinned; its language where it is pinned in several."""

    query: str = Field(min_length=1, max_length=2000)
    language: str = Field(default="", max_length=40)


class TakeProposal(Strict):
    """`POST /v1/feedback/proposal`: the ids of the pairs that stay; all without it."""

    pairs: Annotated[list[Annotated[str, Field(max_length=32)]], Field(max_length=10_000)] | None = None


@router.post("/feedback/{number}/pin")
def pin(
    number: Annotated[int, Field(ge=1, lt=2**63)], state: State, account: Admin, body: PinIt | None = None
) -> dict[str, Any]:
    """Makes what somebody said a canary: updates must keep this picture as the first answer of this query."""
    said = body or PinIt()
    return asdict(reviewing.pin(state, number, image_id=said.image, language=said.language))


@router.get("/canaries")
def canaries(state: State, account: Admin) -> dict[str, Any]:
    """Lists the queries whose first answer updates must keep."""
    return {"canaries": [asdict(one) for one in state.workspace.catalog.pins()]}


@router.post("/canaries/remove")
def remove_canary(body: RemoveCanary, state: State, account: Admin) -> dict[str, Any]:
    """Takes a canary away: updates need not keep its picture any more."""
    return asdict(
        feedback.remove_canary(state.workspace, body.query, language=body.language, by=account.name)
    )


@router.get("/feedback/proposal")
def proposal(state: State, account: Admin) -> dict[str, Any]:
    """Lists the pairs that could be taught of what people said, and counts what was left out and why."""
    return asdict(reviewing.proposal(state))


@router.post("/feedback/proposal.zip", response_class=FileResponse, responses=_ZIP)
def proposal_file(body: TakeProposal, state: State, account: Admin) -> FileResponse:
    """Returns the proposed chunk as a zip to look at: its pictures and a table of their captions."""
    ids = None if body.pairs is None else set(body.pairs)
    file = reviewing.proposal_file(state, ids)
    done = BackgroundTask(file.unlink, missing_ok=True)
    return FileResponse(file, filename=reviewing.file_name(), media_type="application/zip", background=done)


@router.post("/feedback/proposal", status_code=202)
def take_proposal(body: TakeProposal, state: State, account: Admin) -> dict[str, Any]:
    """Takes pairs of the proposal in as a chunk and returns the job; the chunk is held until an admin accepts it."""
    ids = None if body.pairs is None else set(body.pairs)
    return {"job": asdict(reviewing.take_proposal(state, ids, by=account.name))}
