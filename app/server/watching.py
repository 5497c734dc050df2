"""The folders that a server watches: a job looks at one again whenever something in it changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from app.desk.troubles import passes
from app.home.workspace import Workspace
from app.jobs import requests
from ingest.errors import IngestError
from ingest.intake import nothing_new
from ingest.records import JobRecord
from ingest.watching import changed_folders

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
        for folders in changed_folders(self._workspace.settings.watch, self._stopping, self._again):
            for folder in folders:
                try:
                    self._look_at(folder)
                except Exception:  # the other folders are watched on, and this one at its next change
                    logger.exception("watched folder %s could not be looked at", folder)

    def _look_at(self, folder: Path) -> None:
        workspace = self._workspace
        self._again.discard(folder)
        try:
            as_it_was = nothing_new(
                folder, catalog=workspace.catalog, blobs=workspace.blobs, options=requests.FOLLOWED
            )
            if as_it_was is None:
                self._follow(requests.folder_job(workspace, folder, by="watch"))
        except IngestError as error:  # an empty folder, or no space: said once a change, and watched on
            logger.warning("watched folder %s: %s", folder, error)
            if passes(error):
                self._again.add(folder)
