"""A backup of a whole home, written while others search it, add to it, teach it and prune it.

One folder a backup, with a manifest that names size and sha256 of every file; it gets its name last, so that what has
one is whole. Nobody is kept waiting, and still everything in it belongs together:

- What is published is held by second names first, on the home's own disk, where pruning takes away the first ones
  alone: the commits, then the releases, then their folders, then which releases were pruned. So a release that a
  commit names is there, with its folders or with the mark that says why not.
- Then the catalog and the pictures are held as they are at one moment. Intake stores pictures before it names them, so
  the catalog names none that is not there, and no release one that the catalog does not know.
- Uploads that wait for their job are held before the catalog and again after it.

What an earlier backup in the same place has is not written again: files whose names come from their content get a
second name, and of pictures and features a pack holds those that no earlier one has. A pack of which something was
removed since is not taken over: no later backup has a picture that was removed for good. It has the vectors and
features that the home keeps of it. Nor is a file taken over that was damaged then, or was cut short or lost since.

A damaged release is written as it is. What is live in a backup is the newest release whose every byte is as published.

Left out is what is made again (indexes of captions, the catalog's copy), what belongs to one machine (the password
file, locks, logs), and work that was not done: checkpoints of updates, and candidates that no release names.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from app import DISTRIBUTION
from app.desk.errors import HomeDamaged, UsageProblem
from app.desk.jobs import Stage
from app.home import garbage, lock
from app.home.catalog_copy import damage_of, reading
from app.home.commit_files import CommitFiles, file_of
from app.home.commits import kept_at, now
from app.home.durable import FileSystem, explaining_full_disk, is_full, publish_folder, room
from app.home.enough import require_room
from app.home.folder import Home
from app.home.package import sealed, unsealed
from app.home.packs import keys_of, write_pack
from app.home.published import listed_files
from app.home.settings import SETTINGS_FILE, settings_file
from app.home.shared import MANIFEST as PUBLISHED
from app.home.store import ReleaseStore
from ingest.carrying import copy_rows, held
from ingest.records import FINAL_STATES
from ingest.storage import HeldStore, Store
from ingest.tables import COMING, LEFT
from model_updates.version_files import SOUND

MANIFEST = "backup.json"
FORMAT = 1
PACKS = ("blobs", "features")
"""The stores whose records a backup has in packs: pictures, and what encoders saw in them."""
WITH_UPLOAD = ("ingest", "import")
"""The kinds of jobs that wait with a file of their own."""
_ID = "[A-Za-z0-9][A-Za-z0-9._+-]{0,120}"
NAMES = re.compile(
    rf"FORMAT|catalog\.sqlite|perennial\.toml|({'|'.join(PACKS)})-[0-9]{{5}}\.pack|commits/[0-9]{{8}}\.json"
    rf"|pruned/{_ID}\.json|(versions|generations|releases|graphs)/{_ID}/{_ID}|staging/j[0-9]{{1,18}}/{_ID}"
)
"""What the files of a backup are called; one that names anything else is not restored."""
_PREFIX = "perennial-"
_PART = ".part-"
_NAMED_BY_CONTENT = ("versions/", "generations/", "releases/")
_TRIES = 5
Tell = Callable[[Stage], None]


@dataclass(frozen=True)
class Backup:
    """A backup that lies somewhere."""

    folder: Path
    facts: Mapping[str, Any]  # what its manifest says
    sha256: str  # of the manifest

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Size and sha256 by name."""
        found: dict[str, dict[str, Any]] = self.facts["files"]
        return found

    @property
    def number(self) -> int:
        """How many were written into the same place before it; the clock may have been set back since."""
        return int(self.facts.get("number", 0))

    @property
    def bytes(self) -> int:
        """How large its files are together."""
        return sum(int(one["bytes"]) for one in self.files.values())


