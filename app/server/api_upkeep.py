"""REST for whoever looks after a server: the doctor, logs, settings, and what lies in the chunks."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import StrictBool

from app.home import logs
from app.home.settings import described
from app.jobs.job_runner import home_log
from app.learning import inventory
from app.server.api_context import Admin, State
from app.server.api_models import Strict

router = APIRouter(prefix="/v1")

_Lines = Annotated[int, Query(ge=1, le=5000, description="How many, counted from the newest.")]
_Limit = Annotated[int, Query(ge=1, le=1000)]
_Offset = Annotated[int, Query(ge=0, lt=2**31)]


class Examine(Strict):
    """`POST /v1/doctor`; with `every_byte` all files and pictures are read for their checksums."""

    every_byte: StrictBool = True


@router.post("/doctor", status_code=202)
def examine(body: Examine, state: State, account: Admin) -> dict[str, Any]:
    """Starts looking for everything that can be wrong with the home, and returns the job.

    Its result has the worst `level`, a `sentence`, and what was `found`. Nothing is changed. While one examination
    is going on, no other is started: that one is returned.
    """
    return asdict(state.work.examine(every_byte=body.every_byte, by=account.name))


@router.get("/log")
def log(state: State, account: Admin, lines: _Lines = 200) -> dict[str, Any]:
    """Returns the last lines of the server's log, oldest first."""
    return {"lines": logs.last_lines(logs.log_file(state.settings.home), lines)}


@router.get("/jobs/{job_id}/log")
def job_log(job_id: str, state: State, account: Admin, lines: _Lines = 200) -> dict[str, Any]:
    """Returns the last lines that a job's process wrote; none once its folder has been removed."""
    job = state.workspace.catalog.job(job_id)
    return {"lines": logs.last_lines(home_log(state.settings, job.id), lines)}


@router.get("/settings")
def settings(state: State, account: Admin) -> dict[str, Any]:
    """Returns every setting: its value, its default and what it means."""
    return {"settings": [asdict(one) for one in described(state.settings)]}


@router.get("/copies")
def copies(state: State, limit: _Limit = 100, offset: _Offset = 0) -> dict[str, Any]:
    """Returns pictures of the gallery that show one thing, a list for each thing, the longest first."""
    total, found = inventory.things(state.workspace, limit=limit, offset=offset)
    return {"total": total, "things": [asdict(one) for one in found]}
