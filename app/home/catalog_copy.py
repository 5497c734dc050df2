"""The copy of the catalog that is kept beside it, and putting it in the place of a damaged one.

Everything else in a home can be made again of the catalog and the pictures; the catalog cannot. So after each piece of
work that changes it SQLite writes a copy (`VACUUM INTO`), in the process that did the work and so at its low priority;
readers and writers go on meanwhile. A large catalog takes seconds, so copying may take a hundredth of the time at most:
one of 10 MB is copied every 20 seconds, one of a gigabyte every half an hour. What came since is found again by content
when it is added again.
"""

from __future__ import annotations

import logging
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.desk.errors import HomeDamaged, UsageProblem
from app.home import lock
from app.home.damage import CATALOG
from app.home.durable import FileSystem, free_bytes, temporary
from app.home.folder import Home
from app.home.store import ReleaseStore
from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.errors import UnknownImage
from ingest.sentence import joined, phrase
from ingest.storage import Store

logger = logging.getLogger(__name__)

BYTES_PER_SECOND = 50e6  # of a copy, which is read, written, and looked through
SHARE = 0.01  # of the time, that copying may take
ASIDE = "catalog-damaged-"
_LEAST_FREE = 1 << 30
_NAMED = 5


def keep_copy(home: Home) -> bool:
    """Copies the catalog where that is due; says whether it did. A failure is logged: the work that was done counts."""
    if not _is_due(home):
        return False
    started, fresh, files = time.monotonic(), temporary(home.catalog_copy), FileSystem()
    try:
        fresh.unlink(missing_ok=True)
        with closing(sqlite3.connect(f"{home.catalog.resolve().as_uri()}?mode=ro", uri=True)) as source:
            source.execute("VACUUM INTO ?", [str(fresh)])
        why = damage_of(fresh)
        if why:
            raise sqlite3.DatabaseError(why)
        files.fsync_file(fresh)
        files.rename(fresh, home.catalog_copy)
        files.fsync_dir(home.root)
    except (sqlite3.Error, OSError) as error:
        logger.warning("the catalog could not be copied: %s", error)
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        return False
    logger.info("the catalog was copied in %.1f s", time.monotonic() - started)
    return True


def _is_due(home: Home) -> bool:
    own = [path for path in (home.catalog, _wal(home.catalog)) if path.exists()]
    size = sum(path.stat().st_size for path in own)
    if not own or free_bytes(home.root) < 2 * size + _LEAST_FREE:
        return False
    if not home.catalog_copy.exists():
        return True
    copied = home.catalog_copy.stat().st_mtime
    is_changed = max(path.stat().st_mtime for path in own) > copied
    return is_changed and time.time() - copied >= size / BYTES_PER_SECOND / SHARE


def damage_of(catalog: Path) -> str:
    """Returns what SQLite finds wrong with a catalog's pages; empty where nothing is."""
    try:
        with closing(sqlite3.connect(f"{catalog.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            said = [str(row[0]) for row in opened.execute("PRAGMA quick_check(1)")]
    except sqlite3.Error as error:
        return str(error)
    return "" if said == ["ok"] else said[0]


@dataclass(frozen=True, slots=True)
class _Lost:
    """What can be read of a damaged catalog."""

    chunks: dict[str, str]  # names by id
    withdrawn: frozenset[str]  # ids of chunks
    out: frozenset[str]  # ids of pictures that were taken out


def restore_catalog(home: Home, *, by: str) -> str:
    """Puts the copy in the place of a damaged catalog, which is kept aside; returns what is lost, and found again.

    Raises:
        UsageProblem: a server has the catalog open.
        HomeDamaged: there is no sound copy; nothing was changed.
    """
    if home.is_answered():
        raise UsageProblem(
            phrase(
                "A server has the damaged catalog open. Stop it, run `perennial repair`, and start it again."
            )
        )
    copy = home.catalog_copy
    why = damage_of(copy) if copy.exists() else phrase("there is none")
    if why:
        said = phrase("The catalog is damaged and has no sound copy ({why}). Nothing was changed.", why=why)
        raise HomeDamaged(joined([said, phrase("Restore {file} from a backup.", file=home.catalog)]))
    with lock.hold(home.lock, "repairing the catalog"):
        lost = _readable(home.catalog)
        _put_in_place(home)
        ReleaseStore(home).damage.forget(CATALOG)
    return joined(_told(home, lost, by))


def _put_in_place(home: Home) -> None:
    files, fresh = FileSystem(), temporary(home.catalog)
    shutil.copyfile(home.catalog_copy, fresh)
    files.fsync_file(fresh)
    aside = home.root / f"{ASIDE}{time.strftime('%Y%m%d-%H%M%S')}.sqlite"
    for path in (_wal(home.catalog), home.catalog.with_name(f"{home.catalog.name}-shm")):
        if path.exists():  # of the damaged one; SQLite would play it into the copy
            files.rename(path, aside.with_name(f"{aside.name}{path.name[len(home.catalog.name) :]}"))
    files.link(home.catalog, aside)
    files.rename(fresh, home.catalog)
    files.fsync_dir(home.root)


def _told(home: Home, lost: _Lost, by: str) -> Iterator[str]:
    when = datetime.fromtimestamp(home.catalog_copy.stat().st_mtime, UTC).isoformat(" ", "minutes")[:16]
    yield phrase("The catalog is as it was at {time} UTC; the damaged one lies beside it.", time=when)
    with Catalog.open(home.catalog) as catalog, Store.open(home.blobs) as blobs:
        _hide_again(catalog, lost, by)
        known = {one.id for one in catalog.chunks()}
        gone = [name for chunk, name in lost.chunks.items() if chunk not in known]
        stored = set(BlobStore(blobs).ids())
        unnamed = len(stored - set(catalog.images(stored)))
    if gone:
        names = ", ".join(gone[:_NAMED])
        yield phrase(
            "{count} chunks came later and are lost from it: {names}. Add them again: what they hold is recognised.",
            count=len(gone),
            names=names,
        )
    if unnamed:
        yield phrase("{count} stored pictures are in no chunk until they come again.", count=unnamed)
    if not gone and not unnamed:
        yield phrase("No pictures came later; words said of answers and releases since then are lost.")


def _hide_again(catalog: Catalog, lost: _Lost, by: str) -> None:
    """What was taken out or withdrawn since the copy stays hidden, as far as that can be read."""
    why = "it was before the catalog was damaged"
    for image_id in sorted(set(catalog.images(lost.out)) - catalog.withheld.ids()):
        with suppress(UnknownImage):  # it is in no chunk any more
            catalog.withheld.take_out([image_id], by=by, why=why)
    for chunk in catalog.chunks():
        if chunk.id in lost.withdrawn and chunk.standing != "withdrawn":
            catalog.set_standing(chunk.id, "withdrawn", by=by, why=why)


def _readable(catalog: Path) -> _Lost:
    with closing(sqlite3.connect(f"{catalog.resolve().as_uri()}?mode=ro", uri=True)) as opened:

        def rows(query: str) -> dict[str, str]:
            found: dict[str, str] = {}
            with suppress(sqlite3.Error):  # of what cannot be read, what comes before it counts
                for key, value in opened.execute(query):
                    found[str(key)] = str(value)
            return found

        return _Lost(
            rows("SELECT id, name FROM chunks"),
            frozenset(rows("SELECT id, name FROM chunks WHERE standing = 'withdrawn'")),
            frozenset(rows("SELECT image_id, why FROM withheld")),
        )


def _wal(catalog: Path) -> Path:
    return catalog.with_name(f"{catalog.name}-wal")
