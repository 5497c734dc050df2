"""What a job needs that came to one machine, where others of the home may take the job over: in the bucket as well.

Uploads wait there until they were taken in. Of an update that is at work the last checkpoint lies there, from which
another machine goes on.
"""

from __future__ import annotations

import logging
import time
import uuid
from itertools import chain
from pathlib import Path

from app.desk.errors import AppError
from app.home.folder import Home
from app.home.garbage import resumable
from ingest.catalog import Catalog
from ingest.errors import ObjectsUnreachable
from ingest.objects import Objects
from ingest.packs import Packs
from ingest.sentence import phrase

logger = logging.getLogger(__name__)

FOLDER = "inbox"
CHECKPOINTS = "checkpoints"
_PUSHED_AFTER = 20.0  # seconds; a checkpoint that was written sooner waits for the next
_KEPT_SECONDS = 8 * 86_400.0  # a day longer than a job that failed may be resumed


def keep(home: Home, received: Path) -> str:
    """Keeps an upload for any machine, and returns under which name; empty where the home has one machine alone.

    Raises:
        ObjectsUnreachable: the bucket does not answer.
    """
    objects = _objects(home)
    if objects is None:
        return ""
    name = f"{FOLDER}/{uuid.uuid4().hex}"
    objects.put(name, received)
    return name


def bring(home: Home, source: Path, kept: str) -> Path:
    """Returns where an upload lies on this machine; one that came to another is fetched.

    Raises:
        AppError: it is nowhere.
        ObjectsUnreachable: the bucket does not answer.
    """
    objects = _objects(home)
    if source.exists() or objects is None or not kept:
        return source
    if objects.size(kept) is None:
        raise AppError(
            phrase("The upload that this job was to take in is not there any more. Upload it again.")
        )
    source.parent.mkdir(exist_ok=True)
    fresh = source.with_name(f".{source.name}.{uuid.uuid4().hex}")
    objects.fetch(kept, fresh)
    return fresh.rename(source)


def drop(home: Home, source: Path, kept: str) -> None:
    """Removes an upload that nobody needs any more."""
    source.unlink(missing_ok=True)
    objects = _objects(home)
    if objects is not None and kept:
        _delete(objects, kept)


def tidy(home: Home, catalog: Catalog) -> list[str]:
    """Removes what no job needs any more, and packs that nobody knows, and returns their names.

    Raises:
        ObjectsUnreachable: the bucket does not answer.
    """
    objects = _objects(home)
    if objects is None:
        return []
    written = chain(objects.written(FOLDER), objects.written(CHECKPOINTS))
    jobs = catalog.jobs()
    needed = {str(job.arguments.get("kept")) for job in jobs if job.id in resumable(jobs)}
    old = [name for name, when in written if when < time.time() - _KEPT_SECONDS and name not in needed]
    objects.delete(old)
    return [*old, *Packs(objects, catalog.packs).remove_strays()]


class Checkpoint:
    """The checkpoint of a job: a file of this machine, and what others go on from."""

    def __init__(self, home: Home, job_id: str, file: Path) -> None:
        self._objects, self._name, self._file = _objects(home), f"{CHECKPOINTS}/{job_id}", file
        self._pushed = 0.0  # when the file that was pushed last was written
        self._next = 0.0

    def bring(self) -> None:
        """Fetches what another machine had reached, where this one has nothing."""
        if self._objects is None or self._file.exists() or self._objects.size(self._name) is None:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_name(f".fetched-{uuid.uuid4().hex}")
        self._objects.fetch(self._name, fresh)
        fresh.rename(self._file)
        logger.info("%s was fetched: another machine had reached it", self._name)

    def push(self) -> None:
        """Keeps what this machine has reached for others, now and then."""
        if self._objects is None or not self._file.exists() or time.monotonic() < self._next:
            return
        written = self._file.stat().st_mtime
        if written == self._pushed:
            return
        started = time.monotonic()
        try:
            self._objects.put(self._name, self._file)
            self._pushed = written
        except ObjectsUnreachable as error:  # the work goes on; who takes it over has to do more of it
            logger.warning("%s", error)
        took = time.monotonic() - started
        self._next = time.monotonic() + max(_PUSHED_AFTER, 10 * took)

    def drop(self) -> None:
        """Removes it from where others see it: the job has ended."""
        if self._objects is not None:
            _delete(self._objects, self._name)


def _delete(objects: Objects, name: str) -> None:
    try:
        objects.delete([name])
    except ObjectsUnreachable as error:  # it goes when it is old
        logger.warning("%s is not removed yet: %s", name, error)


def _objects(home: Home) -> Objects | None:
    address = home.objects_address
    return None if address is None else Objects(address)
