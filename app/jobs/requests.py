"""What the product asks of a worker: updates, uploads, making the gallery of a release whole, removing a chunk.

An update's job holds its `UpdateRequest`, and beside it the forecast of what it takes.
"""

from __future__ import annotations

import logging
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.desk.chunks import Decided, Withdrawn
from app.desk.errors import AppError
from app.desk.jobs import UpdateRequest
from app.desk.releases import SUFFIX
from app.home import holding
from app.home.commits import CommitRecord
from app.home.folder import Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.jobs import sharing, worker
from app.learning import going_live, standing
from ingest.errors import IngestError
from ingest.intake import IntakeOptions
from ingest.records import JobRecord
from ingest.standing import WITHDRAWN
from model_updates.errors import ModelUpdateError

logger = logging.getLogger(__name__)

_HARMLESS = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,80}}{re.escape(SUFFIX)}")
FOLLOWED = IntakeOptions(follow=True)
"""How a watched folder is read."""


def update_job(workspace: Workspace, request: UpdateRequest) -> JobRecord:
    """Queues an update together with what it is expected to take.

    The request was found to fit.

    Raises:
        UpdateRunning: another update is queued or running.
    """
    from app.learning.forecast import forecast  # loads what learns, which a server that searches does without

    worker.refuse_second_update(workspace.settings)
    try:
        expected = {"forecast": asdict(forecast(workspace, request))}
    except (AppError, IngestError, ModelUpdateError) as error:
        logger.warning("no forecast for chunk %s: %s", request.chunk, error)  # the update will say so itself
        expected = {}
    return worker.submit(workspace.settings, "update", request.to_json() | expected)


def intake_job(
    settings: Settings,
    received: Path,
    options: IntakeOptions,
    *,
    by: str,
    then: UpdateRequest | None = None,
    is_held: bool = False,
    held_why: str = "",
) -> JobRecord:
    """Queues taking an upload in.

    The file lies on the home's disk and is the job's from now on, which removes it when it was taken in; limits stay
    the worker's own defaults. `then` is an update to start afterwards, whatever chunk it names. With `is_held` the
    chunk teaches nothing until somebody accepts it; without `held_why` the reason is that who asked may not let a
    chunk teach.
    """
    home = Home.open(settings.home)
    arguments = intake_arguments(received.name, options, by=by, then=then) | {
        "held": is_held,
        "held_why": held_why,
        "kept": sharing.keep(home, received),
    }
    job = worker.submit(settings, "ingest", arguments)
    folder = home.staging / job.id
    folder.mkdir(exist_ok=True)
    received.rename(folder / received.name)
    return job


def intake_arguments(
    source: str, options: IntakeOptions, *, by: str, then: UpdateRequest | None = None
) -> dict[str, Any]:
    """Returns an `ingest` job's arguments; `source` lies in the job's staging folder."""
    return {
        "source": source,
        "by": by,
        "options": {
            "language": options.language,
            "domain": options.domain,
            "mapping": dict(options.mapping),
            "name": options.name,
            "in_gallery": options.in_gallery,
            "pictures_beside": options.pictures_beside,
            "fetch": options.fetch,
        },
        "then": then.to_json() if then else None,
    }


def folder_job(workspace: Workspace, folder: Path, *, by: str) -> JobRecord:
    """Queues looking at a folder of this machine again; one that waits sees what changed since, too."""
    for waiting in workspace.catalog.jobs(state="queued"):
        is_it = waiting.kind == "folder" and waiting.arguments["folder"] == str(folder)
        if is_it and worker.is_for(workspace.home, waiting):
            return waiting
    asked = {"folder": str(folder), "by": by}
    if holding.is_shared(workspace.home):
        asked["machine"] = holding.place(workspace.home)
    return worker.submit(workspace.settings, "folder", asked)


def import_job(settings: Settings, received: Path, *, name: str, sha256: str | None, by: str) -> JobRecord:
    """Queues taking in a release of another home.

    The package is on the home's disk and the job's from now on, which removes it. Without `sha256`, its checksum as
    its sender told it, it is trusted to be what it says.
    """
    # What is said of it names the file; no name that a stranger chose touches the disk, but for letters as these.
    called = name if _HARMLESS.fullmatch(name) else received.name
    home = Home.open(settings.home)
    asked = {"source": called, "name": name, "sha256": sha256, "by": by, "kept": sharing.keep(home, received)}
    job = worker.submit(settings, "import", asked)
    folder = home.staging / job.id
    folder.mkdir(exist_ok=True)
    received.rename(folder / called)
    return job


def gallery_job(workspace: Workspace, commit: CommitRecord) -> tuple[int, JobRecord | None]:
    """Queues adding the pictures that were taken in after a release was made, if there are any.

    Returns how many pictures the release does not hold, and the queued job; 0 and None when it holds all.
    """
    missing = going_live.left_out(workspace, commit.release)
    if not missing:
        return 0, None
    why = f"{missing} pictures that {commit.release} did not hold"
    return missing, worker.submit(workspace.settings, "gallery", {"why": why, "by": commit.by})


def remove_chunk(workspace: Workspace, chunk: str, *, why: str, by: str) -> JobRecord:
    """Withdraws a chunk, if it is not withdrawn already, and queues rebuilding what is live without it.

    The reason is kept with the chunk and in the history.

    Raises:
        UnknownChunk: None or several match.
        UsageProblem: It cannot be removed, or no reason was given; nothing changed.
        UpdateRunning: Something is being taught already; nothing changed.
    """
    record = workspace.catalog.chunk(chunk)
    standing.require_reason(why, f'perennial remove {record.id} --why "its captions are wrong"')
    from app.learning import removal  # likewise

    removal.plan(workspace, record.id, by=by)
    worker.refuse_second_update(workspace.settings)
    if record.standing != WITHDRAWN:
        standing.withdraw(workspace, record.id, why=why, by=by)
    return worker.submit(workspace.settings, "removal", {"chunk": record.id, "why": why, "by": by})


def decision_job(workspace: Workspace, decided: Decided, *, by: str) -> JobRecord | None:
    """Queues what follows from a decision: new pictures become searchable, and the chunk is checked again.

    None when no pair joined the chunk or left it.
    """
    if not decided.has_changed:
        return None
    for waiting in workspace.catalog.jobs(state="queued"):
        if waiting.kind == "gallery" and waiting.arguments.get("check") == decided.chunk.id:
            return waiting  # it will see this decision, too
    why = f"{decided.new_pictures} pictures of chunk {decided.chunk.id}, whose pairs were decided"
    arguments = {"why": why, "by": by, "check": decided.chunk.id}
    return worker.submit(workspace.settings, "gallery", arguments)


def pictures_job(workspace: Workspace, *, why: str, by: str) -> JobRecord:
    """Queues making the live gallery whole after single pictures left it or came back; one that waits sees them too."""
    for waiting in workspace.catalog.jobs(state="queued"):
        if waiting.kind == "gallery":
            return waiting
    return worker.submit(workspace.settings, "gallery", {"why": why, "by": by})


def withdrawal_job(workspace: Workspace, gone: Withdrawn, *, by: str) -> JobRecord | None:
    """Queues taking a withdrawn chunk's pictures out of search; None when every one of them stays."""
    if not gone.pictures:
        return None
    why = f"{gone.pictures} pictures of chunk {gone.chunk.id}, which was withdrawn, left"
    return worker.submit(workspace.settings, "gallery", {"why": why, "by": by})
