"""What a worker process does with its job: take it, run it, write down how it ended.

`app.jobs.worker` starts this and watches it from outside. (`python -m app.jobs.job_runner --home HOME JOB_ID`)
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from app.desk.errors import ChunkHeld, PackageDamaged, UpdateRunning, UsageProblem
from app.desk.jobs import Stage, StagePace
from app.desk.operation import stored_of
from app.desk.troubles import Trouble, explain
from app.home import holding, logs
from app.home.catalog_copy import keep_copy
from app.home.durable import fault
from app.home.folder import Home
from app.home.settings import Settings, load_settings
from app.jobs import sharing, worker
from app.jobs.track import Track
from ingest.catalog import Catalog
from ingest.errors import BadUpload, CatalogUnreachable, LeaseLost
from ingest.intake import IntakeOptions
from ingest.limits import Limits
from ingest.objects import be_patient
from ingest.records import FINAL_STATES, JobRecord
from ingest.report import batch_line
from ingest.sentence import phrase
from model_updates.errors import StrategyMisfit

if TYPE_CHECKING:
    from app.home.workspace import Workspace
    from app.learning.outcomes import Tell

logger = logging.getLogger(__name__)

_RECORDED_SECONDS = 300.0  # that a job waits for its catalog to record how it ended
_WRITE_SECONDS = 1.0  # each progress row is a durable write
_STATE_OF_VERDICT = {"promote": "succeeded", "reject": "rejected", "review": "review"}
TAKEN = "worker:taken"  # a fault point: the job is running and nothing has been done
_ROWS = 500  # of an intake report that a job's row repeats
# The chunk that an upload became; what is about to go live, and the commit that it follows.
_FOR_THE_NEXT = {"chunk", "outcome", "parent"}
_STOPPED = 130  # 128 + SIGINT, as shells count
_told_to_end = threading.Event()  # set when this process is told to end


def main(arguments: list[str] | None = None) -> int:
    """Runs one job to its end.

    The process's exit code is returned; what matters is in the job's row.
    """
    parser = argparse.ArgumentParser(prog="python -m app.jobs.job_runner", description="Runs one queued job.")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("job_id")
    asked = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    home = Home.open(asked.home)
    settings = _settings(home, asked.job_id)
    be_patient()
    os.nice(settings.niceness)  # polite to the server beside it, which answers queries
    logs.configure(settings.log_level, home=home.root, to_stderr=True)
    return run_job(settings, asked.job_id)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ends Python code in order, as Ctrl-C does: for `cancel`, or a machine that shuts down."""
    _told_to_end.set()
    signal.default_int_handler(number, frame)


def run_job(settings: Settings, job_id: str) -> int:
    """Takes a job and runs it to its end in this process.

    Returns 0, or the exit code of what went wrong; 5 when the job has a worker already.
    """
    home = Home.open(settings.home)
    path = worker.lock_file(home, job_id)
    path.parent.mkdir(exist_ok=True)
    try:
        with holding.hold(home, job_id, f"job {job_id}"):
            code = _take(settings, home, job_id)
            # Only a job that has ended needs no lock any more.
            path.unlink()
            return code
    except UpdateRunning as error:
        logger.info("job=%s has a worker already", job_id)
        return error.exit_code
    except LeaseLost as error:
        logger.warning("job=%s %s", job_id, error)
        return _STOPPED


def _take(settings: Settings, home: Home, job_id: str) -> int:
    with home.open_catalog() as catalog:
        job = catalog.job(job_id)
        if job.state in FINAL_STATES:
            return 0
        taken = {"state": "running", "pid": os.getpid(), "error": None, "finished": None}
        if not catalog.update_job(job_id, only_from=job.state, **taken):
            return 0
        logger.info("job=%s kind=%s started", job_id, job.kind)
        fault(TAKEN)
        code = _run(settings, catalog, job)
    keep_copy(home, at_once=bool(job.arguments.get("options", {}).get("forget")))
    return code