@dataclass(frozen=True)
class BackupWritten:
    """What `write_backup` wrote."""

    path: Path  # the backup's folder
    release: str  # what is live in it
    passed_over: str  # why what went live after it is not; empty where nothing did
    bytes: int  # of all its files
    new_bytes: int  # of those that no earlier backup in the same place has
    damaged: int  # records of pictures and features that could not be read, and are not in it
    sha256: str  # of its manifest, which vouches for every file
    left_out: tuple[str, ...]  # files of the home whose names no backup has


def write_backup(home: Home, to: Path, tell: Tell) -> BackupWritten:
    """Writes a backup of a home into a new folder below `to`, which is made where it is missing.

    Raises:
        UsageProblem: the place is in the home, or the folder above it is not there, or the home's pictures lie in a
            bucket.
        UpdateRunning: another backup is being written there.
        HomeDamaged: the catalog is damaged, no release is whole, or a file has gone; `doctor` says more.
        NoSpace: the disk is full. Of what was begun nothing stays.
    """
    home.require_stores()
    if home.objects_address is not None:
        raise UsageProblem(
            f"Pictures and releases of this home lie in {home.objects_address}, and are not copied from there. "
            "Have the bucket keep what is deleted (versioning) and the database write backups of its own; or carry "
            "both back first: `perennial home move --objects home`."
        )
    if to.resolve().is_relative_to(home.root.resolve()):
        raise UsageProblem(f"{to} is in the home; name a place outside, best on another disk.")
    if not to.absolute().parent.is_dir():
        raise UsageProblem(f"{to} lies in no folder that exists; name another place.")
    to.mkdir(exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(lock.hold(to / ".lock", "writing a backup"))
        for left in to.glob(f"{_PART}*"):
            shutil.rmtree(left)
        # Or `repair` might replace the catalog meanwhile.
        stack.enter_context(lock.briefly(home.catalog_lock, alone=False))
        pinned, part = home.staging / f"backup-{uuid.uuid4().hex}", to / f"{_PART}{uuid.uuid4().hex}"
        for folder in (pinned, part):
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        with explaining_full_disk(to, "writing a backup"):
            return _Writing(home, to, pinned, part, tell).written()


def newest(place: Path) -> Backup | None:
    """Returns the newest backup below a folder; one whose manifest cannot be read is passed over."""
    found = filter(None, map(read_manifest, place.glob(f"{_PREFIX}*")))
    return max(found, key=lambda one: (one.number, one.folder.name), default=None)


def read_manifest(folder: Path) -> Backup | None:
    """Returns the backup that a folder holds; None where it has no manifest that is as it was written."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except OSError:
        return None
    facts = unsealed(data)
    return None if facts is None else Backup(folder, facts, hashlib.sha256(data).hexdigest())


@dataclass
class _Writing:
    home: Home
    to: Path
    pinned: Path  # second names of what is published, on the home's disk
    part: Path  # what becomes the backup
    tell: Tell
    before: Backup | None = None
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    new_bytes: int = 0
    damaged: int = 0
    left_out: list[str] = field(default_factory=list)
    _twins: dict[tuple[int, int], str] = field(default_factory=dict)
    _said: dict[tuple[str, str], dict[str, str | None]] = field(
        default_factory=dict
    )  # sha256 by published file

    def written(self) -> BackupWritten:
        self.before = newest(self.to)
        require_room("This backup", self.to, disk=self._needed())
        self.part.mkdir()
        self.tell(Stage("hold", "holding what is published"))
        self._pin()
        self._pin_uploads()
        with _at_one_moment(self.home, self.part) as (catalog, blobs):
            self.tell(Stage("catalog", "copying the catalog"))
            unfinished = self._copy_catalog(catalog)
            self._pin_uploads()
            named = partial(_is_named, catalog)
            self._pack("blobs", blobs, "copying pictures", named)
        if (self.home.features / "data.mdb").exists():
            with Store.open(self.home.features, read_only=True) as store, store.held() as features:
                self._pack("features", features, "copying features", lambda _: True)
        self.tell(Stage("releases", "copying releases"))
        for path in sorted(path for path in self.pinned.rglob("*") if path.is_file()):
            name = path.relative_to(self.pinned).as_posix()
            if name.startswith("staging/") and name.split("/")[1] not in unfinished:
                continue
            if NAMES.fullmatch(name):
                self._add(path, name)
            else:
                self.left_out.append(name)
        self._add(self.home.format_file, "FORMAT")
        settings = settings_file(self.home.root)
        if settings is not None:
            self._add(settings, SETTINGS_FILE)
        return self._published()

    def _needed(self) -> int:
        """Returns what will be written: records that no pack has, the catalog, and what cannot have a second name."""
        home, to = self.home, self.to
        packs = (
            sum(one["bytes"] for name, one in self.before.files.items() if name.endswith(".pack"))
            if self.before
            else 0
        )
        needed = room(home.catalog) + max(0, room(home.blobs, home.features) - packs)
        if home.root.stat().st_dev != to.stat().st_dev:
            there = set(self.before.files) if self.before else set()
            published = (home.versions, home.generations, home.releases, home.graphs)
            new = [path for folder in published for path in folder.rglob("*") if path.is_file()]
            needed += room(*(path for path in new if path.relative_to(home.root).as_posix() not in there))
        return needed

    def _published(self) -> BackupWritten:
        standing = ReleaseStore(Home(self.pinned)).read_through()
        live = standing.commit
        if live is None and standing.skipped:
            raise HomeDamaged(
                f"No release of the home is whole ({standing.skipped[0].why}) `perennial repair` first; nothing was "
                "written."
            )
        facts = {
            "format": FORMAT,
            "program": metadata.version(DISTRIBUTION),
            "written": now(),
            "number": self.before.number + 1 if self.before else 0,
            "release": live.release if live else "",
            "commit": live.number if live else 0,
            "files": self.files,
        }
        data = sealed(facts)
        (self.part / MANIFEST).write_bytes(data)
        backup = Backup(self.to / _name(self.to), facts, hashlib.sha256(data).hexdigest())
        publish_folder(FileSystem(), self.part, backup.folder, "backup")
        return BackupWritten(
            backup.folder,
            str(facts["release"]),
            standing.skipped[0].why if standing.skipped else "",
            backup.bytes,
            self.new_bytes,
            self.damaged,
            backup.sha256,
            tuple(self.left_out),
        )

    def _pin(self) -> None:
        for left in reversed(range(_TRIES)):
            self.pinned.mkdir()
            try:
                self._pin_once()
                return
            except FileNotFoundError:  # pruned in this moment
                shutil.rmtree(self.pinned)
                if not left:
                    raise

    def _pin_once(self) -> None:
        home, held = self.home, Home(self.pinned)
        commits = kept_at(home.commits_place, home, FileSystem())
        are_files = isinstance(commits, CommitFiles)
        if not are_files:
            held.commits.mkdir()
            for number, data in commits.read_many(commits.numbers()).items():
                file_of(held.commits, number).write_bytes(data)
        for folder in (
            *[home.commits] * are_files,
            home.releases,
            home.generations,
            home.versions,
            home.graphs,
            home.pruned,
        ):
            (self.pinned / folder.name).mkdir()
            for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
                inner = path.relative_to(folder)
                if inner.name == SOUND or any(name.startswith(".") for name in inner.parts):
                    continue
                target = self.pinned / folder.name / inner
                if path.is_dir():
                    target.mkdir()
                else:
                    os.link(path, target)
        for unneeded in garbage.unneeded(ReleaseStore(held)):
            shutil.rmtree(unneeded)
        for graphs in held.graphs.iterdir():
            if not (held.versions / graphs.name).is_dir():
                shutil.rmtree(graphs)

    def _pin_uploads(self) -> None:
        with self.home.open_catalog(read_only=True) as catalog:
            unfinished = [job for job in catalog.jobs() if job.state not in FINAL_STATES]
        jobs = {job.id: _waits_with(job.kind, job.arguments) for job in unfinished}
        for job, source in jobs.items():
            if source is None or (self.pinned / "staging" / job / source).exists():
                continue
            (self.pinned / "staging" / job).mkdir(parents=True, exist_ok=True)
            try:
                os.link(self.home.staging / job / source, self.pinned / "staging" / job / source)
            except FileNotFoundError:  # it is not there yet, or taken in by now
                continue

    def _copy_catalog(self, catalog: sqlite3.Connection) -> Mapping[str, str | None]:
        copy = self.part / "catalog.sqlite"
        try:
            with closing(sqlite3.connect(copy)) as target:
                catalog.backup(target)
                target.execute("PRAGMA journal_mode=DELETE")  # one file, whole by itself
                unfinished = _unfinished(target)
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, str(error)) from error
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise HomeDamaged(_damaged_catalog(error)) from error
            raise
        why = damage_of(copy)
        if why:
            raise HomeDamaged(_damaged_catalog(why))
        self._enter("catalog.sqlite", copy)
        return unfinished

    def _pack(self, kind: str, held: HeldStore, said: str, wants: Callable[[bytes], bool]) -> None:
        """Takes the packs over of which everything is still wanted, and writes one of what they have not."""
        known: set[bytes] = set()
        packs = [name for name in self.before.files if name.startswith(f"{kind}-")] if self.before else []
        for name in packs:
            keys = self._keys(name)
            if all(held.has(key) and wants(key) for key in keys) and self._take_over(name):
                known.update(keys)

        def fresh() -> Iterator[tuple[bytes, bytes]]:
            for count, (key, payload) in enumerate(held.records()):
                if count % 1000 == 0:
                    self.tell(Stage(kind, said, details={"done": count}))
                if key in known or not wants(key):
                    continue
                if payload is None:
                    self.damaged += 1
                    continue
                yield key, payload

        highest = max((int(name[len(kind) + 1 : -5]) for name in packs), default=0)
        name = f"{kind}-{highest + 1:05d}.pack"
        if write_pack(self.part / name, fresh()):
            self._enter(name, self.part / name)

    def _keys(self, pack: str) -> list[bytes]:
        if self.before is None:
            return []
        try:
            return list(keys_of(self.before.folder / pack))
        except (OSError, ValueError):  # it is damaged: what it had is written again
            return [b"none"]

    def _add(self, source: Path, name: str) -> None:
        """Copies a file that never changes, or gives it a second name where that is possible."""
        is_known = name.startswith(_NAMED_BY_CONTENT) and self._was_sound(name)
        if is_known and self._take_over(name, source.stat().st_size):
            return
        target = self.part / name
        target.parent.mkdir(parents=True, exist_ok=True)
        facts = source.stat()
        twin = self._twins.setdefault((facts.st_dev, facts.st_ino), name)
        if twin != name and _is_linked(self.part / twin, target):
            self.files[name] = self.files[twin]
            return
        if name == SETTINGS_FILE or not _is_linked(source, target):
            shutil.copyfile(source, target)
        self._enter(name, target)

    def _was_sound(self, name: str) -> bool:
        """Whether the backup before has a published file as its folder's manifest says, or as its id does."""
        known = self.before.files.get(name) if self.before else None
        if known is None:
            return False
        shelf, folder, file = name.split("/")
        if file == PUBLISHED:
            return str(known["sha256"]).startswith(folder.rpartition("-")[2])
        if (shelf, folder) not in self._said:
            try:
                manifest = json.loads((self.pinned / shelf / folder / PUBLISHED).read_bytes())
            except ValueError:  # it is the manifest that is damaged
                manifest = {}
            self._said[shelf, folder] = {one: digest for one, _, digest in listed_files(manifest)}
        return str(known["sha256"]) == self._said[shelf, folder].get(file)

    def _take_over(self, name: str, size: int | None = None) -> bool:
        """Gives a file of the backup before a second name; says whether there is one, whole, of this size."""
        known = self.before.files.get(name) if self.before else None
        if self.before is None or known is None or size not in (None, known["bytes"]):
            return False
        earlier, target = self.before.folder / name, self.part / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            # Something may have happened to it since; of its bytes restoring knows, which reads them all.
            if earlier.stat().st_size != known["bytes"] or not _is_linked(earlier, target):
                return False
        except FileNotFoundError:
            return False
        self.files[name] = known
        return True

    def _enter(self, name: str, path: Path) -> None:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        self.files[name] = {"bytes": size, "sha256": digest}
        self.new_bytes += size


@contextmanager
def _at_one_moment(home: Home, part: Path) -> Iterator[tuple[sqlite3.Connection, HeldStore]]:
    """Holds catalog and pictures so that nothing was written to the pictures between the two.

    Raises:
        CatalogMissing: the catalog was left for another place, and nobody has gone there.
    """
    with Store.open(home.blobs, read_only=True) as store:
        while True:
            # Brings one of an earlier release up to date, and one that was just carried.
            with home.open_catalog() as opened:
                place = opened.place  # which may be another one in the next round
            at = _held_in_database(place, part) if isinstance(place, str) else _held_in_file(place)
            with store.held() as blobs, at as catalog:
                if catalog is not None and blobs.is_newest():
                    yield catalog(), blobs
                    return


@contextmanager
def _held_in_file(place: Path) -> Iterator[Callable[[], sqlite3.Connection] | None]:
    """Holds a moment of the file; None where it is left for another place, or filled from one, in this moment."""
    with closing(reading(place)) as catalog:
        catalog.isolation_level = None
        catalog.execute("BEGIN")
        number = catalog.execute("PRAGMA user_version").fetchone()[0]  # only now it is held
        yield None if number in (LEFT, COMING) else lambda: catalog


@contextmanager
def _held_in_database(place: str, part: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Holds a moment of the database; when it is asked for, it is written to a file, which goes in the end."""
    folder = part / ".rows"
    with ExitStack() as stack, ExitStack() as holding:
        rows = holding.enter_context(held(place))

        def written() -> sqlite3.Connection:
            folder.mkdir()
            stack.callback(shutil.rmtree, folder)
            copy_rows(rows, folder / "catalog.sqlite")
            holding.close()  # the database would keep everything that changes while the pictures are packed
            return stack.enter_context(closing(reading(folder / "catalog.sqlite")))

        yield written


def _unfinished(catalog: sqlite3.Connection) -> dict[str, str | None]:
    """Returns the jobs that have not ended, each with the name of the file that it waits with."""
    marks = ", ".join("?" * len(FINAL_STATES))
    rows = catalog.execute(
        f"SELECT seq, kind, arguments FROM jobs WHERE state NOT IN ({marks})", sorted(FINAL_STATES)
    )
    return {f"j{seq}": _waits_with(kind, json.loads(arguments)) for seq, kind, arguments in rows}


def _waits_with(kind: str, arguments: Mapping[str, Any]) -> str | None:
    return Path(str(arguments.get("source", ""))).name or None if kind in WITH_UPLOAD else None


def _is_named(catalog: sqlite3.Connection, key: bytes) -> bool:
    """Whether the catalog names the picture of a record; an upload that is being taken in stores before it names."""
    query = "SELECT EXISTS (SELECT 1 FROM images WHERE id = ?1) OR EXISTS (SELECT 1 FROM aside WHERE image_id = ?1)"
    return bool(catalog.execute(query, (key[1:].hex(),)).fetchone()[0])


def _is_linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError as error:  # another disk, or one without second names
        if is_full(error):
            raise
        return False
    return True


def _name(to: Path) -> str:
    """Returns the name of a new backup: by time, and another's of the same second with a number."""
    name = f"{_PREFIX}{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    count = len(list(to.glob(f"{name}*")))
    return f"{name}-{count + 1}" if count else name


def _damaged_catalog(why: object) -> str:
    return f"The catalog is damaged ({why}). `perennial repair` first; nothing was written."
