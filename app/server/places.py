"""Places for work: a few do it at once, some wait; a rush is refused instead of slowing everybody down.

A queue that is there for a moment is a burst, and waiting it out costs nobody much. One that does not empty is
overload: whoever stands in it waits for nothing, since as many come as go. From then on nobody at the door waits longer
than the work itself takes, so that what is answered is answered nearly as soon as ever (Nichols and Jacobson,
"Controlling Queue Delay", 2012).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import contextmanager
from contextvars import ContextVar

from app.desk.errors import TooBusy
from ingest.sentence import phrase

PATIENCE_SECONDS = 10.0
"""How long a thread waits, in which a page asks for a person."""
_AT_THE_DOOR_SECONDS = 0.9  # so that a refusal is back within a second
RETRY_AFTER = {"Retry-After": "2"}
"""The header of a refusal; in seconds."""
_STANDING_SECONDS = 0.5
_WARY_SECONDS = 1.0  # after the last refusal: short waits empty a queue that is overload all the same
_SHORTEST_PATIENCE = 0.02
_SHARE_OF_LAST = 0.1

_HELD: ContextVar[Places | None] = ContextVar("held", default=None)


class Gone(Exception):
    """Whoever waited has left."""


class Places:
    """The places of one server for one kind of work, shared by its threads and its loop.

    `at_once` are at work together, and `waiting` may wait for a place.
    """

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self._free = at_once
        self._most_waiting = waiting
        self._queue: deque[Future[None]] = deque()
        self._standing_since: float | None = None
        self._refused = -_WARY_SECONDS
        self._takes = 0.0  # what the work takes, in seconds: an average of the last
        self._lock = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Holds a place, waiting for one in this thread if need be; nothing where the request has one already.

        Raises:
            TooBusy: too many wait already, or none became free in time.
        """
        if _HELD.get() is self:
            yield
            return
        waiter = self._ask()
        try:
            waiter.result(PATIENCE_SECONDS)
        except TookTooLong:
            self._leave(waiter)
            raise too_busy() from None
        began = time.monotonic()
        try:
            yield
        finally:
            self._give_back(time.monotonic() - began)

    async def take(self, gone: Callable[[], Coroutine[None, None, None]] | None = None) -> HeldPlace:
        """Returns a place, waiting for one at the door and without a thread.

        Args:
            gone: waits until whoever asks has left.

        Raises:
            TooBusy: too many wait already, or none became free in time.
            Gone: whoever asks has left.
        """
        waiter = self._ask()
        if waiter.done():
            return HeldPlace(self)
        waits = asyncio.wrap_future(waiter)
        leaves = None if gone is None else asyncio.ensure_future(gone())
        both = {waits} if leaves is None else {waits, leaves}
        try:
            await asyncio.wait(both, timeout=self._patience(), return_when=asyncio.FIRST_COMPLETED)
            if waiter.done():
                return HeldPlace(self)
            if leaves is not None and leaves.done():
                raise Gone
            self._refused = time.monotonic()
            raise too_busy()
        except BaseException:
            self._leave(waiter)
            raise
        finally:
            if leaves is not None and not leaves.done():
                leaves.cancel()

    def _ask(self) -> Future[None]:
        waiter: Future[None] = Future()
        with self._lock:
            if self._free:
                self._free -= 1
                waiter.set_result(None)
                return waiter
            if len(self._queue) >= self._most_waiting:
                raise too_busy()
            if self._standing_since is None:
                self._standing_since = time.monotonic()
            self._queue.append(waiter)
        return waiter

    def _patience(self) -> float:
        now = time.monotonic()
        stands = now - (self._standing_since or now)
        if stands < _STANDING_SECONDS and now - self._refused > _WARY_SECONDS:
            return _AT_THE_DOOR_SECONDS
        return min(_AT_THE_DOOR_SECONDS, max(self._takes, _SHORTEST_PATIENCE))

    def _leave(self, waiter: Future[None]) -> None:
        with self._lock:
            if not waiter.done():
                waiter.cancel()
                self._queue.remove(waiter)
                return
        self._give_back(None)  # it was given a place in the moment of leaving

    def _give_back(self, seconds: float | None) -> None:
        with self._lock:
            if seconds is not None:
                self._takes += _SHARE_OF_LAST * (seconds - self._takes)
            if self._queue:
                self._queue.popleft().set_result(None)
            else:
                self._free += 1
            if not self._queue:
                self._standing_since = None


class HeldPlace:
    """One place that a request holds until it gives it back."""

    def __init__(self, places: Places) -> None:
        self._places: Places | None = places
        self._began = time.monotonic()

    def hold(self) -> None:
        """Lets the work of this request, in whichever thread, do without another place."""
        _HELD.set(self._places)

    def give_back(self) -> None:
        """Leaves the place to the next; more than once does nothing."""
        places, self._places = self._places, None
        if places is not None:
            places._give_back(time.monotonic() - self._began)


def too_busy() -> TooBusy:
    """Returns what who is refused is told."""
    return TooBusy(phrase("The server is busy right now. Try again in a few seconds."))