def _settings(home: Home, job_id: str) -> Settings:
    """The settings of whoever asked for the job."""
    try:
        saved = (home.staging / job_id / worker.SETTINGS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return load_settings(home=home.root)
    return Settings.model_validate_json(saved).model_copy(update={"home": home.root})


def _run(settings: Settings, catalog: Catalog, job: JobRecord) -> int:
    report = _Progress(catalog, job)
    try:
        ended = _work(settings, job, report)
    # The outer edge of this process: whoever waits must hear of it.
    except (KeyboardInterrupt, Exception) as error:
        # A library whose import is stopped may say that it is broken.
        if isinstance(error, KeyboardInterrupt) or _told_to_end.is_set():
            # A cancelled job's row says so already and stays as it is.
            catalog.update_job(
                job.id, only_from="running", state="interrupted", error=phrase("Its process was stopped.")
            )
            logger.info("job=%s stopped (%r)", job.id, error)
            return _STOPPED
        problem = explain(error)
        if problem is None:
            logger.exception("job=%s", job.id)
            log = worker.log_file(settings, job.id)
            problem = Trouble(
                phrase("The job failed unexpectedly ({error}); see {file}.", error=f"{error!r}", file=log),
                "unexpected",
                500,
                1,
            )
        logger.warning("job=%s failed: %s", job.id, problem.sentence)
        result: dict[str, Any] = {
            "code": problem.code,
            "status": problem.status,
            "exit_code": problem.exit_code,
        }
        if isinstance(error, BadUpload):  # another 422 may be one of this moment, such as of a full memory
            result |= {"refused": True}
        _recorded(catalog, job, state="failed", error=problem.sentence, result=result)
        return problem.exit_code
    _recorded(catalog, job, error=None, progress=report.last(), **ended)
    logger.info("job=%s %s", job.id, ended["state"])
    return 0


def _recorded(catalog: Catalog, job: JobRecord, **ended: Any) -> None:
    """Records how a job ended, also where its catalog does not answer for some minutes."""
    end = time.monotonic() + _RECORDED_SECONDS
    while True:
        try:
            catalog.update_job(job.id, **ended)
            return
        except CatalogUnreachable as error:
            if time.monotonic() > end or _told_to_end.is_set():
                raise
            logger.warning("job=%s its end is not recorded yet: %s", job.id, error)
            time.sleep(1)


def _work(settings: Settings, job: JobRecord, report: Tell) -> dict[str, Any]:
    """Does the job and returns the fields of its row that say how it ended."""
    if job.kind == "doctor":  # stores that cannot be opened are what it looks for
        return _doctor(settings, job, report)
    report(Stage("start", phrase("loading what the work needs")))
    from app.home.workspace import Workspace

    with Workspace.open(settings) as workspace:
        return _KINDS[job.kind](workspace, job, report)


def _update(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.desk.jobs import UpdateRequest
    from app.learning import update_cycle

    made = _committed_before_death(workspace, job)
    if made is not None:
        return {"state": "succeeded", "result": made}
    request = UpdateRequest.from_json(job.arguments)
    scratch = workspace.home.staging / job.id
    scratch.mkdir(exist_ok=True)
    with _shared_checkpoint(workspace, job, scratch, report) as told_of:
        outcome = update_cycle.update(workspace, request, scratch=scratch, progress=told_of)
    return {"state": _STATE_OF_VERDICT[outcome.verdict], "result": asdict(outcome)}


@contextmanager
def _shared_checkpoint(workspace: Workspace, job: JobRecord, scratch: Path, report: Tell) -> Iterator[Tell]:
    """Goes on from what another machine had reached; gives whom to tell of progress, which is kept for others."""
    from app.learning.training import CHECKPOINTS
    from model_updates.checkpoint import FILE

    checkpoint = sharing.Checkpoint(workspace.home, job.id, scratch / CHECKPOINTS / FILE)
    checkpoint.bring()

    def tell(stage: Stage) -> None:
        report(stage)
        checkpoint.push()

    yield tell
    checkpoint.drop()


def _committed_before_death(workspace: Workspace, job: JobRecord) -> dict[str, Any] | None:
    """What an earlier worker of the job made live before it died, as it told of it right before."""
    told = job.progress.get("details", {})
    outcome = told.get("outcome")
    for commit in workspace.releases.history() if outcome else ():
        # An earlier program did not tell the parent.
        if (commit.release, commit.parent) == (outcome["release"], told.get("parent", commit.parent)):
            return {**outcome, "commit": commit.number}
    return None


def _ingest(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.learning import adding

    by, kept = job.arguments["by"], job.arguments.get("kept", "")
    source = workspace.home.staging / job.id / job.arguments["source"]
    chunk = job.progress.get("details", {}).get("chunk")

    options = IntakeOptions(**job.arguments["options"], limits=Limits())
    if job.arguments.get("held"):
        why = f"{by} may not let a chunk teach; an admin looks at it and accepts it."
        options = replace(options, held_by=by, held_why=job.arguments.get("held_why") or why)
    if chunk is None:
        sharing.bring(workspace.home, source, kept)
        try:
            outcome = adding.add_chunk(workspace, source, options, by=by, progress=report)
        except BadUpload:
            sharing.drop(workspace.home, source, kept)  # no second try can use it
            raise
        said, commit, embedded = outcome.report.to_json(), outcome.commit, outcome.images_embedded
        made_again = outcome.made_again
    else:
        # An earlier worker of this job died after the chunk was kept.
        said, made_again = workspace.catalog.chunk(chunk).report, ""
        commit, embedded = adding.finish(workspace, chunk, options, by=by, progress=report)
    result = {
        "report": _in_short(said),
        "commit": commit.number if commit else None,
        "images_embedded": embedded,
        **({"made_again": made_again} if made_again else {}),
    }
    if job.arguments.get("then"):
        result |= _queue_update(workspace, job.arguments["then"], said["chunk_id"])
    sharing.drop(workspace.home, source, kept)
    return {"state": "succeeded", "result": result}


def _folder(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.jobs.requests import FOLLOWED
    from app.learning import adding

    folder, by = Path(job.arguments["folder"]), job.arguments["by"]
    done = adding.add_chunk(workspace, folder, FOLLOWED, by=by, progress=report)
    said = _in_short(done.report.to_json())
    logger.info("job=%s folder=%s %s", job.id, folder, batch_line(said))
    commit = done.commit.number if done.commit else None
    result = {"report": said, "commit": commit, "images_embedded": done.images_embedded}
    return {"state": "succeeded", "result": result}


def _in_short(report: dict[str, Any]) -> dict[str, Any]:
    """An intake report with its first telling rows; the chunk keeps them all."""
    rows = sorted(report["rows"], key=lambda row: bool(row["outcome"] == "accepted"))
    return report | {
        "rows": rows[:_ROWS],
        "rows_left_out": report["rows_left_out"] + max(0, len(rows) - _ROWS),
    }


def _queue_update(workspace: Workspace, asked: dict[str, Any], chunk: str) -> dict[str, Any]:
    """Queues the update that was asked for together with an upload; whoever follows the upload starts it."""
    from app.desk.jobs import UpdateRequest
    from app.learning.fitting import require_fit

    request = UpdateRequest.from_json(asked | {"chunk": chunk})
    try:
        require_fit(workspace, request)
        return {"update": worker.submit(workspace.settings, "update", request.to_json()).id}
    except (ChunkHeld, UpdateRunning, StrategyMisfit, UsageProblem) as error:
        return {"update": None, "update_refused": str(error)}


def _gallery(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.learning import adding, chunk_checks

    asked = dict(job.arguments)
    changed = asked.pop("check", None)  # a chunk whose pairs a person changed
    commit, embedded = adding.extend_gallery(workspace, **asked, progress=report)
    result = {"commit": commit.number if commit else None, "images_embedded": embedded}
    if changed is not None:
        report(Stage("check", phrase("judging the chunk again, whose pairs were changed")))
        findings = chunk_checks.check_again(workspace, changed)
        result["held"] = workspace.catalog.chunk(changed).standing == "held"
        result["findings"] = len(findings)
    return {"state": "succeeded", "result": result}


def _removal(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.learning.removal import Removal, rebuild_without

    scratch = workspace.home.staging / job.id
    scratch.mkdir(exist_ok=True)
    told = _committed_before_death(workspace, job)
    made = None if told is None else Removal(**told)
    with _shared_checkpoint(workspace, job, scratch, report) as told_of:
        ended = rebuild_without(workspace, **job.arguments, scratch=scratch, progress=told_of, made=made)
    return {"state": _STATE_OF_VERDICT[ended.verdict], "result": asdict(ended)}


def _doctor(settings: Settings, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.doctor.examination import examine

    every_byte = bool(job.arguments.get("every_byte", True))
    found = examine(settings, every_byte=every_byte, progress=report)
    return {"state": "succeeded", "result": stored_of(found)}


def _repair(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.learning.mending import mend

    return {"state": "succeeded", "result": asdict(mend(workspace, **job.arguments, progress=report))}


def _import(workspace: Workspace, job: JobRecord, report: Tell) -> dict[str, Any]:
    from app.learning.transfer import import_release, taken_in

    asked = job.arguments
    kept = asked.get("kept", "")
    source = workspace.home.staging / job.id / asked["source"]
    told = job.progress.get("details", {}).get("outcome")
    came = taken_in(workspace, told) if told else None
    try:
        if came is None:
            source = sharing.bring(workspace.home, source, kept)
            came = import_release(workspace, source, sha256=asked["sha256"], progress=report)
    except (PackageDamaged, UsageProblem):
        sharing.drop(workspace.home, source, kept)  # no second try can use it
        raise
    sharing.drop(workspace.home, source, kept)
    return {"state": "succeeded", "result": asdict(came) | {"verified": asked["sha256"] is not None}}


_KINDS = {
    "update": _update,
    "ingest": _ingest,
    "folder": _folder,
    "gallery": _gallery,
    "removal": _removal,
    "import": _import,
    "repair": _repair,
}


class _Progress:
    """Writes stages to the job's row, each new one at once and the same one now and then.

    What a worker has to know that goes on after this one died is repeated with every later stage.
    """

    def __init__(self, catalog: Catalog, job: JobRecord) -> None:
        self._catalog = catalog
        self._job_id = job.id
        self._track = Track(job.progress)
        self._pace = StagePace()
        self._stage = dict(job.progress)
        self._kept: dict[str, Any] = {}
        self._keep(self._stage.get("details", {}))
        self._name = ""
        self._written = 0.0

    def __call__(self, stage: Stage) -> None:
        self._keep(stage.details)
        stage = self._pace(replace(stage, details={**stage.details, **self._kept}))
        self._track.stage(stage)
        self._stage = stage.to_json()
        now = time.monotonic()
        if stage.name == self._name and now - self._written < _WRITE_SECONDS:
            return
        if stage.name != self._name:
            logger.info("job=%s stage=%s %s", self._job_id, stage.name, stage.message)
        self._name, self._written = stage.name, now
        told = self._stage | self._track.to_json()
        try:
            if self._catalog.update_job(self._job_id, only_from="running", progress=told):
                return
        except CatalogUnreachable as error:  # the next one is as good
            logger.warning("job=%s its progress is not recorded: %s", self._job_id, error)
            return
        if (
            self._catalog.job(self._job_id).state == "cancelled"
        ):  # on another machine, which cannot signal this one
            _told_to_end.set()
            raise KeyboardInterrupt
        self._catalog.update_job(self._job_id, progress=told)

    def _keep(self, details: Mapping[str, Any]) -> None:
        self._kept |= {key: details[key] for key in _FOR_THE_NEXT & details.keys()}

    def last(self) -> dict[str, Any]:
        """Returns the last stage, with the whole track and the most memory that this process had."""
        self._track.lap()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts kilobytes
        return self._stage | self._track.to_json() | {"peak_bytes": peak}


if __name__ == "__main__":
    raise SystemExit(main())
