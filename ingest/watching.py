"""Folders that are watched: which of them changed, a batch at a time."""

import threading
from collections.abc import Collection, Iterator
from pathlib import Path

from watchfiles import Change, watch

# A batch ends when nothing more happens for a second, or after five.
_QUIET_MILLISECONDS = 1_000
_LONGEST_MILLISECONDS = 5_000
# How often folders that are not there are looked for, such as those of a disk that is not mounted.
_LOOK_MILLISECONDS = 1_000


def changed_folders(
    folders: Collection[Path], stopping: threading.Event, again: Collection[Path] = ()
) -> Iterator[list[Path]]:
    """Yields folders to look at again: at first all that are there, then those in which something changed.

    A folder that comes later, such as that of a disk that is mounted, is yielded then, and those that the caller has
    put into `again` about a second later. Ends when `stopping` is set.
    """
    every = [one.expanduser().resolve() for one in folders]
    known: set[Path] = set()
    while not stopping.is_set():
        there = [one for one in every if one.is_dir()]
        known &= set(there)
        if not there:
            stopping.wait(_LOOK_MILLISECONDS / 1000)
            continue
        for changes in watch(
            *there,
            stop_event=stopping,
            debounce=_LONGEST_MILLISECONDS,
            step=_QUIET_MILLISECONDS,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=True,
        ):
            # New ones only now, as what changes while they are looked at has to be seen, too.
            touched = [one for one in there if one not in known or one in again or _is_touched(one, changes)]
            known.update(there)
            if touched:
                yield touched
            if [one for one in every if one.is_dir()] != there:
                break  # one came or went


def _is_touched(folder: Path, changes: set[tuple[Change, str]]) -> bool:
    return any(Path(path).is_relative_to(folder) for _, path in changes)
