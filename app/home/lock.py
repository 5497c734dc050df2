"""One updater at a time, by a kernel lock that ends with its process.

The lock is flock on an open file: a killed holder frees it at once, and no clock is trusted. What is
written inside only informs people. Python does not pass the descriptor on to programs it starts, and
must not: an orphan that inherited it would hold the lock after its parent died.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.desk.errors import UpdateRunning

# `holder` takes the lock for a moment to see whether it is free; an updater outwaits that, and longer a server that
# tidies up.
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.02
TIDYING = "tidying up"
TIDYING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds the updater lock."""

    pid: int  # its process id; 0 when it has not said yet
    host: str  # the machine it runs on
    since: str  # UTC time in ISO form
    what: str  # what it is doing, in words


@contextmanager
def hold(path: Path, what: str) -> Iterator[None]:
    """Holds the lock while the block runs; the file is made when missing, and the block may remove it.

    Raises:
        UpdateRunning: Another process, or another block of this one, holds it.
    """
    # A file that its last holder removed is seen by nobody, and nor is a lock on it.
    while not _lies_at(descriptor := _taken(path), path):
        os.close(descriptor)
    try:
        holder = LockHolder(
            os.getpid(), socket.gethostname(), datetime.now(UTC).isoformat("T", "seconds"), what
        )
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
        yield
    finally:
        # Closing the only descriptor of this open file frees the lock.
        os.close(descriptor)


@contextmanager
def briefly(path: Path, *, alone: bool, waits: bool = True) -> Iterator[None]:
    """Holds a lock of its own while a block runs: with others like it, or alone, for a moment; waits for it.

    Raises:
        BlockingIOError: somebody has it, and it does not wait.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if waits else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)


def holder(path: Path) -> LockHolder | None:
    """Says who holds the lock, or None when it is free; the file may be missing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(path)
    finally:
        os.close(descriptor)
    return None


def _taken(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if not _take(descriptor, path):
            raise UpdateRunning(refusal(_read(path)))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _lies_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _take(descriptor: int, path: Path) -> bool:
    started = time.monotonic()
    patience = (_ATTEMPTS - 1) * _PAUSE_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - started
            if waited > (TIDYING_SECONDS if _read(path).what == TIDYING else patience):
                return False
            time.sleep(_PAUSE_SECONDS)
        else:
            return True


def _read(path: Path) -> LockHolder:
    try:
        facts = json.loads(path.read_bytes())
        return LockHolder(int(facts["pid"]), str(facts["host"]), str(facts["since"]), str(facts["what"]))
    except (ValueError, KeyError, TypeError, FileNotFoundError):
        # Between taking the lock and writing who took it, or between removing the file and freeing the lock.
        return LockHolder(0, socket.gethostname(), "just now", "starting")


def refusal(found: LockHolder) -> str:
    """Returns what is said to who comes second."""
    return (
        f"Process {found.pid} on {found.host} is updating this home since {found.since} ({found.what}). "
        "Wait until it ends; search goes on meanwhile."
    )
