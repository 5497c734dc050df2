"""REST that goes on: a job's events as they happen, and many searches in one request with a status each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field, ValidationError
from starlette.concurrency import run_in_threadpool

from app.server.api_context import Anyone, State
from app.server.api_errors import ErrorOut, sentence_of, trouble_of
from app.server.api_models import SearchResponse, Strict
from app.server.api_query import SearchRequest
from app.server.api_search import search
from app.server.left_out import shown
from app.server.serving import OWN_ERRORS
from ingest.records import FINAL_STATES, JobRecord

router = APIRouter(prefix="/v1")

MOST_SEARCHES = 64
# Said here as FastAPI would take refusals for events, too.
_REFUSED: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "There is no such job.",
        "content": {"application/json": {"schema": ErrorOut.model_json_schema()}},
    }
}


class Searches(Strict):
    """`POST /v1/searches`: each item is what `POST /v1/search` takes, and is judged by itself."""

    searches: list[dict[str, Any]] = Field(min_length=1, max_length=MOST_SEARCHES)


class SearchedItem(BaseModel):
    """What became of one search: its answer, or why there is none."""

    status: int
    answer: SearchResponse | None = None
    error: str | None = None
    code: str | None = None


class Searched(BaseModel):
    """One item for each search, in the order they were asked."""

    results: list[SearchedItem]


def _job(job_id: str, state: State) -> JobRecord:
    # Asked for before the answer begins: afterwards its status can no longer say that there is no such job.
    return state.job(job_id)


@router.get("/jobs/{job_id}/events", response_class=EventSourceResponse, responses=_REFUSED)
async def events(
    job: Annotated[JobRecord, Depends(_job)], state: State, account: Anyone
) -> AsyncIterator[ServerSentEvent]:
    """Streams a job as server-sent events: `job` now and whenever it changes, `end` when it has ended.

    The data of each event is the job as `GET /v1/jobs/{id}` gives it. Whoever connects again is told how it stands.
    """
    seen: JobRecord | None = None
    while not state.is_stopping:
        if job != seen:
            seen = job
            name = "end" if job.state in FINAL_STATES else "job"
            yield ServerSentEvent(data=shown(asdict(job), state, account), event=name, retry=2000)
        if job.state in FINAL_STATES:
            return
        await asyncio.sleep(state.settings.poll_seconds)
        job = await run_in_threadpool(state.job, job.id)


@router.post("/searches")
def searches(body: Searches, state: State) -> Searched:
    """Asks up to 64 searches; one that cannot be answered does not keep the others from it."""
    return Searched(results=[_one(item, state) for item in body.searches])


def _one(item: dict[str, Any], state: State) -> SearchedItem:
    try:
        return SearchedItem(status=200, answer=search(SearchRequest.model_validate(item), state))
    except ValidationError as error:
        said = " ".join(sentence_of(problem) for problem in error.errors()[:3])
        return SearchedItem(status=422, error=said, code="invalid_request")
    except OWN_ERRORS as error:
        trouble = trouble_of(error)
        return SearchedItem(status=trouble.status, error=trouble.sentence, code=trouble.code)
