"""The folders that a server watches: a job looks at one when something in it changed, or a while after it failed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from app.desk.troubles import OWN_ERRORS, passes
from app.home.workspace import Workspace
from app.jobs import requests
from app.local.chunks import Chunks
from ingest.errors import UNREADABLE, BadUpload, UnknownJob
from ingest.records import JobRecord
from ingest.watching import Failures, changed_folders

logger = logging.getLogger(__name__)

# A disk of the network may answer in a moment, and no change is seen then.
_UNREAD = "not everything in it can be read"


class FolderWatch:
    """A thread that queues jobs; without folders it does nothing."""

    def __init__(
        self, workspace: Workspace, follow: Callable[[JobRecord], None], is_over: Callable[[JobRecord], bool]
    ) -> None:
        """Prepares; `start` begins. `follow` is called with each job that was queued; `is_over` says if one ended."""
        self._workspace, self._follow, self._is_over = workspace, follow, is_over
        self._chunks = Chunks(workspace.settings, by="watch", workspace=workspace)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._again: set[Path] = set()  # whose catalog did not answer when they were looked at
        self._jobs: dict[Path, str] = {}  # the job that looks at a folder, until its end was seen
        self._failures = Failures()

    def start(self) -> None:
        """Looks at the folders of the setting `watch` at once, and then whenever something changes; begins but once."""
        if self._workspace.settings.watch and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="folder-watch", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stops watching; jobs at work go on."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        for folders in changed_folders(self._workspace.settings.watch, self._stopping, self._is_due):
            for folder in folders:
                try:
                    self._look_at(folder)
                except Exception as error:  # the other folders are watched on
                    logger.exception("watched folder %s could not be looked at", folder)
                    self._note_failure(folder, repr(error))

    def _is_due(self, folder: Path) -> bool:
        """Whether to look at a folder although no change was seen in it; sees how its last job ended."""
        try:
            if folder in self._jobs and self._is_over(job := self._workspace.catalog.job(self._jobs[folder])):
                self._note_end(folder, job)
        except UnknownJob:
            del self._jobs[folder]
        except Exception:  # raised here, it would end the watching of every folder; asked again in a second
            logger.debug("watched folder %s: nobody knows how its job is", folder, exc_info=True)
        is_due = folder in self._again or self._failures.is_due(folder)
        return is_due and folder not in self._jobs

    def _note_end(self, folder: Path, job: JobRecord) -> None:
        del self._jobs[folder]
        # What lies in the folder is as bad until it changes; and what a person cancelled, the next change begins again.
        is_refused = job.result.get("refused") and job.result["code"] != UNREADABLE
        if job.state in ("failed", "interrupted") and not is_refused:
            self._note_failure(folder, f"job {job.id} {job.state}: {job.error}")
        elif UNREADABLE in job.result.get("report", {}).get("reasons", {}):
            self._note_failure(folder, f"job {job.id}: {_UNREAD}")
        else:
            self._failures.forget(folder)

    def _note_failure(self, folder: Path, why: str) -> None:
        pause = self._failures.note(folder)
        logger.warning("watched folder %s is looked at again in %.0f s: %s", folder, pause, why)

    def _look_at(self, folder: Path) -> None:
        self._again.discard(folder)
        self._failures.begin(folder)
        try:
            # A server sees damage by itself.
            report = self._chunks.nothing_to_do(folder, requests.FOLLOWED, every_byte=False)
            if report is None:
                job = requests.folder_job(self._workspace, folder, by="watch")
                self._jobs[folder] = job.id
                self._follow(job)
            elif any(row.code == UNREADABLE for row in report.rows):
                self._note_failure(folder, _UNREAD)
            else:
                self._failures.forget(folder)
        except BadUpload as error:  # such as an empty folder: said once a change, and watched on
            if error.code == UNREADABLE:
                self._note_failure(folder, str(error))
                return
            self._failures.forget(folder)
            logger.warning("watched folder %s: %s", folder, error)
        except OWN_ERRORS as error:
            if passes(error):
                logger.warning("watched folder %s: %s", folder, error)
                self._again.add(folder)
            else:
                self._note_failure(folder, str(error))
