"""REST for what a server does in a process of its own, and what goes on: uploads, packages, examinations, events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, UploadFile
from fastapi.responses import FileResponse
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field, StrictBool
from starlette.concurrency import run_in_threadpool

from app.desk.chunks import column_names
from app.desk.errors import UsageProblem
from app.desk.fields import Strict
from app.desk.jobs import UpdateRequest
from app.desk.operation import document_of
from app.jobs import worker
from app.jobs.intake import receive_stream, take_release_in
from app.server.api_context import REFUSED, AdminDesk, AnyDesk, ContributorDesk, ErrorOut, NoQuery, State
from app.server.routes import shown
from ingest.intake import IntakeOptions
from ingest.records import JobRecord
from model_updates.references import REFERENCES
from model_updates.strategies import require_strategy
from model_updates.strategy_pages import document, every_strategy, facts_named

router = APIRouter(prefix="/v1", responses=REFUSED)

_MULTIPART = Form(media_type="multipart/form-data")
_PACKAGE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
}


class Started(BaseModel):
    """The job that was started."""

    job: JobRecord


class Upload(Strict):
    """`POST /v1/chunks`."""

    file: UploadFile
    language: str | None = Field(default=None, max_length=40)
    domain: str | None = Field(default=None, max_length=80)
    mapping: list[str] = Field(default=[], alias="map", max_length=20)
    name: str | None = Field(default=None, max_length=120)
    gallery: bool = True
    fetch: bool = False
    strategy: str | None = Field(default=None, max_length=80)
    update: bool = False


class PackageUpload(Strict):
    """`POST /v1/packages`."""

    file: UploadFile
    sha256: str = Field(default="", max_length=80)


class Examine(Strict):
    """`POST /v1/doctor`; with `every_byte` all files and pictures are read for their checksums."""

    every_byte: StrictBool = True


# Said here as FastAPI would take refusals for events, too.
_REFUSED: dict[int | str, dict[str, Any]] = {
    "4XX": {
        "description": "There is no such job.",
        "content": {"application/json": {"schema": ErrorOut.model_json_schema()}},
    }
}


async def _sent_once(request: Request) -> None:
    """Refuses a form that says something twice, of which the last would count and the others be gone unsaid."""
    form = await request.form()
    for name in form:
        count = len(form.getlist(name))
        if count > 1 and name != "map":
            raise UsageProblem(
                f"{name}: {count} were sent, and one is taken at a time. Nothing was taken in."
            )


_SENT_ONCE = [Depends(_sent_once)]


@router.post("/chunks", status_code=202, dependencies=_SENT_ONCE)
def add_chunk(
    form: Annotated[Upload, _MULTIPART], desk: ContributorDesk, state: State, nothing: NoQuery
) -> Started:
    """Starts taking an upload in and returns the job; its result holds the report.

    `map` is like `text=caption`, once per column; `name` is what to call the chunk, else the file's name; with
    `gallery=false` search does not find its pictures; with `fetch=true` pictures that a table names by address are
    fetched, where the setting `allow_fetch` allows it. With `update=true` an update follows, and the result names its
    job; that needs an admin. What a contributor uploads is searchable, and held until an admin accepts it.
    """
    state.work.require_room()
    strategy = form.strategy
    if form.update:
        desk.require_admin()
    if strategy is not None and not form.update:
        raise UsageProblem("A strategy was named but no update asked for; send update=true too.")
    then = None
    if form.update:
        # What cannot be done later is refused now, before anything is taken in.
        if strategy is not None:
            require_strategy(strategy)
        worker.refuse_second_update(desk.installed)
        then = UpdateRequest(chunk="", strategy=strategy, by=desk.by)
    options = IntakeOptions(
        language=form.language or None,
        domain=form.domain or None,
        mapping=column_names(form.mapping),
        name=(form.name or "").strip() or None,
        in_gallery=form.gallery,
        fetch=form.fetch,
    )
    sent_as = form.file.filename or "upload"
    received = receive_stream(form.file.file, sent_as, desk.home.inbox)
    return Started(job=desk.take_in(received, options, sent_as=sent_as, then=then))


@router.get("/strategies")
def strategies(nothing: NoQuery) -> dict[str, Any]:
    """Lists the strategies that an update can name, family by family, and the references beside them."""
    return document(every_strategy(), REFERENCES)


@router.get("/strategies/{name}")
def strategy(name: str, nothing: NoQuery) -> dict[str, Any]:
    """Returns what a strategy trains, keeps and costs, and its options."""
    return asdict(facts_named(name))


@router.post("/doctor", status_code=202)
def examine(body: Examine, desk: AdminDesk, nothing: NoQuery) -> JobRecord:
    """Starts looking for everything that can be wrong with the home, and returns the job.

    Its result has the worst `level`, a `sentence`, and what was `found`. Nothing is changed. While one examination
    is going on, no other is started: that one is returned.
    """
    return desk.start_examination(every_byte=body.every_byte)


@router.get("/releases/{release_id}/package", response_class=FileResponse, responses=_PACKAGE)
def package(release_id: str, desk: AdminDesk, nothing: NoQuery) -> FileResponse:
    """Returns a release as one file for another home; the header `X-Perennial-Sha256` is its checksum."""
    made = desk.packed(release_id)
    headers = {"X-Perennial-Sha256": made.sha256}
    return FileResponse(made.path, filename=made.path.name, headers=headers, media_type="application/zip")


@router.post("/packages", status_code=202, dependencies=_SENT_ONCE)
def add_package(form: Annotated[PackageUpload, _MULTIPART], desk: AdminDesk, nothing: NoQuery) -> Started:
    """Starts taking in a release of another home and returns the job; it is not live before somebody promotes it."""
    name = form.file.filename or "package"
    received = receive_stream(form.file.file, name, desk.home.inbox)
    job = take_release_in(desk.installed, received, name, form.sha256, desk.by)
    desk.begin(job)
    return Started(job=job)


def _job(job_id: str, desk: AnyDesk, nothing: NoQuery) -> JobRecord:
    # Asked for before the answer begins: afterwards its status can no longer say that there is no such job.
    return desk.job(job_id)


@router.get("/jobs/{job_id}/events", response_class=EventSourceResponse, responses=_REFUSED)
async def events(
    job: Annotated[JobRecord, Depends(_job)], state: State, desk: AnyDesk, nothing: NoQuery
) -> AsyncIterator[ServerSentEvent]:
    """Streams a job as server-sent events: `job` now and whenever it changes, `end` when it has ended.

    One that was interrupted has ended once nobody begins it again. The data of each event is the job as
    `GET /v1/jobs/{id}` gives it. Whoever connects again is told how it stands.
    """
    seen: JobRecord | None = None
    while not state.is_stopping:
        is_over = desk.is_over(job)
        if job != seen or is_over:
            seen = job
            name = "end" if is_over else "job"
            yield ServerSentEvent(data=shown(document_of(job), desk), event=name, retry=2000)
        if is_over:
            return
        await asyncio.sleep(state.settings.poll_seconds)
        job = await run_in_threadpool(desk.job, job.id)
