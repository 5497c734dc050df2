"""What may be thrown away: unfinished work, and published folders that no release needs.

Careful on purpose. Every release on the shelf keeps its version and generation; while one release cannot
be read, nobody knows what it needs and nothing published is removed. Only the holder of the updater lock
calls these functions, so nothing here is in use by another updater.
"""

import shutil
import time
import uuid
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.desk.errors import ReleaseDamaged
from app.home.commits import TEMPORARY_PREFIX
from app.home.durable import FileSystem
from app.home.folder import Home
from app.home.published import Shelf
from ingest.records import FINAL_STATES, JobRecord

TRASH_PREFIX = "trash-"
RESUMABLE = ("queued", "interrupted", "cancelled", "failed")
"""The states of a job that can go on."""
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
    releases: Shelf,
    shelves: Collection[Shelf],
    keep: Collection[str],
    grace_seconds: float,
) -> list[str]:
    """Removes versions and generations that no release names; returns their ids, none while a release is unreadable.

    What is younger than `grace_seconds` stays, since a release may be about to name it, and so do the ids in `keep`.
    """
    needed = set(keep)
    try:
        for release_id in releases.ids():
            manifest, _ = releases.read(release_id)
            needed.update(str(manifest.get(shelf.label)) for shelf in shelves)
    except ReleaseDamaged:
        return []
    removed = []
    for shelf in shelves:
        for published_id in shelf.ids():
            folder = shelf.folder / published_id
            if published_id in needed or time.time() - folder.stat().st_mtime < grace_seconds:
                continue
            # Renamed first, so that a crash in the middle leaves no half folder on the shelf.
            trash = home.staging / f"{TRASH_PREFIX}{uuid.uuid4().hex}"
            files.rename(folder, trash)
            files.fsync_dir(shelf.folder)
            _delete(trash)
            removed.append(published_id)
    return removed


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
