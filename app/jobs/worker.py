"""Jobs run in a process of their own, so that search never waits and a crash takes nothing with it.

A worker holds a kernel lock on `workers/<job>.lock` as long as it lives. Whether it lives is asked of that
lock, not of a process id, which another process may have by now. The job's row in the catalog says what it
does, `staging/<job>/` holds its log and the checkpoints from which a second worker goes on.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.desk.errors import UpdateRunning, UsageProblem
from app.home import cores, holding, lock
from app.home.folder import Home
from app.home.garbage import RESUMABLE
from app.home.settings import Settings
from ingest.catalog import Catalog
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

logger = logging.getLogger(__name__)

KINDS = ("update", "ingest", "folder", "gallery", "removal", "doctor", "import", "repair")
TEACHING = frozenset({"update", "removal"})
"""The kinds of jobs that train: one of them at a time, and one that was interrupted waits for a person."""
LOG = "log.txt"
SETTINGS = "settings.json"

_POLL_SECONDS = 0.2  # reading one row costs well under a millisecond
_START_SECONDS = 30.0  # a Python start on a busy machine, with room
_TAKEN_OVER_SECONDS = 600.0  # after which no other machine will take over what one was at
_STOP_SECONDS = 10.0  # the longest step that Python cannot interrupt is one batch

OnProgress = Callable[[JobRecord], None]


def submit(settings: Settings, kind: str, arguments: Mapping[str, Any]) -> JobRecord:
    """Queues a job; `spawn` starts it.

    `kind` is `update` (arguments: `UpdateRequest.to_json()`), or what `app.jobs.requests` asks for; arguments are
    JSON values.

    Raises:
        UpdateRunning: It would train while another job that trains is queued or running.
        UsageProblem: There is no such kind.
        NoHome: There is no home.
    """
    if kind not in KINDS:
        raise UsageProblem(f"There is no job kind {kind!r}; there are {', '.join(KINDS)}.")
    with _catalog(settings) as (home, catalog):
        if kind in TEACHING:
            _refuse_second_update(home, catalog)
        return catalog.add_job(kind, dict(arguments))


def refuse_second_update(settings: Settings) -> None:
    """For whoever would do something first: refuses what `submit` would refuse.

    Raises:
        UpdateRunning: another update is queued or running.
    """
    with _catalog(settings) as (home, catalog):
        _refuse_second_update(home, catalog)


def spawn(settings: Settings, job_id: str) -> None:
    """Starts a worker for a queued or interrupted job and returns once it is at work.

    If the job has a worker already, nothing happens.
    """
    home = Home.open(settings.home)
    staging = home.staging / job_id
    staging.mkdir(exist_ok=True)
    (staging / SETTINGS).write_text(settings.model_dump_json(), encoding="utf-8")
    command, environment = cores.own_process("app.jobs.job_runner", settings.threads)
    with (staging / LOG).open("ab") as log:
        process = subprocess.Popen(
            [*command, "--home", str(home.root.resolve()), job_id],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
        )
    # Waited for by a thread, whatever happens here: no zombie stays in a server that lives for months.
    threading.Thread(target=process.wait, name=f"worker-{job_id}", daemon=True).start()
    logger.info("job=%s worker=%d", job_id, process.pid)
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and not is_alive(home, job_id) and time.monotonic() < deadline:
        time.sleep(0.02)


def follow(
    settings: Settings, job_id: str, on_progress: OnProgress | None = None, restarts: int = 2
) -> JobRecord:
    """Waits for a job to end and starts its worker again when it dies.

    It is started if nobody has. `on_progress` is called with the job whenever its row has changed, and a dead worker
    is replaced `restarts` times. Returns the job in a final state, or `interrupted` when its worker died once too
    often.
    """
    seen: JobRecord | None = None
    starts_left = restarts
    with _catalog(settings) as (home, catalog):
        while True:
            if catalog.place != home.catalog_place:  # carried there by somebody
                catalog.follow(home.catalog_place)
            # In this order: a worker that is gone has written all it ever will.
            is_working = is_alive(home, job_id)
            job = catalog.job(job_id)
            if seen is None and job.state == "queued":
                starts_left += 1  # the first start is no restart
            if job != seen and on_progress is not None:
                on_progress(job)
            seen = job
            if job.state in FINAL_STATES:
                return job
            if is_working:
                time.sleep(min(_POLL_SECONDS, settings.poll_seconds))
                continue
            if job.state == "running" or not starts_left:
                _note_death(home, catalog, job_id, left=starts_left)
            if not starts_left:
                return catalog.job(job_id)
            starts_left -= 1
            spawn(settings, job_id)


def wait(settings: Settings, job_id: str, stopping: threading.Event) -> JobRecord:
    """Waits for a job that somebody else runs; returns it ended, or as it is when `stopping` is set.

    One that was interrupted is returned, too, when nobody has begun it again for as long as that takes.
    """
    with _catalog(settings) as (home, catalog):
        going_on = time.monotonic()
        while (job := catalog.job(job_id)).state not in FINAL_STATES:
            if job.state != "interrupted":
                going_on = time.monotonic()
            if stopping.wait(settings.poll_seconds) or time.monotonic() - going_on > _START_SECONDS:
                break
            if catalog.place != home.catalog_place:
                catalog.follow(home.catalog_place)
        return job


def resume(settings: Settings, job_id: str) -> JobRecord:
    """Queues a job again that was interrupted, cancelled or failed; it goes on from its last checkpoint.

    One that waits or is at work already is returned as it is. A worker outlives the end of its job by a moment, in
    which it copies the catalog.

    Raises:
        UsageProblem: It has ended well.
        UpdateRunning: Another update is running.
        UnknownJob: There is no such job.
    """
    with _catalog(settings) as (home, catalog):
        job = catalog.job(job_id)
        if job.state == "queued" or (job.state == "running" and is_alive(home, job.id)):
            return job
        if job.state not in (*RESUMABLE, "running"):
            raise UsageProblem(
                phrase(
                    "Job {job} has ended ({state}); there is nothing to resume. Start a new one with "
                    "`perennial update`.",
                    job=job.id,
                    state=job.state,
                )
            )
        if job.kind in TEACHING:
            _refuse_second_update(home, catalog, besides=job.id)
        catalog.update_job(job.id, only_from=job.state, state="queued", error=None, finished=None)
        return catalog.job(job.id)


def cancel(settings: Settings, job_id: str) -> JobRecord:
    """Ends a job's worker; what it has saved in staging stays, so that `resume` can go on.

    Returns the job: `cancelled`, unless it ended well at the last moment.

    Raises:
        UsageProblem: It has ended already.
        UnknownJob: There is no such job.
    """
    with _catalog(settings) as (home, catalog):
        while True:
            job = catalog.job(job_id)
            if job.state in FINAL_STATES:
                raise UsageProblem(
                    phrase(
                        "Job {job} has ended already ({state}); there is nothing to cancel.",
                        job=job.id,
                        state=job.state,
                    )
                )
            # The row first: whoever follows the job must not take the dead worker for a crash. What has ended, or was
            # taken by a worker, since it was read is looked at again.
            if catalog.update_job(job.id, only_from=job.state, state="cancelled", error=None):
                break
        for number in (signal.SIGTERM, signal.SIGKILL):
            _signal(home, job.id, number)
            deadline = time.monotonic() + _STOP_SECONDS
            while is_alive(home, job.id) and time.monotonic() < deadline:
                time.sleep(0.02)
        return catalog.job(job.id)


def recover(settings: Settings) -> list[JobRecord]:
    """Marks jobs whose worker died as interrupted; for the start of a server and for `status`.

    A queued upload or gallery has not died: it waits for its turn in a server, or for the next one to start. What
    another machine of the home was at is left for the others to take over. Returns the jobs that were marked now.
    """
    with _catalog(settings) as (home, catalog):
        dead = [
            job
            for job in catalog.jobs(state="running")
            if not is_alive(home, job.id) and not _will_be_taken_over(home, job)
        ]
        queued = [job for job in catalog.jobs(state="queued") if job.kind in TEACHING]
        dead += [job for job in queued if not _is_active(home, job)]
        for job in dead:
            # Between looking and marking it may have ended.
            if catalog.job(job.id).state == job.state:
                _note_death(home, catalog, job.id, left=0)
        return [catalog.job(job.id) for job in dead]


def left(settings: Settings, own: Collection[str]) -> list[JobRecord]:
    """Returns the jobs, the oldest first, that whoever queued them has left: they wait, and for no other's work.

    Also those that another machine of the home was at when it was heard of last.

    Args:
        settings: of the home.
        own: ids of the jobs that the caller follows.
    """
    with _catalog(settings) as (home, catalog):
        queued = [job for job in catalog.jobs(state="queued") if job.id not in own and job.started is None]
        waiting = [job for job in queued if not _is_active(home, job)]
        before = [job for job in catalog.jobs(state="running") if job.id not in own] if waiting else []
        if any(job.kind not in TEACHING and is_alive(home, job.id) for job in before):
            return []
        left = _left_by_machines(home, catalog) if holding.is_shared(home) else []
        return [job for job in [*left, *waiting[::-1]] if job.id not in own and is_for(home, job)]


def is_for(home: Home, job: JobRecord) -> bool:
    """Whether a job may be done on this machine: one about a folder belongs to the machine that has it."""
    return job.arguments.get("machine", "") in ("", holding.place(home))


def _left_by_machines(home: Home, catalog: Catalog) -> list[JobRecord]:
    """Returns the jobs, the oldest first, that other machines were at when they died, or that they ended in order."""
    found = []
    for job in catalog.jobs(state="running") + catalog.jobs(state="interrupted"):
        other = None if is_alive(home, job.id) else holding.held_elsewhere(home, job.id)
        # One that was interrupted in any other way waits for a person.
        is_left = job.state == "running" or (job.kind not in TEACHING and other and other.is_given_back)
        if other is not None and is_left:
            found.append(job)
    return sorted(found, key=lambda job: job.created)


def _will_be_taken_over(home: Home, job: JobRecord) -> bool:
    other = holding.held_elsewhere(home, job.id)
    return other is not None and other.left > -_TAKEN_OVER_SECONDS


def is_alive(home: Home, job_id: str) -> bool:
    """Says whether a worker has this job."""
    return holding.holder(home, job_id) is not None


def log_file(settings: Settings, job_id: str) -> Path:
    """Where a job's own log lies."""
    return settings.home / "staging" / job_id / LOG


