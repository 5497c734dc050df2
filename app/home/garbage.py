"""What may be thrown away: unfinished work, and published folders that no release needs.

Careful on purpose. Every release on the shelf keeps its version and generation; while one release cannot
be read, nobody knows what it needs and nothing published is removed. Only the holder of the updater lock
calls these functions, so nothing here is in use by another updater.
"""

import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.desk.errors import ReleaseDamaged
from app.home.commit_files import TEMPORARY_PREFIX
from app.home.durable import FileSystem, fault
from app.home.folder import Home
from app.home.manifest import ReleaseManifest
from app.home.published import Shelf
from ingest.records import FINAL_STATES, JobRecord

TRASH_PREFIX = "trash-"
RESUMABLE = ("queued", "interrupted", "cancelled", "failed")
"""The states of a job that can go on."""
UNRELEASED_SECONDS = 7 * 86_400.0
"""For so long a version that no release names, such as a rejected one, stays for a person to look at."""
_RESUMABLE_DAYS = 7


def resumable(jobs: Iterable[JobRecord]) -> frozenset[str]:
    """Returns the names of the staging folders that may still be needed.

    The checkpoints of a failed or cancelled job are worth gigabytes, so they wait a week for somebody to go on.
    """
    recent = (datetime.now(UTC) - timedelta(days=_RESUMABLE_DAYS)).isoformat()
    return frozenset(
        job.id
        for job in jobs
        if job.state not in FINAL_STATES
        or (job.state in RESUMABLE and (job.finished or job.created) > recent)
    )


def remove_leftovers(home: Home, *, keep: Collection[str] = (), grace_seconds: float) -> list[str]:
    """Removes staging folders, uploads nobody took in, and half-written commits; returns their names.

    What a job in `keep` will resume stays, and what changed less than so many seconds ago: taking pictures in needs no
    updater lock, and may be staging.
    """
    staged = [path for path in sorted(home.staging.iterdir()) if path.name not in keep]
    half_written = sorted(home.commits.glob(f"{TEMPORARY_PREFIX}*"))
    uploads = sorted(home.inbox.iterdir())
    old = [
        path for path in (*staged, *uploads, *half_written) if time.time() - _changed(path) >= grace_seconds
    ]
    for path in old:
        _delete(path)
    return [path.name for path in old]


def remove_unreferenced(
    home: Home,
    files: FileSystem,
    *,
    kept: Sequence[ReleaseManifest] | None,
    shelves: Collection[Shelf],
    keep: Collection[str],
    at_once: Collection[str] = (),
    grace_seconds: float,
) -> list[str]:
    """Removes versions and generations that no kept release needs; returns their ids, none while `kept` is unknown.

    What is younger than `grace_seconds` stays, since a release may be about to name it, unless it is one of `at_once`;
    and so do the ids in `keep`.
    """
    removed: list[str] = []
    for shelf in [] if kept is None else shelves:
        for folder in unneeded(kept or (), [shelf]):
            if folder.name in keep or not (
                folder.name in at_once or shelf.is_old(folder.name, grace_seconds)
            ):
                continue
            shelf.drop(folder.name)
            if folder.is_dir():
                _remove(home, files, folder)
            removed.append(folder.name)
    return removed


def _remove(home: Home, files: FileSystem, folder: Path) -> None:
    # Renamed first, so that a crash in the middle leaves no half folder on the shelf.
    trash = home.staging / f"{TRASH_PREFIX}{uuid.uuid4().hex}"
    fault("prune:rename")
    files.rename(folder, trash)
    files.fsync_dir(folder.parent)
    fault("prune:renamed")
    _delete(trash)
    fault("prune:deleted")
    shutil.rmtree(home.graphs / folder.name, ignore_errors=True)  # those it got later


def unneeded(kept: Sequence[ReleaseManifest], shelves: Collection[Shelf]) -> list[Path]:
    """Returns the published folders that no kept release needs.

    A version needs the one that its line started from, too: strategies go back to it.
    """
    needed = {name for one in kept for name in (one.version, one.generation)}
    found = []
    for shelf in shelves:
        for name in needed & set(shelf.ids()):
            with suppress(ReleaseDamaged):  # then there is nothing to go by
                needed.add(str(shelf.read(name)[0].get("root")))
        names = dict.fromkeys(
            [*shelf.ids(), *shelf.ids_here()]
        )  # of a shared home some are here that others removed
        found += [shelf.folder / name for name in names if name not in needed]
    return found


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _changed(path: Path) -> float:
    """When a folder, or anything in it, last changed; now, for what has gone meanwhile."""
    try:
        inside = [*path.rglob("*")] if path.is_dir() and not path.is_symlink() else []
        return max(one.lstat().st_mtime for one in (path, *inside))
    except FileNotFoundError:
        return time.time()
