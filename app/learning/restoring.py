"""A home made of a backup: all of it is checked before any of it is a home.

A backup may come from anybody, so it is read as a release of another home is. Only what its manifest names is looked
at, under names that a backup has; every byte is compared with its sha256 on the way; pictures and features are records
that are written into stores of our own; triggers in the catalog are ours; a job goes on only where it takes in a file
that came along; and what is live is loaded in a process of its own, with limits of memory and time, before the home has
its place. Killed anywhere, there is no home, or a whole one; restoring again begins anew.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from app.desk.errors import NewerFormat, PackageDamaged, UsageProblem
from app.desk.jobs import Stage
from app.home.backup_files import FORMAT, NAMES, PACKS, Backup, newest, read_manifest
from app.home.backup_holding import WITH_UPLOAD
from app.home.catalog_copy import damage_of
from app.home.durable import FileSystem, explaining_full_disk, publish_folder
from app.home.enough import require_room
from app.home.folder import FORMAT as HOME_FORMAT
from app.home.folder import Home
from app.home.packs import records_of
from app.home.settings import Settings
from app.home.store import ReleaseStore, Standing
from app.learning.apart import try_release
from app.learning.outcomes import Tell
from ingest.catalog import Catalog
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase
from ingest.sqlite import FULL_TEXT
from ingest.storage import Store

_NEEDED = ("FORMAT", "catalog.sqlite")
_BLOCK = 1 << 20
_SPARE_BYTES = 1 << 20  # folders, and the first pages of stores
_OF_CONTENT = b"ih"  # kinds of pictures whose key is the sha256 of their bytes


@dataclass(frozen=True)
class Restored:
    """What `restore` made."""

    home: Path
    backup: Path  # the folder that it was made of
    written: str  # when that was written, ISO 8601, UTC
    release: str  # what is live
    passed_over: str  # why what went live after it is not; empty where nothing did
    bytes: int  # of all files of the backup
    ended_jobs: tuple[str, ...]  # ids of jobs that had not ended and do not go on


def restore(settings: Settings, source: Path, *, sha256: str | None, tell: Tell) -> Restored:
    """Makes a home of a backup, or of the newest below a folder; `sha256` is what writing it showed.

    Raises:
        UsageProblem: something is at the place of the home, nothing can be moved there, or there is no backup.
        PackageDamaged, NewerFormat: the backup is not what was written; nothing was made.
        NoSpace: the disk has too little room; nothing was made.
        NeedsLearning: what is live is searched with torch, which is not installed.
    """
    target = settings.home.absolute()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageProblem(
            f"{settings.home} is there already, and a backup replaces nothing. Name a new place with --home."
        )
    if target.is_symlink() or target.is_mount():  # what was made beside it could not take its place
        raise UsageProblem(
            f"{settings.home} is a link or a disk of its own. Name a folder in it that is not there yet: "
            f"--home {shlex.quote(str(settings.home / 'home'))}"
        )
    backup = read_manifest(source) or newest(source)
    if backup is None:
        raise UsageProblem(f"{source} holds no backup that `perennial backup` wrote.")
    _require_plain(backup, sha256)
    target.parent.mkdir(parents=True, exist_ok=True)
    require_room("Restoring this home", target.parent, disk=_room_for(backup))
    staged = target.with_name(f".{target.name}.restoring")
    shutil.rmtree(staged, ignore_errors=True)
    try:
        with explaining_full_disk(target.parent, "restoring a home"):
            ended = _Restoring(backup, staged, tell).made()
            standing = _tried(settings, staged, backup)
            publish_folder(FileSystem(), staged, target, "restore")
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return Restored(
        settings.home,
        backup.folder,
        str(backup.facts.get("written"))[:40],
        standing.commit.release if standing.commit else "",
        standing.skipped[0].why if standing.skipped else "",
        backup.bytes,
        ended,
    )


def _room_for(backup: Backup) -> int:
    """Returns what the home will take: what is the same takes its place once, and records are in pages."""
    once = {(one["sha256"], one["bytes"]) for one in backup.files.values()}
    packs = sum(int(one["bytes"]) for name, one in backup.files.items() if name.endswith(".pack"))
    return sum(int(size) for _, size in once) + packs // 2 + _SPARE_BYTES


def _require_plain(backup: Backup, sha256: str | None) -> None:
    """Refuses a backup by what its manifest says, before anything else of it is read."""
    if sha256 is not None and sha256.strip().lower() != backup.sha256:
        raise _refused(backup, f"the sha256 of its manifest is {backup.sha256}, another than was given")
    if backup.facts.get("format") != FORMAT:
        raise NewerFormat(
            f"{backup.folder.name} has format {str(backup.facts.get('format'))[:20]}; this program reads {FORMAT}."
        )
    for name, facts in backup.files.items():
        if not NAMES.fullmatch(name) or ".." in PurePosixPath(name).parts:
            raise _refused(backup, f"it names {name[:80]!r}, which no backup has")
        is_sized = isinstance(facts, dict) and isinstance(facts.get("bytes"), int) and facts["bytes"] >= 0
        if not is_sized or not re.fullmatch("[0-9a-f]{64}", str(facts.get("sha256"))):
            raise _refused(backup, f"it does not say how large {name} is, or its sha256")
    missing = [name for name in _NEEDED if name not in backup.files]
    if missing:
        raise _refused(backup, f"it has no {missing[0]}")


def _tried(settings: Settings, staged: Path, backup: Backup) -> Standing:
    """Loads what would be live as a server does, in a process apart: of damaged releases, the one before them."""
    home = Home(staged)
    releases = ReleaseStore(home)
    standing = releases.read_through()
    live = standing.commit or releases.current()
    if live is None or (not standing.skipped and live.release != backup.facts.get("release")):
        raise _refused(backup, "another release would be live than it says")
    record = releases.release(live.release)
    folders = (home.versions / record.version, home.generations / record.generation)
    size = sum(path.stat().st_size for folder in folders for path in folder.iterdir())
    try_release(settings.model_copy(update={"home": staged}), live.release, size)
    return standing


class _Restoring:
    """A home on its way, in a folder that has no name yet."""

    def __init__(self, backup: Backup, staged: Path, tell: Tell) -> None:
        self._backup, self._home, self._tell = backup, Home(staged), tell
        self._written: dict[tuple[str, int], Path] = {}

    def made(self) -> tuple[str, ...]:
        """Writes everything; returns the jobs that it ended."""
        Home.create(self._home.root)
        for store in (self._home.blobs, self._home.features):
            Store.open(store).close()
        files = self._backup.files
        for done, name in enumerate(sorted(files)):
            self._tell(Stage("files", name, done / len(files), {"done": done, "total": len(files)}))
            kind = name.partition("-")[0]
            if name.endswith(".pack") and kind in PACKS:
                self._unpack(name, kind)
            else:
                self._copy(name)
        found = self._home.format_file.read_text(encoding="ascii", errors="replace").strip()
        if found != str(HOME_FORMAT):
            raise NewerFormat(
                f"The backup is of a home of format {found[:20]}; this program knows {HOME_FORMAT}."
            )
        self._require_own_triggers()
        return tuple(self._end_jobs())

    def _copy(self, name: str) -> None:
        place, expected = self._home.root / name, self._backup.files[name]
        place.parent.mkdir(parents=True, exist_ok=True)
        twin = self._written.get((expected["sha256"], expected["bytes"]))
        if twin is not None and "/" in name:
            os.link(twin, place)
            return
        with _Verified(self._backup, name) as source, place.open("wb") as into:
            while block := source.read(_BLOCK):
                into.write(block)
        self._written[expected["sha256"], expected["bytes"]] = place

    def _unpack(self, name: str, kind: str) -> None:
        folder = self._home.blobs if kind == PACKS[0] else self._home.features
        with Store.open(folder) as store, _Verified(self._backup, name) as source:
            try:
                store.put_many(self._records(name, source, is_picture=kind == PACKS[0]))
            except ValueError as error:
                raise _refused(self._backup, f"{name} cannot be read ({error})") from error

    def _records(self, name: str, source: _Verified, *, is_picture: bool) -> Iterator[tuple[bytes, bytes]]:
        for key, payload in records_of(source):
            if is_picture and key[:1] in (b"i", b"h") and hashlib.sha256(payload).digest() != key[1:]:
                raise _refused(self._backup, f"{name} holds another picture than it says")
            yield key, payload

    def _require_own_triggers(self) -> None:
        """Refuses a catalog that is damaged, or in which more would happen than rows being written."""
        why = damage_of(self._home.catalog)
        if why:
            raise _refused(self._backup, f"its catalog is damaged ({why})")
        with closing(sqlite3.connect(self._home.catalog)) as opened:
            rows = opened.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        for kind, name, sql in rows:
            is_virtual = str(sql).upper().startswith("CREATE VIRTUAL")
            if (kind in {"trigger", "view"} or is_virtual) and sql not in FULL_TEXT:
                raise _refused(self._backup, f"its catalog has {str(name)[:80]!r}, which none of ours has")

    def _end_jobs(self) -> Iterator[str]:
        said = phrase("It had not ended when the backup was written; ask for it again.")
        with Catalog.open(self._home.catalog) as catalog:
            for job in catalog.jobs():
                if job.state not in FINAL_STATES and not self._may_go_on(job):
                    catalog.update_job(job.id, state="cancelled", error=said, pid=None)
                    yield job.id
            # A picture may have been named, and not yet be in what was live.
            why = "pictures that were being taken in when the backup was written"
            catalog.add_job("gallery", {"why": why, "by": "restore"})

    def _may_go_on(self, job: JobRecord) -> bool:
        """Whether a job takes in a file that came along, and nothing else of this machine or from elsewhere."""
        options = job.arguments.get("options") or {}
        is_plain = not options.get("fetch") and not options.get("pictures_beside")
        file = f"staging/{job.id}/{job.arguments.get('source')}"
        return job.kind in WITH_UPLOAD and is_plain and file in self._backup.files


class _Verified:
    """A file of a backup that is no link, and turns out at its end to be what the manifest says."""

    def __init__(self, backup: Backup, name: str) -> None:
        self._backup, self._name, self._expected = backup, name, backup.files[name]
        self._digest, self._left = hashlib.sha256(), int(self._expected["bytes"])
        path = backup.folder
        for part in PurePosixPath(name).parts[:-1]:
            path = path / part
            if path.is_symlink():
                raise _refused(backup, f"{part} is a link")
        try:
            descriptor = os.open(backup.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise _refused(backup, f"{name} cannot be read ({error.strerror})") from error
        self._file: BinaryIO = os.fdopen(descriptor, "rb")
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._file.close()
            raise _refused(backup, f"{name} is no file")

    def read(self, size: int, /) -> bytes:
        """Reads on; what lies behind the size that the manifest says is not read."""
        block = self._file.read(min(size, self._left))
        self._left -= len(block)
        self._digest.update(block)
        return block

    def __enter__(self) -> _Verified:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._file:
            is_whole = not self._left and not self._file.read(1)
        if kind is None and (not is_whole or self._digest.hexdigest() != self._expected["sha256"]):
            raise _refused(self._backup, f"{self._name} is not what its manifest says")


def _refused(backup: Backup, why: str) -> PackageDamaged:
    return PackageDamaged(f"{backup.folder.name} is refused: {why}. Nothing was restored.")
