"""The folders that a server watches: a job looks at one when something in it changed, or a while after it failed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from app.desk.troubles import passes
from app.home.workspace import Workspace
from app.jobs import requests
from ingest.errors import BadUpload, IngestError, UnknownJob
from ingest.intake import nothing_new
from ingest.records import FINAL_STATES, JobRecord
from ingest.watching import Failures, changed_folders

logger = logging.getLogger(__name__)


class FolderWatch:
    """A thread that queues jobs; without folders it does nothing."""

    def __init__(self, workspace: Workspace, follow: Callable[[JobRecord], None]) -> None:
        """Prepares; `start` begins. `follow` is called with each job that was queued."""
        self._workspace = workspace
        self._follow = follow
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
        """Whether to look at a folder although nothing changed in it; sees how its last job ended."""
        if folder in self._jobs:
            try:
                self._see_end(folder, self._workspace.catalog.job(self._jobs[folder]))
            except UnknownJob:
                del self._jobs[folder]
            except IngestError as error:  # asked again in a second
                logger.debug("watched folder %s: %s", folder, error)
        return folder in self._again or self._failures.is_due(folder)

    def _see_end(self, folder: Path, job: JobRecord) -> None:
        if job.state not in FINAL_STATES:
            return
        del self._jobs[folder]
        if job.state == "failed":
            self._note_failure(folder, f"job {job.id} failed: {job.error}")
        else:  # also where a person cancelled it: the next change begins another
            self._failures.forget(folder)

    def _note_failure(self, folder: Path, why: str) -> None:
        pause = self._failures.note(folder)
        logger.warning("watched folder %s: %s; it is looked at again in %.0f s", folder, why, pause)

    def _look_at(self, folder: Path) -> None:
        workspace = self._workspace
        self._again.discard(folder)
        self._failures.begin(folder)
        try:
            # What failed may have read the folder and then not made it searchable.
            as_it_was = folder not in self._failures and nothing_new(
                folder, catalog=workspace.catalog, blobs=workspace.blobs, options=requests.FOLLOWED
            )
            if not as_it_was:
                job = requests.folder_job(workspace, folder, by="watch")
                self._jobs[folder] = job.id
                self._follow(job)
        except BadUpload as error:  # such as an empty folder: said once a change, and watched on
            logger.warning("watched folder %s: %s", folder, error)
        except IngestError as error:
            if passes(error):
                logger.warning("watched folder %s: %s", folder, error)
                self._again.add(folder)
            else:
                self._note_failure(folder, str(error))
