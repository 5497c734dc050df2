"""Places for queries: a few are answered at once, some wait; a rush is refused instead of slowing everybody down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import AppError

# Two queries at once use the cores of a small machine; those beyond the waiting ones would wait seconds.
_AT_ONCE = 2
_WAITING = 24
PATIENCE_SECONDS = 10.0


class TooBusy(AppError):
    """More is asked than the server can do soon."""


class Places:
    """The places of one server."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(_AT_ONCE)
        self._queue = threading.BoundedSemaphore(_AT_ONCE + _WAITING)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Holds a place, waiting for one if need be.

        Raises:
            TooBusy: too many wait already, or none became free in time.
        """
        if not self._queue.acquire(blocking=False):
            raise TooBusy("Many people are searching at this moment. Try again in a few seconds.")
        try:
            if not self._free.acquire(timeout=PATIENCE_SECONDS):
                raise TooBusy("The search is taking too long at this moment. Try again in a few seconds.")
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._queue.release()
