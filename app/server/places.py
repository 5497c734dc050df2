"""Places for work: a few do it at once, some wait; a rush is refused instead of slowing everybody down.

A queue that empties is a burst, and waiting it out costs nobody much. Where many are refused for longer, as many come
as go, and whoever stands in the queue waits for nothing. From then on hardly anybody at the door waits (Nichols and
Jacobson, "Controlling Queue Delay", 2012), until all places together could do what comes. Where the loop, which refuses
them, takes much of a processor for it, half of the places are left free for that, so that what is answered is answered
nearly as soon as ever.
"""

from __future__ import annotations

import asyncio
import math
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

BUSY = phrase("The server is busy right now. Try again in a few seconds.")
PATIENCE_SECONDS = 10.0
"""How long a thread waits, in which a page asks for a person."""
_AT_THE_DOOR_SECONDS = 0.9  # so that a refusal is back within a second
RETRY_AFTER = {"Retry-After": "2"}
"""The header of a refusal; in seconds."""
_LOOK_SECONDS = 0.05  # how soon those who wait learn that it is overload
_SHORTEST_PATIENCE = 0.002
# Overload is that of those who came within the last second or so more than this share was refused, for so long, and
# that they were more than all places could do.
_OVERLOAD, _FADES_SECONDS, _OVERLOAD_SECONDS = 0.1, 1.0, 0.25
_SHARE_OF_LAST = 0.1
_DEAR = 0.25  # of a processor: what the loop takes when refusals slow down what is answered

_HELD: ContextVar[Places | None] = ContextVar("held", default=None)


class Gone(Exception):
    """Whoever waited has left."""


class Places:
    """The places of one server for one kind of work, shared by its threads and its loop.

    `at_once` are at work together, and `waiting` may wait for a place.
    """

    def __init__(self, *, at_once: int, waiting: int) -> None:
        self._at_once = self._free = at_once
        self._most_waiting = waiting
        self._queue: deque[Future[None]] = deque()
        self._takes = 0.0  # what the work takes, in seconds: an average of the last
        self._counted = 0.0  # when the next two were brought up to date; they fade
        self._came = self._refused = 0.0
        self._loop_took = 0.0  # seconds of the processor, of the last second or so; fades as well
        self._loop_clock, self._looked = math.inf, -math.inf
        self._overrun_since = 0.0
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
            raise self.refusal() from None
        began = time.monotonic()
        try:
            yield
        finally:
            self._give_back(time.monotonic() - began)

    def refuses_one_more(self) -> bool:
        """Whether nobody else may wait; who comes then is counted as refused."""
        with self._lock:
            self._fade()
            self._look_at_the_loop()
            if self._free > self._kept_free() or len(self._queue) < self._may_wait():
                return False
            self._came += 1
        self.refusal()
        return True

    async def take(self, gone: Callable[[], Coroutine[None, None, None]] | None = None) -> HeldPlace:
        """Returns a place, waiting for one at the door and without a thread.

        Args:
            gone: waits until whoever asks has left.

        Raises:
            TooBusy: too many wait already, or none became free in time.
            Gone: whoever asks has left.
        """
        with self._lock:
            self._fade()
            self._look_at_the_loop()
        waiter = self._ask()
        if waiter.done():
            return HeldPlace(self)
        leaves = None if gone is None else asyncio.ensure_future(gone())
        try:
            await self._wait(waiter, leaves)
        except BaseException:
            self._leave(waiter)
            raise
        finally:
            if leaves is not None:
                leaves.cancel()
        return HeldPlace(self)

    async def _wait(self, waiter: Future[None], leaves: asyncio.Future[None] | None) -> None:
        until = {asyncio.wrap_future(waiter)} | ({leaves} if leaves is not None else set())
        since = time.monotonic()
        while not waiter.done():
            left = since + self._patience() - time.monotonic()
            if left <= 0:
                raise self.refusal()
            await asyncio.wait(until, timeout=min(left, _LOOK_SECONDS), return_when=asyncio.FIRST_COMPLETED)
            if leaves is not None and leaves.done() and not waiter.done():
                raise Gone

    def _ask(self) -> Future[None]:
        waiter: Future[None] = Future()
        with self._lock:
            self._fade()
            self._came += 1
            while self._queue and self._free > self._kept_free():  # of which fewer are kept now
                self._free -= 1
                self._queue.popleft().set_result(None)
            if self._free > self._kept_free():
                self._free -= 1
                waiter.set_result(None)
                return waiter
            if len(self._queue) < self._may_wait():
                self._queue.append(waiter)
                return waiter
        raise self.refusal()

    def refusal(self) -> TooBusy:
        """Counts one who is refused, and returns what they are told."""
        with self._lock:
            self._fade()
            if not self._is_overrun():
                self._overrun_since = self._counted
            self._refused += 1
        return TooBusy(BUSY)

    def _fade(self) -> None:
        now = time.monotonic()
        kept = math.exp((self._counted - now) / _FADES_SECONDS)
        self._counted, self._came, self._refused = now, self._came * kept, self._refused * kept
        self._loop_took *= kept

    def _look_at_the_loop(self) -> None:
        took, apart = time.thread_time() - self._loop_clock, self._counted - self._looked
        # Of what it took since somebody came last, only the last second counts.
        self._loop_took += max(0.0, took) * min(1.0, _FADES_SECONDS / max(apart, _FADES_SECONDS))
        self._loop_clock, self._looked = time.thread_time(), self._counted

    def _is_overrun(self) -> bool:
        """Whether many are refused and more come than the places could do; half of the places refuse many for ever."""
        too_many = self._came * self._takes > self._at_once * _FADES_SECONDS
        return too_many and self._refused > _OVERLOAD * self._came

    def _is_overload(self) -> bool:
        return self._is_overrun() and time.monotonic() - self._overrun_since >= _OVERLOAD_SECONDS

    def _may_wait(self) -> int:
        return 1 if self._is_overload() else self._most_waiting

    def _kept_free(self) -> int:
        is_dear = self._loop_took > _DEAR * _FADES_SECONDS
        return self._at_once // 2 if is_dear and self._is_overload() else 0

    def _patience(self) -> float:
        if not self._is_overload():
            return _AT_THE_DOOR_SECONDS
        return min(_AT_THE_DOOR_SECONDS, max(self._takes / 8, _SHORTEST_PATIENCE))

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
            if self._queue and self._free >= self._kept_free():
                self._queue.popleft().set_result(None)
            else:
                self._free += 1


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
