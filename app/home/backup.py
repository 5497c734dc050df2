"""A backup of a whole home, written while others search it, add to it, teach it and prune it.

One folder a backup (`backup_files`) of what is held together (`backup_holding`); it gets its name last, so that what
has one is whole.

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
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

from app import DISTRIBUTION
from app.desk.errors import HomeDamaged, UsageProblem
from app.desk.jobs import Stage
from app.home import lock
from app.home.backup_files import FORMAT, MANIFEST, NAMES, Backup, new_name, newest
from app.home.backup_holding import at_one_moment, hold_published, hold_uploads, unfinished
from app.home.catalog_copy import damage_of
from app.home.commits import now
from app.home.durable import FileSystem, explaining_full_disk, is_full, publish_folder, room, sha256_of
from app.home.enough import require_room
from app.home.folder import Home
from app.home.package import sealed
from app.home.packs import keys_of, write_pack
from app.home.published import listed_files
from app.home.settings import SETTINGS_FILE, settings_file
from app.home.shared import MANIFEST as PUBLISHED
from app.home.store import ReleaseStore
from ingest.storage import HeldStore, Store

_PART = ".part-"
_NAMED_BY_CONTENT = ("versions/", "generations/", "releases/")
Tell = Callable[[Stage], None]


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
    # sha256 by published file
    _said: dict[tuple[str, str], dict[str, str | None]] = field(default_factory=dict)

    def written(self) -> BackupWritten:
        self.before = newest(self.to)
        require_room("This backup", self.to, disk=self._needed())
        self.part.mkdir()
        self.tell(Stage("hold", "holding what is published"))
        hold_published(self.home, self.pinned)
        hold_uploads(self.home, self.pinned)
        with at_one_moment(self.home, self.part) as (catalog, blobs):
            self.tell(Stage("catalog", "copying the catalog"))
            waiting = self._copy_catalog(catalog)
            hold_uploads(self.home, self.pinned)
            self._pack("blobs", blobs, "copying pictures", partial(_is_named, catalog))
        if (self.home.features / "data.mdb").exists():
            with Store.open(self.home.features, read_only=True) as store, store.held() as features:
                self._pack("features", features, "copying features", lambda _: True)
        self.tell(Stage("releases", "copying releases"))
        for path in sorted(path for path in self.pinned.rglob("*") if path.is_file()):
            name = path.relative_to(self.pinned).as_posix()
            if name.startswith("staging/") and name.split("/")[1] not in waiting:
                continue
            if NAMES.fullmatch(name):
                self._add(path, name)
            else:
                self.left_out.append(name)
        self._add(self.home.format_file, "FORMAT")
        if (settings := settings_file(self.home.root)) is not None:
            self._add(settings, SETTINGS_FILE)
        return self._published()

    def _needed(self) -> int:
        """Returns what will be written: records that no pack has, the catalog, and what cannot have a second name."""
        home, to, there = self.home, self.to, self.before.files if self.before else {}
        packs = sum(one["bytes"] for name, one in there.items() if name.endswith(".pack"))
        needed: int = room(home.catalog) + max(0, room(home.blobs, home.features) - packs)
        if home.root.stat().st_dev != to.stat().st_dev:
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
        backup = Backup(self.to / new_name(self.to), facts, hashlib.sha256(data).hexdigest())
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

    def _copy_catalog(self, catalog: sqlite3.Connection) -> Mapping[str, str | None]:
        copy = self.part / "catalog.sqlite"
        try:
            with closing(sqlite3.connect(copy)) as target:
                catalog.backup(target)
                target.execute("PRAGMA journal_mode=DELETE")  # one file, whole by itself
                waiting = unfinished(target)
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
        return waiting

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
        size = path.stat().st_size
        self.files[name] = {"bytes": size, "sha256": sha256_of(path)}
        self.new_bytes += size


def _is_named(catalog: sqlite3.Connection, key: bytes) -> bool:
    """Whether the catalog names the picture of a record; an upload that is being taken in stores before it names."""
    query = "SELECT EXISTS (SELECT 1 FROM images WHERE id = ?1) OR EXISTS (SELECT 1 FROM aside WHERE image_id = ?1)"
    return bool(catalog.execute(query, (key[1:].hex(),)).fetchone()[0])


def _is_linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError as error:  # another disk, or one without second names
        if is_full(error) or isinstance(error, FileNotFoundError):
            raise
        return False
    return True


def _damaged_catalog(why: object) -> str:
    return f"The catalog is damaged ({why}). `perennial repair` first; nothing was written."
