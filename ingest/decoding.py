"""Strangers' pictures, decoded where they can do no harm.

What a decoder takes is bounded for plain files alone (`ingest.plain`). Some hundred bytes of others ask for gigabytes
or minutes, or end the process; they are decoded in a process of their own, which has a limit of memory and of
processor time for each, and which ends when it is not needed any more, so that what it took is given back.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, cast

from ingest.decoding_child import MEMORY_BYTES, PICTURES, PROCESSOR_SECONDS, answer, ask, decoded
from ingest.errors import BadImage, DecoderBusy
from ingest.images import DecodedImage, too_heavy
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.plain import is_plain
from ingest.sentence import phrase

_CLOCK_SECONDS = 120.0  # a busy machine gives a process little of its time
_IDLE_SECONDS = 30.0
_ENDING_SECONDS = 5.0
# What Python may need to start; whatever else the environment holds is no business of a decoder. A process of several
# threads, as numpy makes it, cannot leave the network.
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME")
_MOST_AT_ONCE = 4  # pictures; each takes memory by its pixels


def at_once() -> int:
    """Returns how many pictures are decoded at once: as many as there are cores, or fewer."""
    return min(_MOST_AT_ONCE, threads_asked() or os.cpu_count() or 1)


def threads_asked() -> int:
    """Returns with how many threads a process is to compute by its environment, which is OpenMP's; 0 for any."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # of a list, one for each level
    return int(first) if first.isdecimal() else 0


def decode_apart(
    data: bytes,
    limits: Limits = DEFAULT_LIMITS,
    *,
    largest: int = 0,
    patience: float = -1,
    with_facts: bool = False,
) -> DecodedImage:
    """Decodes one picture file as `ingest.images.decode` does, in a process of its own where it may take much.

    Args:
        data: the file.
        limits: what is refused.
        largest: pixels of the longest side beyond twice which the picture comes smaller, unless it is very narrow; 0
            for never.
        patience: seconds to wait while others' pictures are decoded; -1 for as long as they take.
        with_facts: whether what the file says of its picture is told, too (`ingest.facts`).

    Raises:
        BadImage: as there, or its decoder takes more memory or time than a picture may.
        DecoderBusy: they take longer than that.
    """
    if not data or len(data) > limits.image_bytes or is_plain(data, limits):
        return decoded(data, limits, largest, with_facts=with_facts)
    return _DECODER.decoded(data, limits, largest, patience, with_facts=with_facts)


class _Decoder:
    """The process that decodes one picture after another; started when it is needed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._ending: threading.Timer | None = None
        atexit.register(self.end)

    def decoded(
        self, data: bytes, limits: Limits, largest: int, patience: float, *, with_facts: bool
    ) -> DecodedImage:
        """Returns what the process makes of a picture."""
        if not self._turn.acquire(timeout=patience):
            raise DecoderBusy(
                phrase("Other pictures are being decoded right now. Try again in a few seconds.")
            )
        try:
            if self._ending is not None:
                self._ending.cancel()
            found = self._asked(data, limits, largest, with_facts=with_facts)
            self._count += 1
            if self._count >= PICTURES:
                self._end()
            self._ending = threading.Timer(_IDLE_SECONDS, self.end)
            self._ending.daemon = True
            self._ending.start()
        finally:
            self._turn.release()
        if isinstance(found, DecodedImage):
            return found
        raise found

    def end(self) -> None:
        """Ends the process when it has done what it is at."""
        with self._turn:
            self._end()

    def _asked(
        self, data: bytes, limits: Limits, largest: int, *, with_facts: bool
    ) -> DecodedImage | BadImage:
        if self._child is not None and self._child.poll() is not None:
            self._end()  # somebody has ended it since the last picture, which is not to be laid to this one
        child = self._child = self._child or _started()
        stdin, stdout = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)
        alarm = threading.Timer(_CLOCK_SECONDS, child.kill)
        alarm.start()
        try:
            ask(stdin, data, limits, largest, with_facts=with_facts)
            found = answer(stdout)
        except (OSError, ValueError):  # it has ended, and reads no more
            found = None
        finally:
            is_in_time = alarm.is_alive()
            alarm.cancel()
        return found if found is not None else self._why(is_in_time)

    def _why(self, is_in_time: bool) -> BadImage:
        """Says why the process ended in the middle of a picture."""
        child = self._child
        self._end()
        code = child.returncode if child is not None else 0
        if code == -signal.SIGXCPU or not is_in_time:
            said = phrase("Decoding the picture takes longer than {most} seconds.", most=PROCESSOR_SECONDS)
            return BadImage("image_too_slow", said)
        if code == 1:  # by an error that no decoder is known to raise, while it had no memory left to say so
            return too_heavy()
        return BadImage("image_unreadable", phrase("The picture ends the program that decodes it."))

    def _end(self) -> None:
        child, self._child, self._count = self._child, None, 0
        if child is not None:
            for pipe in (child.stdin, child.stdout):
                with suppress(OSError):  # what it did not read is flushed at nobody
                    cast(IO[bytes], pipe).close()
            try:
                child.wait(_ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _started() -> subprocess.Popen[bytes]:
    # Not by multiprocessing, which runs the main module of this process again: where that imports torch, two
    # gigabytes are gone before anything is decoded.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ingest.decoding_child", str(MEMORY_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"},
    )


_DECODER = _Decoder()
