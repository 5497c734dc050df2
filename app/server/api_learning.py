"""REST for admins: uploading chunks, starting updates, watching jobs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Form, Response, UploadFile

from app.desk.errors import UsageProblem
from app.desk.jobs import UpdateRequest
from app.jobs import worker
from app.learning.judged import judged_job
from app.server import deciding
from app.server.api_context import Admin, Anyone, Contributor, State
from app.server.api_models import Accept, StartUpdate, Withdraw
from app.server.api_reports import ChunkOut, JudgedOut, chunk_out, judged_out
from app.server.left_out import shown, shown_model
from app.server.uploads import column_names, receive
from ingest.intake import IntakeOptions
from ingest.records import ChunkRecord
from ingest.report import guarded
from model_updates.references import REFERENCES
from model_updates.strategies import STRATEGIES, strategy_named
from model_updates.strategy_pages import document, facts

router = APIRouter(prefix="/v1")

_COLUMNS = ("where", "outcome", "code", "sentence")
_MOST_JOBS = 200


@router.post("/chunks", status_code=202)
def add_chunk(  # noqa: PLR0913 - one parameter per field
    file: UploadFile,
    state: State,
    account: Contributor,
    language: Annotated[str | None, Form(max_length=40)] = None,
    domain: Annotated[str | None, Form(max_length=80)] = None,
    mapping: Annotated[list[str] | None, Form(alias="map", max_length=20)] = None,
    name: Annotated[str | None, Form(max_length=120)] = None,
    gallery: Annotated[bool, Form()] = True,
    strategy: Annotated[str | None, Form(max_length=80)] = None,
    update: Annotated[bool, Form()] = False,
) -> dict[str, Any]:
    """Starts taking an upload in and returns the job; its result holds the report.

    `map` is like `text=caption`, once per column; `name` is what to call the chunk, else the file's name; with
    `gallery=false` search does not find its pictures. With `update=true` an update follows, and the result names its
    job; that needs an admin. What a contributor uploads is searchable, and held until an admin accepts it.
    """
    if update:
        account.require_admin()
    if strategy is not None and not update:
        raise UsageProblem("A strategy was named but no update asked for; send update=true too.")
    then = None
    if update:
        # What cannot be done later is refused now, before anything is taken in.
        if strategy is not None:
            strategy_named(strategy)
        worker.refuse_second_update(state.settings)
        then = UpdateRequest(chunk="", strategy=strategy, by=account.name)
    options = IntakeOptions(
        language=language or None,
        domain=domain or None,
        mapping=column_names(mapping or []),
        name=(name or "").strip() or None,
        in_gallery=gallery,
    )
    sent_as = file.filename or "upload"
    received = receive(file.file, sent_as, state.workspace.home.inbox)
    job = state.work.take_in(
        received, options, name=sent_as, by=account.name, then=then, is_held=not account.may("admin")
    )
    return {"job": asdict(job)}


@router.get("/chunks")
def chunks(state: State) -> dict[str, Any]:
    """Lists all chunks, newest first."""
    return {"chunks": [_chunk(record) for record in reversed(state.workspace.catalog.chunks())]}


@router.get("/chunks/{chunk_id}")
def chunk(chunk_id: str, state: State, account: Anyone) -> ChunkOut:
    """Returns a chunk with its standing, what its checks found, and its intake report."""
    return shown_model(chunk_out(state.workspace.catalog.chunk(chunk_id)), state, account)


@router.get(
    "/chunks/{chunk_id}/report.csv",
    response_class=Response,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
def report_csv(chunk_id: str, state: State) -> Response:
    """Returns the rows of a chunk's report that have something to say, as CSV."""
    record = state.workspace.catalog.chunk(chunk_id)
    headers = {"Content-Disposition": f'attachment; filename="chunk-{record.id}.csv"'}
    return Response(csv_of(record.report), media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/chunks/{chunk_id}/accept")
def accept(chunk_id: str, body: Accept, state: State, account: Admin) -> ChunkOut:
    """Lets a chunk teach in spite of what its checks found; with `measure` its held-out pairs measure others."""
    return chunk_out(deciding.accept(state, chunk_id, why=body.why, by=account.name, measure=body.measure))


@router.post("/chunks/{chunk_id}/withdraw")
def withdraw(chunk_id: str, body: Withdraw, state: State, account: Admin) -> dict[str, Any]:
    """Takes a chunk out of training, measuring and search; says which releases learned from it."""
    gone, job = deciding.withdraw(state, chunk_id, why=body.why, by=account.name)
    return {
        "chunk": chunk_out(gone.chunk).model_dump(),
        "pictures": gone.pictures,
        "learned": gone.learned,
        "back_to": gone.back_to,
        "sentence": gone.sentence,
        "job": asdict(job) if job else None,
    }


@router.post("/chunks/{chunk_id}/remove", status_code=202)
def remove(chunk_id: str, body: Withdraw, state: State, account: Admin) -> dict[str, Any]:
    """Withdraws a chunk that what is live has learned from, and starts rebuilding that without it; returns the job.

    What was taught after the chunk is taught again, with the same strategies, options and seeds, to the last version
    before it. Each step passes the gate; until the last one has, what is live stays live.
    """
    return asdict(deciding.remove(state, chunk_id, why=body.why, by=account.name))


@router.get("/strategies")
def strategies() -> dict[str, Any]:
    """Lists the strategies that an update can name, family by family, and the references beside them."""
    return document(STRATEGIES, REFERENCES)


@router.get("/strategies/{name}")
def strategy(name: str) -> dict[str, Any]:
    """Returns what a strategy trains, keeps and costs, and its options."""
    return facts(strategy_named(name))


@router.post("/updates", status_code=202)
def start_update(body: StartUpdate, state: State, account: Admin) -> dict[str, Any]:
    """Starts learning from a chunk and returns the job."""
    return asdict(state.work.start_update(UpdateRequest(**body.model_dump(), by=account.name)))


@router.post("/updates/forecast")
def forecast_update(body: StartUpdate, state: State, account: Admin) -> dict[str, Any]:
    """Says which strategy would teach a chunk and why, whether it fits, and what it would take; starts nothing."""
    request = UpdateRequest(**body.model_dump(), by=account.name)
    recommended, why = state.recommended(request.chunk)
    found = state.forecast(request)
    facts = {"recommended": recommended, "why": why, "misfit": state.misfit(request.chunk, found.strategy)}
    return found.to_json() | facts


@router.get("/jobs")
def jobs(state: State, account: Anyone) -> dict[str, Any]:
    """Lists the latest jobs, newest first."""
    found = [asdict(job) for job in state.workspace.catalog.jobs(limit=_MOST_JOBS)]
    return shown({"jobs": found}, state, account)


@router.get("/jobs/{job_id}")
def job(job_id: str, state: State, account: Anyone) -> dict[str, Any]:
    """Returns a job with its progress and result."""
    return shown(asdict(state.job(job_id)), state, account)


@router.get("/jobs/{job_id}/gate")
def job_gate(job_id: str, state: State, account: Anyone) -> JudgedOut:
    """Returns the gate's whole report of an update, also of a rejected one; null before it was judged."""
    return shown_model(judged_out(judged_job(state.workspace.catalog, job_id)), state, account)


@router.post("/jobs/{job_id}/cancel")
def cancel(job_id: str, state: State, account: Admin) -> dict[str, Any]:
    """Stops a job; nothing live changes."""
    return asdict(state.work.cancel(job_id))


@router.post("/jobs/{job_id}/resume", status_code=202)
def resume(job_id: str, state: State, account: Admin) -> dict[str, Any]:
    """Goes on with a job that was interrupted, cancelled or failed, from its last checkpoint."""
    return asdict(state.work.resume(job_id))


def csv_of(report: Mapping[str, Any]) -> str:
    """Returns a kept report's rows as CSV with a byte-order mark, safe to open in a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for row in report.get("rows", []):
        writer.writerow([guarded(str(row[column])) for column in _COLUMNS])
    return "\ufeff" + text.getvalue()


def _chunk(record: ChunkRecord) -> dict[str, Any]:
    facts = asdict(record)
    facts.pop("report")
    return facts
