"""The copy of the catalog that is kept beside it, and putting it in the place of a damaged one.

Everything else in a home can be made again of the catalog and the pictures; the catalog cannot. So after each piece of
work that changes it SQLite writes a copy (`VACUUM INTO`), in the process that did the work and so at its low priority;
readers and writers go on meanwhile. A large catalog takes seconds, so copying may take a hundredth of the time at most:
one of 10 MB is copied every 20 seconds, one of a gigabyte every half an hour. What came since is found again by content
when it is added again.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from app.desk.errors import HomeDamaged, UpdateRunning, UsageProblem
from app.home import lock
from app.home.damage import CATALOG
from app.home.durable import FileSystem, free_bytes, temporary
from app.home.folder import Home
from app.home.store import ReleaseStore
from ingest.catalog import Catalog
from ingest.errors import CatalogError, UnknownImage
from ingest.sentence import joined, phrase

logger = logging.getLogger(__name__)

BYTES_PER_SECOND = 50e6  # of a copy, which is read, written, and looked through
SHARE = 0.01  # of the time, that copying may take
ASIDE = "catalog-damaged-"
_LEAST_FREE = 1 << 30
_NAMED = 5


def keep_copy(home: Home, *, at_once: bool = False) -> bool:
    """Copies the catalog where that is due, or at once after something was removed for good; says whether it did.

    A failure is logged: the work that was done counts. Where there is no room for a copy without what was removed, the
    one that has it goes all the same.
    """
    if not _is_due(home, at_once=at_once):
        return False
    started, fresh = time.time(), temporary(home.catalog_copy)
    try:
        with copying(home):
            if home.catalog_place != home.catalog:  # it was carried away meanwhile
                return False
            if not _has_room(home):
                if at_once and home.catalog_copy.exists() and not damage_of(home.catalog):
                    drop_copy(home)
                    logger.warning("the catalog's copy had what was removed; there is no room for a new one")
                return False
            try:
                _copy(home, fresh, started)
            except BaseException:
                with suppress(OSError):
                    fresh.unlink(missing_ok=True)
                raise
    except (sqlite3.Error, OSError, CatalogError, UpdateRunning) as error:
        logger.warning("the catalog could not be copied: %s", error)
        return False
    logger.info("the catalog was copied in %.1f s", time.time() - started)
    return True


def copying(home: Home) -> AbstractContextManager[None]:
    """Keeps others from writing the copy while a block runs.

    Raises:
        UpdateRunning: somebody writes it.
    """
    return lock.hold(home.root / ".catalog-copy.lock", "copying the catalog")


def drop_copy(home: Home) -> None:
    """Removes the copy, and what is left of one that was begun; for who holds `copying`."""
    for path in (home.catalog_copy, temporary(home.catalog_copy)):
        path.unlink(missing_ok=True)
    FileSystem().fsync_dir(home.root)


def _copy(home: Home, fresh: Path, started: float) -> None:
    files = FileSystem()
    fresh.unlink(missing_ok=True)
    with closing(reading(home.catalog)) as source:
        source.execute("VACUUM INTO ?", [str(fresh)])
    why = damage_of(fresh)
    if not why and _has_chunks(home.catalog_copy) and not _has_chunks(fresh):
        why = "it has lost its chunks, which the copy has"
    if why:
        raise sqlite3.DatabaseError(why)
    os.utime(fresh, (started, started))  # what changed meanwhile is copied the next time
    files.fsync_file(fresh)
    files.rename(fresh, home.catalog_copy)
    files.fsync_dir(home.root)


def _has_chunks(catalog: Path) -> bool:
    try:
        with closing(reading(catalog)) as opened:
            return opened.execute("SELECT 1 FROM chunks LIMIT 1").fetchone() is not None
    except sqlite3.Error:
        return False


def reading(catalog: Path) -> sqlite3.Connection:
    """Connects to a catalog to read it; nothing is made where there is none."""
    return sqlite3.connect(f"{catalog.resolve().as_uri()}?mode=ro", uri=True)


def _is_due(home: Home, *, at_once: bool) -> bool:
    if home.catalog_place != home.catalog:  # its database is copied by those who run it
        return False
    own = [path for path in _files(home.catalog)[:2] if path.exists()]
    if not own:
        return False
    if at_once or not home.catalog_copy.exists():
        return True
    size = sum(path.stat().st_size for path in own)
    copied = home.catalog_copy.stat().st_mtime
    is_changed = max(path.stat().st_mtime for path in own) > copied
    return is_changed and time.time() - copied >= size / BYTES_PER_SECOND / SHARE


def _has_room(home: Home) -> bool:
    size = sum(path.stat().st_size for path in _files(home.catalog)[:2] if path.exists())
    return free_bytes(home.root) >= 2 * size + _LEAST_FREE


def damage_in(home: Home) -> str:
    """Returns what SQLite finds wrong with the catalog of a home (see `damage_of`); nothing where a database has it."""
    return damage_of(home.catalog) if home.catalog_place == home.catalog else ""


def damage_of(catalog: Path) -> str:
    """Returns what SQLite finds wrong with a catalog's pages, or that it has no tables; empty where nothing is.

    Raises:
        CatalogError: it cannot be looked through now: it is held, or memory, files or room have run out.
    """
    if not catalog.exists() or not catalog.stat().st_size:
        return phrase("it is empty")
    try:
        with closing(reading(catalog)) as opened:
            said = [str(row[0]) for row in opened.execute("PRAGMA quick_check(1)")]
            if said == ["ok"]:
                return "" if opened.execute("PRAGMA user_version").fetchone()[0] else phrase("it is empty")
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return str(error)
        raise CatalogError(
            phrase(
                "The catalog {file} cannot be looked through now ({why}). Nothing was changed; try again.",
                file=catalog,
                why=error,
            )
        ) from error
    return said[0]


@dataclass(frozen=True, slots=True)
class _Lost:
    """What can be read of a damaged catalog."""

    chunks: dict[str, str] = field(default_factory=dict)  # names by id
    withdrawn: frozenset[str] = frozenset()  # ids of chunks
    out: frozenset[str] = frozenset()  # ids of pictures that were taken out
    gone: frozenset[str] = frozenset()  # ids of pictures none of whose places was left
    hidden: frozenset[str] = frozenset()  # ids of pictures that were not in the gallery for another reason
    is_whole: bool = False  # whether all of these could be read


def restore_catalog(home: Home, *, by: str) -> str:
    """Puts the copy in the place of a damaged catalog, which is kept aside; returns what is lost, and found again.

    Nothing is done, and nothing returned, where it is not damaged.

    Raises:
        UsageProblem: a server, or somebody else, has the catalog open.
        HomeDamaged: there is no sound copy; nothing was changed.
        CatalogError: it cannot be looked through now; nothing was changed.
    """
    if not damage_in(home):
        return ""
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
    with lock.hold(home.lock, "repairing the catalog"), _alone(home):
        lost, fresh = _readable(home.catalog), temporary(home.catalog)
        # Where there is no catalog any more, one that was killed had made it ready.
        if home.catalog.exists() or not fresh.exists() or damage_of(fresh):
            for path in _files(fresh):
                path.unlink(missing_ok=True)
            shutil.copyfile(copy, fresh)
        # Before it takes its place: killed after that, nothing would be hidden again.
        told = list(_told(home, fresh, lost, by))
        _put_in_place(home, fresh)
        ReleaseStore(home).damage.forget(CATALOG)
    return joined(told)


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    """Keeps everybody else away from the catalog; who opens the home meanwhile waits."""
    try:
        with lock.briefly(home.catalog_lock, alone=True, waits=False):
            if not any(map(lock.holder, (home.root / "workers").glob("*.lock"))):
                yield
                return
    except BlockingIOError:
        pass
    raise UsageProblem(
        phrase(
            "Somebody else works on this home and has the damaged catalog open. Wait until it ends, then run "
            "`perennial repair` again."
        )
    )


def _put_in_place(home: Home, fresh: Path) -> None:
    """Killed anywhere, it leaves the damaged catalog, none, or the fresh one, never that with another's journal."""
    files = FileSystem()
    with closing(sqlite3.connect(fresh)) as opened:
        opened.execute("PRAGMA journal_mode=DELETE")  # one file, whole by itself
    files.fsync_file(fresh)
    aside = home.root / f"{ASIDE}{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}.sqlite"
    for path, kept in zip(_files(home.catalog), _files(aside), strict=True):
        if path.exists():  # SQLite would play its journal into the fresh one
            files.rename(path, kept)
    files.rename(fresh, home.catalog)
    files.fsync_dir(home.root)