def lock_file(home: Home, job_id: str) -> Path:
    """What a job's worker holds while it lives."""
    return holding.path_of(home, job_id)


@contextmanager
def _catalog(settings: Settings) -> Iterator[tuple[Home, Catalog]]:
    home = Home.open(settings.home).require_stores()
    with home.open_catalog() as catalog:
        yield home, catalog


def _refuse_second_update(home: Home, catalog: Catalog, besides: str | None = None) -> None:
    for state in ("running", "queued", "interrupted"):
        for job in catalog.jobs(state=state):
            if job.kind in TEACHING and job.id != besides and _is_active(home, job):
                raise UpdateRunning(
                    f"{job.kind.capitalize()} {job.id} is {job.state} since {job.started or job.created}. "
                    f"Wait until it ends (`perennial update --resume {job.id}` shows it), "
                    f"or stop it with `perennial update --cancel {job.id}`."
                )


def _is_active(home: Home, job: JobRecord) -> bool:
    """Has a worker, or is so fresh that its worker may be starting."""
    if is_alive(home, job.id):
        return True
    age = datetime.now(UTC) - datetime.fromisoformat(job.created)
    return job.state == "queued" and job.started is None and age.total_seconds() < _START_SECONDS


def _note_death(home: Home, catalog: Catalog, job_id: str, *, left: int) -> None:
    log = home.staging / job_id / LOG
    sentence = phrase("Its process ended unexpectedly (killed, or out of memory).")
    if left == 0:
        sentence += " " + phrase(
            "`perennial update --resume {job}` goes on from the last checkpoint; see {file}.",
            job=job_id,
            file=log,
        )
    logger.warning("job=%s worker died, restarts left: %d", job_id, left)
    catalog.update_job(job_id, state="interrupted", error=sentence)


def _signal(home: Home, job_id: str, number: signal.Signals) -> None:
    found = lock.holder(lock_file(home, job_id))
    if found is not None and found.pid:
        try:
            os.kill(found.pid, number)
        except ProcessLookupError:
            return
