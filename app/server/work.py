"""What the server has done in processes of their own: taking uploads in, updates, making galleries whole.

A thread of the server follows each job and starts its process again when it dies; a server that starts takes up what
the one before it left.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import nullcontext

from app.desk.errors import AppError, HomeDamaged, TooBusy
from app.desk.troubles import passes
from app.home import holding
from app.home.workspace import Workspace
from app.jobs import worker
from app.server.places import BUSY
from ingest.errors import CatalogError, IngestError
from ingest.records import FINAL_STATES, JobRecord

logger = logging.getLogger(__name__)

_UNFINISHED = ("queued", "interrupted", "running")  # what begins meanwhile is seen twice, and not missed
_MOST_FOLLOWED = 200  # each takes a thread, of which a container may have few


class Work:
    """The jobs of one server process.

    Attributes:
        followed: ids of the jobs that are waited for.
        turn: held by the upload or gallery at work; the others wait for it.
        intake: held while an upload is taken in.
    """

    def __init__(
        self, workspace: Workspace, on_ended: Callable[[], object], threads: int | None = None
    ) -> None:
        """Prepares; `take_up` begins.

        Args:
            workspace: opened for writing.
            on_ended: called after each job.
            threads: that a job computes with; None leaves it to the settings.
        """
        self._workspace = workspace
        self._settings = workspace.settings.model_copy(update={} if threads is None else {"threads": threads})
        self._on_ended = on_ended
        self.turn = threading.Lock()
        self.intake = threading.Lock()
        self._stopping = threading.Event()
        self.followed: set[str] = set()

    def stop(self) -> None:
        """Stops waiting for what runs elsewhere, and looking for new jobs; what runs here goes on."""
        self._stopping.set()

    def take_all(self) -> None:
        """Runs every job that anybody queues, until `stop`: for a process that does nothing else."""
        self.take_up()
        while not self._stopping.wait(self._settings.poll_seconds):
            try:
                self._workspace.follow_catalog()
                queued = self._workspace.catalog.jobs(state="queued")[::-1]
                if holding.is_shared(self._workspace.home):
                    holding.say_present(self._workspace.home, "doing jobs")
                    queued += worker.left(self._settings, self.followed)  # by a machine that died
            except (CatalogError, HomeDamaged) as error:  # it comes back, or is being moved
                logger.warning("%s", error)
                continue
            for job in queued:
                if job.id not in self.followed and worker.is_for(self._workspace.home, job):
                    self.follow(job)

    def take_up(self) -> None:
        """Goes on with the jobs that a server before this one left.

        Training that was interrupted waits for a person to resume it; what never began is begun.
        """
        if self._settings.jobs == "here":
            worker.recover(self._settings)
        catalog = self._workspace.catalog
        found = [job for state in _UNFINISHED for job in catalog.jobs(state=state)[::-1]]
        for job in sorted(found, key=lambda one: one.created):
            if not worker.is_for(self._workspace.home, job):
                continue
            waits = job.state in {"queued", "interrupted"}
            is_left = waits and (job.kind not in worker.TEACHING or job.started is None)
            if job.state == "running" or is_left:
                self.follow(job)

    def take_over(self) -> None:
        """Begins what a server or a command beside this one queued and left as it ended."""
        if self._settings.jobs == "here":
            for job in worker.left(self._settings, self.followed):
                logger.info("job %s waits and nobody is at work before it; it is begun here", job.id)
                self.follow(job)

    def require_room(self) -> None:
        """Refuses another upload while very many jobs wait.

        Raises:
            TooBusy: they do.
        """
        if len(self.followed) >= _MOST_FOLLOWED:
            raise TooBusy(BUSY)

    def is_over(self, job: JobRecord) -> bool:
        """Whether nothing more happens with a job by itself: one that was interrupted is begun again while followed."""
        return job.state in FINAL_STATES or (job.state == "interrupted" and job.id not in self.followed)

    def follow(self, job: JobRecord) -> None:
        """Has a thread of ours start a job's process, and start it again when it dies; or wait for it."""
        if job.id in self.followed:
            return
        self.followed.add(job.id)
        threading.Thread(target=self._run, args=(job,), name=f"follow-{job.id}", daemon=True).start()

    def _run(self, job: JobRecord) -> None:
        # Updates keep one another out; of the others one at a time has the machine's few cores.
        is_here = self._settings.jobs == "here"
        turn = self.turn if is_here and job.kind not in worker.TEACHING else nullcontext()
        intake = self.intake if is_here and job.kind in {"ingest", "folder"} else nullcontext()
        try:
            with turn, intake:
                ended = self._ended(job)
            self.followed.discard(job.id)
            self._on_ended()
            if ended.result.get("update"):
                self.follow(self._workspace.catalog.job(ended.result["update"]))
        except (AppError, IngestError, OSError) as error:
            logger.warning("job %s: %s", job.id, error)
        finally:
            self.followed.discard(job.id)  # nobody waits for it here any more: it may be taken over

    def _ended(self, job: JobRecord) -> JobRecord:
        """Waits for the end of a job, also while its catalog does not answer or is carried to another place."""
        while True:
            try:
                if self._settings.jobs == "here":
                    return worker.follow(self._settings, job.id)
                return worker.wait(self._settings, job.id, self._stopping)
            except IngestError as error:
                if not passes(error) or self._stopping.wait(self._settings.poll_seconds):
                    raise
                logger.warning("job %s: %s", job.id, error)
