"""What the server has done in processes of their own: taking uploads in, updates, making galleries whole.

A thread of the server follows each job and starts its process again when it dies; a server that starts takes up what
the one before it left.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from app.desk.errors import AppError, UsageProblem
from app.desk.jobs import UpdateRequest
from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.learning.fitting import require_fit
from ingest.errors import IngestError
from ingest.intake import IntakeOptions, check_upload
from ingest.records import JobRecord

logger = logging.getLogger(__name__)

_LONGEST_NAME = 120
_JOBS_LOOKED_AT = 50


class Work:
    """The jobs of one server process.

    Attributes:
        turn: held by the upload or gallery at work; the others wait for it.
        intake: held while an upload is taken in.
    """

    def __init__(self, workspace: Workspace, on_ended: Callable[[], object]) -> None:
        """Prepares; `take_up` begins.

        Args:
            workspace: opened for writing.
            on_ended: called after each job.
        """
        self._workspace = workspace
        self._settings = workspace.settings
        self._on_ended = on_ended
        self.turn = threading.Lock()
        self.intake = threading.Lock()
        self._stopping = threading.Event()
        self._followed: set[str] = set()

    def stop(self) -> None:
        """Stops waiting for what runs elsewhere, and looking for new jobs; what runs here goes on."""
        self._stopping.set()

    def take_all(self) -> None:
        """Runs every job that anybody queues, until `stop`: for a process that does nothing else."""
        self.take_up()
        while not self._stopping.wait(self._settings.poll_seconds):
            for job in self._workspace.catalog.jobs(state="queued")[::-1]:
                if job.id not in self._followed:
                    self.follow(job)

    def take_up(self) -> None:
        """Goes on with the jobs that a server before this one left.

        Training that was interrupted waits for a person to resume it; what never began is begun.
        """
        if self._settings.jobs == "here":
            worker.recover(self._settings)
        for job in self._workspace.catalog.jobs(limit=_JOBS_LOOKED_AT)[::-1]:
            waits = job.state in {"queued", "interrupted"}
            is_left = waits and (job.kind not in worker.TEACHING or job.started is None)
            if job.state == "running" or is_left:
                self.follow(job)

    def take_in(
        self,
        received: Path,
        options: IntakeOptions,
        *,
        name: str,
        by: str,
        then: UpdateRequest | None = None,
        is_held: bool = False,
        held_why: str = "",
    ) -> JobRecord:
        """Starts taking a received upload in, in a process of its own, after checking what can be checked at once.

        The arguments are those of `app.jobs.intake.take_in`.

        Raises:
            IngestError: it cannot be used; nothing changed.
        """
        options = replace(
            options, pictures_beside=False, name=options.name or Path(name).name[:_LONGEST_NAME]
        )
        try:
            check_upload(received, options)
            job = requests.intake_job(
                self._settings, received, options, by=by, then=then, is_held=is_held, held_why=held_why
            )
        finally:
            received.unlink(missing_ok=True)
        self.follow(job)
        return job

    def take_release(self, received: Path, *, name: str, sha256: str | None, by: str) -> JobRecord:
        """Starts taking in a release of another home, in a process of its own."""
        shown = Path(name).name[:_LONGEST_NAME]
        try:
            job = requests.import_job(self._settings, received, name=shown, sha256=sha256, by=by)
        finally:
            received.unlink(missing_ok=True)
        self.follow(job)
        return job

    def start_update(self, request: UpdateRequest) -> JobRecord:
        """Starts an update in a process of its own, after checking what can be checked at once.

        Raises:
            UnknownChunk, UnknownStrategy, BadStrategyOption, StrategyMisfit: the request cannot be carried out.
            UpdateRunning: another one is queued or running.
        """
        request = replace(request, chunk=self._workspace.catalog.chunk(request.chunk).id)
        if request.strategy is None and request.options:
            raise UsageProblem("Options belong to a strategy; name the strategy too.")
        require_fit(self._workspace, request)
        job = requests.update_job(self._workspace, request)
        self.follow(job)
        return job

    def remove(self, chunk: str, *, why: str, by: str) -> JobRecord:
        """Withdraws a chunk and starts rebuilding what is live without it (`app.jobs.requests.remove_chunk`)."""
        job = requests.remove_chunk(self._workspace, chunk, why=why, by=by)
        self.follow(job)
        return job

    def examine(self, *, every_byte: bool, by: str) -> JobRecord:
        """Starts looking for everything that can be wrong with the home; one that is under way is returned instead."""
        under_way = self.unfinished("doctor")
        if under_way is not None:
            return under_way
        job = worker.submit(self._settings, "doctor", {"every_byte": every_byte, "by": by})
        self.follow(job)
        return job

    def cancel(self, job_id: str) -> JobRecord:
        """Stops a job.

        Raises:
            UsageProblem: it has ended.
            UnknownJob: there is none.
        """
        return worker.cancel(self._settings, job_id)

    def resume(self, job_id: str) -> JobRecord:
        """Goes on with a job that was interrupted, cancelled or failed, from its last checkpoint.

        Raises:
            UsageProblem: it has ended well.
            UpdateRunning: another update is queued or running.
            UnknownJob: there is none.
        """
        job = worker.resume(self._settings, job_id)
        self.follow(job)
        return job

    def unfinished(self, kind: str) -> JobRecord | None:
        """Returns the oldest job of a kind that is queued or running, if any."""
        jobs = self._workspace.catalog.jobs(limit=_JOBS_LOOKED_AT)
        active = [
            job for job in jobs if job.kind == kind and job.state in {"queued", "running", "interrupted"}
        ]
        return active[-1] if active else None

    def follow(self, job: JobRecord) -> None:
        """Has a thread of ours start a job's process, and start it again when it dies; or wait for it."""
        if job.id in self._followed:
            return
        self._followed.add(job.id)
        threading.Thread(target=self._run, args=(job,), name=f"follow-{job.id}", daemon=True).start()

    def _run(self, job: JobRecord) -> None:
        # Updates keep one another out; of the others one at a time has the machine's few cores.
        is_here = self._settings.jobs == "here"
        turn = self.turn if is_here and job.kind not in worker.TEACHING else nullcontext()
        intake = self.intake if is_here and job.kind == "ingest" else nullcontext()
        try:
            with turn, intake:
                if is_here:
                    ended = worker.follow(self._settings, job.id)
                else:
                    ended = worker.wait(self._settings, job.id, self._stopping)
            self._followed.discard(job.id)
            self._on_ended()
            if ended.result.get("update"):
                self.follow(self._workspace.catalog.job(ended.result["update"]))
        except (AppError, IngestError, OSError) as error:
            logger.warning("job %s: %s", job.id, error)
