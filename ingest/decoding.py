"""Strangers' pictures, decoded where they can do no harm.

What a decoder takes is bounded for small pictures of the plain formats alone. Some hundred bytes of others ask for
gigabytes or minutes, or end the process; they are decoded in a process of their own, which has a limit of memory and of
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

from ingest.camera_raw import is_camera_raw
from ingest.decoding_child import MEMORY_BYTES, PROCESSOR_SECONDS, answer, ask, decoded
from ingest.errors import BadImage
from ingest.file_kinds import picture_format
from ingest.images import DecodedImage, open_picture, too_heavy
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.sentence import phrase

# By format, the megapixels up to which a picture is plain; of those that `picture_format` does not know it is a BMP, or
# no picture at all.
_PLAIN = {"JPEG": 16, "PNG": 16, "GIF": 16, "WebP": 4, None: 16}
_CLOCK_SECONDS = 120.0  # a busy machine gives a process little of its time
_AT_MOST = 500  # pictures that one process decodes
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
    if not data or len(data) > limits.image_bytes or _is_plain(data, limits):
        return decoded(data, limits, largest)
    return _DECODER.decoded(data, limits, largest)


def _is_plain(data: bytes, limits: Limits) -> bool:
    most = _PLAIN.get(picture_format(data), 0)
    if not most or is_camera_raw(data):
        return False
    try:
        with open_picture(data, limits) as opened:
            return opened.width * opened.height <= most * 1_000_000
    except BadImage:
        return True  # which is said again at once


class _Decoder:
    """The process that decodes one picture after another; started when it is needed."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._count = 0
        self._ending: threading.Timer | None = None
        atexit.register(self.end)

    def decoded(self, data: bytes, limits: Limits, largest: int) -> DecodedImage:
        """Returns what the process makes of a picture."""
        with self._turn:
            if self._ending is not None:
                self._ending.cancel()
            found = self._asked(data, limits, largest)
            self._count += 1
            if self._count >= _AT_MOST:
                self._end()
            self._ending = threading.Timer(_IDLE_SECONDS, self.end)
            self._ending.daemon = True
            self._ending.start()
        if isinstance(found, DecodedImage):
            return found
        raise found

    def end(self) -> None:
        """Ends the process when it has done what it is at."""
        with self._turn:
            self._end()

    def _asked(self, data: bytes, limits: Limits, largest: int) -> DecodedImage | BadImage:
        child = self._child = self._child or _started()
        stdin, stdout = cast(IO[bytes], child.stdin), cast(IO[bytes], child.stdout)
        alarm = threading.Timer(_CLOCK_SECONDS, child.kill)
        alarm.start()
        try:
            ask(stdin, data, limits, largest)
            found = answer(stdout)
        except (OSError, ValueError):  # it has ended and reads no more, or what it says is no JSON
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
            child.wait()


def _started() -> subprocess.Popen[bytes]:
    # Not by multiprocessing, which runs the main module of this process again: where that imports torch, two
    # gigabytes are gone before anything is decoded.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ingest.decoding_child", str(MEMORY_BYTES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


_DECODER = _Decoder()
