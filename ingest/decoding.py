"""Strangers' pictures, decoded where they can do no harm.

What a decoder takes is bounded for small pictures of the plain formats alone. Some hundred bytes of others ask for
gigabytes or minutes, or end the process; they are decoded in a process of their own, which has a limit of memory and of
processor time for each, and which ends when it is not needed any more, so that what it took is given back.
"""

from __future__ import annotations

import atexit
import multiprocessing
import resource
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from pebble import ProcessExpired, ProcessPool

from ingest.camera_raw import is_camera_raw
from ingest.errors import BadImage
from ingest.file_kinds import picture_format
from ingest.images import DecodedImage, decode, open_picture, too_heavy
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.sentence import phrase

MEMORY_BYTES = 2 << 30
PROCESSOR_SECONDS = 20
_CLOCK_SECONDS = 120  # a busy machine gives a process little of its time
_PLAIN = frozenset({"JPEG", "PNG", "GIF", None})  # the last is a BMP, or none at all
_PLAIN_PIXELS = 16_000_000
_AT_MOST = 64  # pictures that one process decodes
_IDLE_SECONDS = 30.0


def decode_apart(data: bytes, limits: Limits = DEFAULT_LIMITS, *, largest: int = 0) -> DecodedImage:
    """Decodes one picture file as `ingest.images.decode` does, in a process of its own where it may take much.

    Args:
        data: the file.
        limits: what is refused.
        largest: pixels of the longest side beyond twice which the picture comes smaller; 0 for never.

    Raises:
        BadImage: as there, or its decoder takes more memory or time than a picture may.
    """
    if len(data) > limits.image_bytes or _is_plain(data, limits):
        return _decoded(data, limits, largest)
    return _DECODERS.decoded(data, limits, largest)


def _is_plain(data: bytes, limits: Limits) -> bool:
    if picture_format(data) not in _PLAIN or is_camera_raw(data):
        return False
    try:
        with open_picture(data, limits) as opened:
            return opened.width * opened.height <= _PLAIN_PIXELS
    except BadImage:
        return True  # which is said again at once


def _decoded(data: bytes, limits: Limits, largest: int) -> DecodedImage:
    found = decode(data, limits, side=largest)
    times = max(found.image.size) // largest if largest else 1
    return replace(found, image=found.image.reduce(times)) if times > 1 else found


class _Decoders:
    """One process at a time, started when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: ProcessPool | None = None
        self._under_way = 0
        self._ending: threading.Timer | None = None
        atexit.register(self.end)

    def decoded(self, data: bytes, limits: Limits, largest: int) -> DecodedImage:
        """Returns what the process makes of a picture."""
        with self._lock:
            if self._ending is not None:
                self._ending.cancel()
            self._under_way += 1
            self._pool = self._pool or ProcessPool(
                max_workers=1,
                max_tasks=_AT_MOST,
                initializer=_bound_memory,
                initargs=(MEMORY_BYTES,),
                context=multiprocessing.get_context("spawn"),  # forked, it would have our threads' locks
            )
            pool = self._pool
        try:
            return _answer(pool.submit(_in_bounds, _CLOCK_SECONDS, data, limits, largest))
        finally:
            with self._lock:
                self._under_way -= 1
                if not self._under_way:
                    self._ending = threading.Timer(_IDLE_SECONDS, self.end)
                    self._ending.daemon = True
                    self._ending.start()

    def end(self) -> None:
        """Ends the process, unless it is at work."""
        with self._lock:
            if self._under_way or self._pool is None:
                return
            pool, self._pool = self._pool, None
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()


_DECODERS = _Decoders()


def _answer(future: Any) -> DecodedImage:
    try:
        found: DecodedImage = future.result()
    except ProcessExpired as error:
        if error.exitcode == -signal.SIGXCPU:
            raise _too_slow() from None
        raise BadImage("image_unreadable", phrase("The picture ends the program that decodes it.")) from None
    except TimeoutError:
        raise _too_slow() from None
    except MemoryError:
        raise too_heavy() from None
    return found


def _too_slow() -> BadImage:
    return BadImage(
        "image_too_slow",
        phrase("Decoding the picture takes longer than {most} seconds.", most=PROCESSOR_SECONDS),
    )


def _bound_memory(more: int) -> None:
    """Bounds memory to so much beside what is mapped already: the modules of whichever program asks, too."""
    try:
        mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:  # no Linux
        mapped = 0
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more, mapped + more))


def _in_bounds(data: bytes, limits: Limits, largest: int) -> DecodedImage:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + PROCESSOR_SECONDS, hard)
    )
    return _decoded(data, limits, largest)
