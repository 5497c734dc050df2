"""What was found damaged: a mark for each thing, so that nobody who compares only sizes trusts it again.

Reading every byte of a release takes too long to be waited for at each start, so whoever has read them says here what
was found. The mark of a folder is believed while its files are the same ones; what was put back is looked at anew.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from app.home.commits import now
from app.home.durable import replace_file
from ingest.sentence import from_stored, known_fields, to_stored
from model_updates.version_files import SOUND

CATALOG = "catalog"
"""The name of the catalog's mark."""

_OF_THE_FILE = (
    errno.ENOENT,
    errno.EIO,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
)  # it is lost, or not a file
_IN_WORDS = tuple(map(os.strerror, (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE)))


@dataclass(frozen=True, slots=True)
class Mark:
    """That something is damaged."""

    why: str  # a sentence
    since: str  # when it was first noticed, ISO 8601, UTC
    stamp: str = ""  # which files were found so; empty where that does not matter


def is_passing(error: BaseException) -> bool:
    """Whether something failed for want of files or memory, or by a disk that is away, and may work in a moment."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None and cause.errno not in _OF_THE_FILE:
            return True
        # FAISS says what the system said in words alone.
        is_said = isinstance(cause, RuntimeError) and any(one in str(cause) for one in _IN_WORDS)
        if is_said or isinstance(cause, MemoryError):
            return True
        cause = cause.__cause__
    return False


class Damage:
    """The marks of a home. Who may not write them keeps them in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: dict[str, Mark] = {}

    def note(self, name: str, why: str, folder: Path | None = None) -> Mark:
        """Marks a thing, of which `folder` has the files; one that is marked already keeps its time."""
        stamp = _stamp(folder) if folder is not None else ""
        known = self.mark(name)
        if known is not None and known.stamp == stamp:
            return known
        mark = Mark(why, now(), stamp)
        self._own.pop(name, None)
        try:
            self._folder.mkdir(exist_ok=True)
            replace_file(self._place(name), json.dumps(to_stored(asdict(mark))).encode())
        except OSError:
            self._own[name] = mark
        return mark

    def mark(self, name: str) -> Mark | None:
        """Returns the mark of a thing; one that cannot be read is none."""
        if name in self._own:  # the one on the disk is older, and could not be replaced
            return self._own[name]
        with suppress(OSError, ValueError, TypeError, AttributeError):
            return Mark(**known_fields(Mark, from_stored(json.loads(self._place(name).read_bytes()))))
        return None

    def of(self, folder: Path) -> Mark | None:
        """Returns the mark of a folder whose files are still the ones that were found damaged."""
        mark = self.mark(folder.name)
        return mark if mark is not None and mark.stamp == _stamp(folder) else None

    def forget(self, name: str) -> None:
        """Takes a mark away."""
        self._own.pop(name, None)
        with suppress(OSError):
            self._place(name).unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def _stamp(folder: Path) -> str:
    return json.dumps(sorted(_facts(folder)))


def _facts(folder: Path) -> Iterator[tuple[str | int, ...]]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            one = entry.stat()
            if entry.name != SOUND:
                yield entry.name, one.st_size, one.st_mtime_ns, one.st_ino
