"""Folders that are watched: which of them changed, a batch at a time."""

import logging
import stat
import threading
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from watchfiles import Change, DefaultFilter, watch

logger = logging.getLogger(__name__)

# A batch ends when nothing more happens for a second, or after five.
_QUIET_MILLISECONDS = 1_000
_LONGEST_MILLISECONDS = 5_000
# How often folders that are not there are looked for, such as those of a disk that is not mounted.
_LOOK_MILLISECONDS = 1_000
_AGAIN_SECONDS = 10.0  # between two looks at folders that cannot be followed
_FILTER = DefaultFilter(ignore_dirs=[".git"])

_Identity = tuple[int, int]


def changed_folders(
    folders: Collection[Path], stopping: threading.Event, again: Collection[Path] = ()
) -> Iterator[list[Path]]:
    """Yields folders to look at again: at first all that are there, then those in which something changed.

    A folder that comes later, or in the place of another, such as that of a disk that is mounted, is yielded then, and
    those that the caller has put into `again` about a second later. Where changes cannot be followed, as those of names
    that are no text or where a folder may not be read, all folders are yielded every ten seconds. Ends when `stopping`
    is set.
    """
    every = [one.expanduser().absolute() for one in folders]
    known: dict[Path, _Identity] = {}
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
                    one for one in there if one not in known or one in again or _is_touched(one, changes)
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
            yield list(there)
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


def _is_touched(folder: Path, changes: set[tuple[Change, str]]) -> bool:
    return any(Path(path).is_relative_to(folder) for _, path in changes)