def _told(home: Home, fresh: Path, lost: _Lost, by: str) -> Iterator[str]:
    when = datetime.fromtimestamp(home.catalog_copy.stat().st_mtime, UTC).isoformat(" ", "minutes")[:16]
    yield phrase("The catalog is as it was at {time} UTC; the damaged one lies beside it.", time=when)
    with Catalog.open(fresh) as catalog, closing(home.open_blobs(catalog)) as blobs:
        stored = set(blobs.ids())
        _hide_again(catalog, stored, lost, by)
        known = {one.id for one in catalog.standings()}
        gone = [name for chunk, name in lost.chunks.items() if chunk not in known]
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
    if not lost.is_whole:
        yield phrase(
            "Not all of the damaged catalog could be read: look whether pictures that were taken out since then, or "
            "withdrawn chunks, are shown again."
        )
    elif not gone and not unnamed:
        yield phrase("No pictures came later; words said of answers and releases since then are lost.")


def _hide_again(catalog: Catalog, stored: set[str], lost: _Lost, by: str) -> None:
    """What was taken out, withdrawn or removed since the copy stays hidden, as far as that can be read."""
    why = "it was before the catalog was damaged"
    catalog.forget(set(catalog.gallery_ids()) - stored)  # they were removed for good
    places = catalog.sources.of(lost.gone).values()
    catalog.sources.set_gone([one for every in places for one in every if not one.gone])
    for chunk in catalog.chunks():
        if chunk.id in lost.withdrawn and chunk.standing != "withdrawn":
            catalog.set_standing(chunk.id, "withdrawn", by=by, why=why)
    out = lost.out | (lost.hidden & set(catalog.gallery_ids()))
    for image_id in sorted(out - catalog.withheld.ids()):
        try:
            catalog.withheld.take_out([image_id], by=by, why=why)
        except UnknownImage:  # it is in no chunk any more, or it came after the copy
            catalog.withheld.keep_out([image_id], by=by, why=why)


def _readable(catalog: Path) -> _Lost:
    unread = []
    if not catalog.exists():
        return _Lost()
    with closing(reading(catalog)) as opened:

        def rows(query: str) -> dict[str, str]:
            found: dict[str, str] = {}
            try:
                for key, value in opened.execute(query):
                    found[str(key)] = str(value)
            except sqlite3.Error:  # what comes before it counts
                unread.append(query)
            return found

        chunks = rows("SELECT id, name FROM chunks")
        withdrawn = frozenset(rows("SELECT id, name FROM chunks WHERE standing = 'withdrawn'"))
        out = frozenset(rows("SELECT image_id, why FROM withheld"))
        gone = frozenset(rows("SELECT id, gone FROM images NOT INDEXED WHERE gone"))
        hidden = frozenset(rows("SELECT id, gone FROM images NOT INDEXED WHERE NOT in_gallery AND NOT gone"))
        return _Lost(chunks, withdrawn, out, gone, hidden, is_whole=not unread)


def _files(catalog: Path) -> list[Path]:
    return [catalog.with_name(f"{catalog.name}{end}") for end in ("", "-wal", "-shm")]
