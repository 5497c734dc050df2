"""What may be thrown away: unfinished work, published folders that no release needs, and what pruning gives up.

Careful on purpose. Every release on the shelf that was not pruned keeps its version and generation; while one release
cannot be read, nobody knows what it needs and nothing published is removed. Things are removed only under the updater
lock, so that nothing here is in use by another updater.
"""

import logging
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.desk.errors import ReleaseDamaged, UsageProblem
from app.home import holding, lock
from app.home.commit_files import TEMPORARY_PREFIX
from app.home.durable import fault
from app.home.manifest import ReleaseManifest
from app.home.published import Shelf
from app.home.store import ReleaseStore
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

logger = logging.getLogger(__name__)

TRASH_PREFIX = "trash-"
RESUMABLE = ("queued", "interrupted", "cancelled", "failed")
"""The states of a job that can go on."""
UNRELEASED_SECONDS = 7 * 86_400.0
"""For so long a version that no release names, such as a rejected one, stays for a person to look at."""
GRACE_SECONDS = 600.0  # in which a release being made right now names its folders
STAGING_SECONDS = 86_400.0  # a large gallery may take hours to stage
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


def clean_staging(
    store: ReleaseStore, keep: Collection[str] = (), *, grace_seconds: float = STAGING_SECONDS
) -> list[str]:
    """Removes staging folders, uploads nobody took in, and half-written commits; returns their names.

    What a job in `keep` will resume stays, and what changed less than so many seconds ago: taking pictures in needs no
    updater lock, and may be staging.

    Raises:
        UpdateRunning: Somebody else is updating.
    """
    home = store.home
    with store.lock_unless_held(lock.TIDYING):
        staged = [path for path in sorted(home.staging.iterdir()) if path.name not in keep]
        half_written = sorted(home.commits.glob(f"{TEMPORARY_PREFIX}*"))
        found = (*staged, *sorted(home.inbox.iterdir()), *half_written)
        old = [path for path in found if time.time() - _changed(path) >= grace_seconds]
        for path in old:
            _delete(path)
    return [path.name for path in old]


def collect(
    store: ReleaseStore,
    *,
    keep: Collection[str] = (),
    at_once: Collection[str] = (),
    grace_seconds: float = GRACE_SECONDS,
) -> list[str]:
    """Removes versions and generations that no kept release needs; returns their ids, none while one cannot be read.

    What is younger than `grace_seconds` stays, since a release may be about to name it, unless it is one of `at_once`;
    and so do the ids in `keep`.

    Raises:
        UpdateRunning: Somebody else is updating.
    """
    removed: list[str] = []
    with store.lock_unless_held(lock.TIDYING):
        kept = store.kept()
        for shelf in [] if kept is None else store.shelves:
            for folder in _unneeded(kept or (), [shelf]):
                if folder.name in keep or not (
                    folder.name in at_once or shelf.is_old(folder.name, grace_seconds)
                ):
                    continue
                shelf.drop(folder.name)
                if folder.is_dir():
                    _remove(store, folder)
                removed.append(folder.name)
    return removed


def prune(store: ReleaseStore, names: Collection[str], *, by: str, why: str) -> list[str]:
    """Gives the encoders and indexes of releases up, and removes what no kept release needs; returns its names.

    None of them is live. What a release says of itself stays; killed anywhere, each is kept whole or pruned.

    Raises:
        UsageProblem: One is live; nothing was pruned.
        UpdateRunning: Somebody else is updating.
    """
    with store.lock_unless_held("pruning releases"):
        try:
            _mark_pruned(store, names, by=by, why=why)
        except OSError:  # the disk is full, say, and nobody goes back to what is marked already
            _collect_given_up(store)
            raise
        fault("prune:marked")
        logger.info("pruned by %s: %s", by, ", ".join(names))
        return _collect_given_up(store)


def _mark_pruned(store: ReleaseStore, names: Collection[str], *, by: str, why: str) -> None:
    with holding.briefly(store.home, alone=True):
        live = store.standing().commit
        if live is not None and live.release in names:
            raise UsageProblem(phrase("{release} is live and cannot be pruned.", release=live.release))
        store.mark_pruned(names, by=by, why=why)


def _collect_given_up(store: ReleaseStore) -> list[str]:
    return collect(store, at_once=_given_up(store), grace_seconds=UNRELEASED_SECONDS)


def unneeded(store: ReleaseStore) -> list[Path]:
    """Returns the folders of versions and generations that no release needs; none while a release cannot be read."""
    kept = store.kept()
    return [] if kept is None else _unneeded(kept, store.shelves)


def given_up_by(store: ReleaseStore, names: Collection[str]) -> list[Path]:
    """Returns the folders that pruning these releases would remove.

    Raises:
        ReleaseDamaged: A release cannot be read, so nobody knows what it needs.
    """
    kept = store.kept(names)
    if kept is None:
        raise ReleaseDamaged(
            phrase("A release cannot be read, so nobody knows what it needs: see `perennial doctor`.")
        )
    at_once = _given_up(store, names)
    return [
        folder
        for shelf in store.shelves
        for folder in _unneeded(kept, [shelf])
        if folder.name in at_once or shelf.is_old(folder.name, UNRELEASED_SECONDS)
    ]


def _given_up(store: ReleaseStore, names: Collection[str] = ()) -> set[str]:
    """Versions and generations of pruned releases, and of those named: a release had them, and none is to come."""
    gone = [record for record in store.releases() if record.pruned is not None or record.id in names]
    return {name for record in gone for name in (record.version, record.generation)}


def _remove(store: ReleaseStore, folder: Path) -> None:
    # Renamed first, so that a crash in the middle leaves no half folder on the shelf.
    trash = store.home.staging / f"{TRASH_PREFIX}{uuid.uuid4().hex}"
    fault("prune:rename")
    store.files.rename(folder, trash)
    store.files.fsync_dir(folder.parent)
    fault("prune:renamed")
    _delete(trash)
    fault("prune:deleted")
    shutil.rmtree(store.home.graphs / folder.name, ignore_errors=True)  # those it got later


def _unneeded(kept: Sequence[ReleaseManifest], shelves: Collection[Shelf]) -> list[Path]:
    """The published folders that no kept release needs.

    A version needs the one that its line started from, too: strategies go back to it.
    """
    needed = {name for one in kept for name in (one.version, one.generation)}
    found = []
    for shelf in shelves:
        for name in needed & set(shelf.ids()):
            with suppress(ReleaseDamaged):  # then there is nothing to go by
                needed.add(str(shelf.read(name)[0].get("root")))
        # Of a shared home some are here that others removed.
        names = dict.fromkeys([*shelf.ids(), *shelf.ids_here()])
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
