"""Folders that are watched: which of them changed, a batch at a time."""

import hashlib
import logging
import math
import os
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from watchfiles import Change, DefaultFilter, watch

logger = logging.getLogger(__name__)

# A batch ends when nothing more happens for a second, or after five.
_QUIET_MILLISECONDS = 1_000
_LONGEST_MILLISECONDS = 5_000
# How often folders that are not there are looked for, such as those of a disk that is not mounted.
_LOOK_MILLISECONDS = 1_000
_AGAIN_SECONDS = 10.0  # between two looks at folders that cannot be followed
# Before what failed is looked at again: at first, and at most; each pause is twice the one before.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 60.0, 3_600.0
_IGNORED = [".git"]
_FILTER = DefaultFilter(ignore_dirs=_IGNORED)

_Identity = tuple[int, int]
_State = tuple[_Identity, bytes]
_Again = Callable[[Path], bool]


class Failures:
    """The folders that could not be taken in, and when each is due again; what is wrong may pass without a change."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begins with none; `clock` gives seconds."""
        self._clock = clock
        self._counts: dict[Path, int] = {}
        self._due: dict[Path, float] = {}

    def note(self, folder: Path) -> float:
        """Notes that a folder failed, once more; returns the seconds until it is due."""
        before = self._counts.get(folder, 0)
        pause = min(_FIRST_PAUSE_SECONDS * 2.0 ** min(before, 30), _LONGEST_PAUSE_SECONDS)
        self._counts[folder], self._due[folder] = before + 1, self._clock() + pause
        return pause

    def is_due(self, folder: Path) -> bool:
        """Whether to look at a folder without a change: its pause is over."""
        return self._clock() >= self._due.get(folder, math.inf)

    def begin(self, folder: Path) -> None:
        """Notes that a folder is looked at: it is not due until it fails again."""
        self._due.pop(folder, None)

    def forget(self, folder: Path) -> None:
        """Forgets a folder that went well, or that waits for a change."""
        self._counts.pop(folder, None)
        self._due.pop(folder, None)


def changed_folders(
    folders: Collection[Path], stopping: threading.Event, again: _Again = lambda _: False
) -> Iterator[list[Path]]:
    """Yields folders to look at again: at first all that are there, then those in which something changed.

    A folder that comes later, or in the place of another, such as that of a disk that is mounted, is yielded then, and
    those of which `again` says so, asked about once a second. Where changes cannot be followed, as those of names
    that are no text or where a folder may not be read, the files are compared every ten seconds with what they were.
    `again` may raise nothing. Ends when `stopping` is set.
    """
    every = [one.expanduser().absolute() for one in folders]
    known: dict[Path, _Identity] = {}
    compared: dict[Path, _State] = {}
    told = ""
    while not stopping.is_set():
        there = _there(every)
        known = {one: identity for one, identity in known.items() if there.get(one) == identity}
        if not there:
            stopping.wait(_LOOK_MILLISECONDS / 1000)
            continue
        try:
            for changes in watch(
                *there,
                watch_filter=_FILTER,
                stop_event=stopping,
                debounce=_LONGEST_MILLISECONDS,
                step=_QUIET_MILLISECONDS,
                rust_timeout=_LOOK_MILLISECONDS,
                yield_on_timeout=True,
                raise_interrupt=True,
            ):
                # New ones only now, as what changes while they are looked at has to be seen, too.
                touched = [
                    one for one in there if one not in known or again(one) or _is_touched(one, changes)
                ]
                known.update(there)
                if touched:
                    yield touched
                # One that is made anew at once may have the number of the one before.
                left = {one for one in there if (Change.deleted, str(one)) in changes}
                known = {one: identity for one, identity in known.items() if one not in left}
                if left or _there(every) != there:
                    break  # one came or went
        # The second is watchfiles' own, of a name that is no text. Told to pass over what may not be read, it would
        # follow nothing that comes after it, and not say so.
        except (OSError, RuntimeError) as error:
            if told != str(error):
                told = str(error)
                logger.warning(
                    "not every change can be followed, so folders are looked at by turns: %s", told
                )
            known.clear()  # what changed meanwhile is not known
            if due := _others_than(compared, there, again):
                yield due
            stopping.wait(_AGAIN_SECONDS)


def _there(folders: Sequence[Path]) -> dict[Path, _Identity]:
    """Returns the folders that are there, without links, each with what tells it from another in its place."""
    found: dict[Path, _Identity] = {}
    for one in folders:
        try:
            facts = one.stat()
            if stat.S_ISDIR(facts.st_mode):
                found[one.resolve()] = facts.st_dev, facts.st_ino
        except OSError:  # it is not there
            continue
    return found


def _others_than(compared: dict[Path, _State], there: dict[Path, _Identity], again: _Again) -> list[Path]:
    """Returns the folders that are not as they were `compared`, which is brought up to date, and those due `again`."""
    found = []
    for one, identity in there.items():
        now = identity, _sum_of(one)  # before it is looked at: what changes meanwhile has to be seen, too
        if again(one) or compared.get(one) != now:
            found.append(one)
        compared[one] = now
    return found


def _sum_of(folder: Path) -> bytes:
    """Returns what changes with any file below a folder, or with whether it can be looked at; opens none."""
    digest = hashlib.blake2b()
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(one for one in folders if one not in _IGNORED)
        for name in sorted(one for one in files if _FILTER(Change.modified, one)):
            try:
                seen = os.lstat(f"{root}/{name}")
                facts = [seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns]
            except OSError:
                facts = []
            digest.update(repr((root, name, facts)).encode())
    return digest.digest()


def _is_touched(folder: Path, changes: set[tuple[Change, str]]) -> bool:
    return any(Path(path).is_relative_to(folder) for _, path in changes)
