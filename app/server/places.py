"""Places for queries: a few are answered at once, some wait; a rush is refused instead of slowing everybody down."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.desk.errors import TooBusy
from ingest.sentence import phrase

PATIENCE_SECONDS = 10.0


class Places:
    """The places of one server for one kind of question.

    `at_once` are answered together, and `waiting` may wait for a place.
    """

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._queue = threading.BoundedSemaphore(at_once + waiting)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Holds a place, waiting for one if need be.

        Raises:
            TooBusy: too many wait already, or none became free in time.
        """
        if not self._queue.acquire(blocking=False):
            raise TooBusy(phrase("Many people are searching right now. Try again in a few seconds."))
        try:
            if not self._free.acquire(timeout=PATIENCE_SECONDS):
                raise TooBusy("The search is taking too long at this moment. Try again in a few seconds.")
            try:
                yield
            finally:
                self._free.release()
        finally:
            self._queue.release()
