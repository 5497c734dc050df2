"""Published folders in a bucket, from which every machine of a home takes those that it needs.

A file lies there once, under the sha256 of what it holds, whichever folders have it. A folder is published by its
manifest, a row of the catalog that is written when all files are there. What a machine has of it on its own disk is a
copy, which can be fetched again.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from app.desk.errors import ReleaseDamaged
from app.home import holding, lock
from app.home.durable import FileSystem, explaining_full_disk, publish_folder, sha256_of
from app.home.folder import Home
from ingest.errors import ObjectMissing, ObjectsUnreachable
from ingest.objects import Objects

if TYPE_CHECKING:
    from ingest.bucket_rows import PublishedRows

FOLDER = "files"
NOTED = "damaged"
"""Where a machine notes which file came damaged from the bucket, for those that may have a sound one."""
LOCK = "fetching.lock"
MANIFEST = "manifest.json"

Twin = Callable[[str], Path | None]
"""Finds a file of this machine by the sha256 of what it holds."""


class SharedFolders:
    """The folders of a bucket, and the rows that say which are published."""

    def __init__(self, home: Home, objects: Objects, rows: PublishedRows, files: FileSystem) -> None:
        self._home, self._objects, self.rows, self.staging, self._files = (
            home,
            objects,
            rows,
            home.staging,
            files,
        )

    def _in_turn(self) -> AbstractContextManager[None]:
        return holding.in_turn(self._home, holding.FILES)

    def push(self, folder: Path) -> None:
        """Publishes a folder that is complete; once more is no error.

        Raises:
            ReleaseDamaged: a file of it is missing or changed.
        ObjectsUnreachable: the bucket does not answer; it is not published, and may be pushed again.
        """
        manifest = (folder / MANIFEST).read_bytes()
        wanted = files_in(manifest)
        self._put(folder, wanted)
        while True:
            # Who takes back another folder with the same file removes it before this, or sees that it is wanted.
            with self._in_turn():
                gone = {name: one for name, one in wanted.items() if self._objects.size(_object(one)) is None}
                if not gone:
                    return self.rows.enter(folder.name, manifest)
            self._put(folder, gone)

    def _put(self, folder: Path, wanted: Mapping[str, str]) -> None:
        for name, digest in wanted.items():
            path = folder / name
            if not path.is_file():
                raise ReleaseDamaged(f"{folder.name} has lost its file {name}.")
            if self._objects.size(_object(digest)) == path.stat().st_size:
                continue
            if sha256_of(path) != digest:
                raise ReleaseDamaged(f"{name} of {folder.name} has changed since it was published.")
            self._objects.put(_object(digest), path)

    def fetch(self, target: Path, twin: Twin) -> None:
        """Copies a published folder to its place on this machine; a file that has a twin here is another name of it.

        Raises:
            ReleaseDamaged: it was not published, or what came is not what was.
            ObjectsUnreachable: the bucket does not answer.
            NoSpace: the disk is full.
        """
        # One process of a machine fetches it, and the others wait for that.
        with lock.briefly(self.staging.parent / LOCK, alone=True):
            if not target.is_dir():
                self._fetch(target, twin)

    def _fetch(self, target: Path, twin: Twin) -> None:
        manifest = self.rows.manifest(target.name)
        if manifest is None:
            raise ReleaseDamaged(f"{target.name} is not published.")
        staged = self.staging / f"fetched-{uuid.uuid4().hex}"
        try:
            with explaining_full_disk(self.staging, "fetching a release"):
                self._files.mkdir(staged)
                for name, digest in files_in(manifest).items():
                    self._bring(staged / name, digest, twin(digest))
                self._files.write(staged / MANIFEST, manifest)
                publish_folder(self._files, staged, target, "fetched")
        except OSError:
            if not target.is_dir():  # or another process was first
                raise
        finally:
            shutil.rmtree(staged, ignore_errors=True)

    def drop(self, names: Collection[str]) -> None:
        """Takes folders back, and removes the files that no other has."""
        manifests = self.rows.manifests()
        theirs = _digests(manifests[name] for name in names if name in manifests)
        for name in names:
            self.rows.leave(name)
        with self._in_turn():
            others = _digests(iter(self.rows.manifests().values()))
            self.rows.leave("")  # refused where another machine has its turn by now
            self._remove(theirs - others)

    def put_back(self, copies: Mapping[str, Path]) -> None:
        """Writes sound files that the bucket has lost, by sha256, in place of damaged ones.

        Raises:
            ObjectsUnreachable: the bucket does not answer.
        """
        for digest, path in copies.items():
            self._objects.put(_object(digest), path)
            self._objects.delete([f"{NOTED}/{digest}"])
        with self._in_turn():  # what had them may have been taken back meanwhile
            self._remove(copies.keys() - _digests(iter(self.rows.manifests().values())))

    def _remove(self, digests: Collection[str]) -> None:
        self._objects.delete(
            [one for digest in sorted(digests) for one in (_object(digest), f"{NOTED}/{digest}")]
        )

    def _bring(self, place: Path, digest: str, twin: Path | None) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if twin is not None:
            with suppress(OSError):  # a file system without second names, or it has gone meanwhile
                os.link(twin, place)
                return
        try:
            came = self._objects.fetch(_object(digest), place)
        except ObjectMissing as error:
            raise ReleaseDamaged(f"{place.name} is not in {self._objects.address} any more.") from error
        if came != digest:
            with suppress(ObjectsUnreachable):  # then the next that it comes to notes it
                self._objects.put(f"{NOTED}/{digest}", b"")
            raise ReleaseDamaged(f"{place.name} in {self._objects.address} is not what was published.")


class SharedPlace:
    """Says where the published folders of a home are shared, whenever it is asked: they may be moved meanwhile."""

    def __init__(self, home: Home, files: FileSystem) -> None:
        self._home, self._files = home, files
        self._last: tuple[tuple[Path | str, str], SharedFolders] | None = None

    def now(self) -> SharedFolders | None:
        """Returns where they are shared; None where they lie in the home alone.

        Raises:
            HomeDamaged: `engines.toml` cannot be read.
            CatalogUnreachable: the database does not answer.
        """
        address = self._home.objects_address
        if address is None:
            return None
        place = self._home.catalog_place, address
        if self._last is None or self._last[0] != place:
            self._last = place, folders_of(self._home, address, self._files)
        return self._last[1]


def folders_of(home: Home, address: str, files: FileSystem | None = None) -> SharedFolders:
    """Returns the folders of a home in the bucket at an address."""
    from ingest.catalog import if_only_for_reading

    catalog = if_only_for_reading(home.open_catalog)
    folders = SharedFolders(home, Objects(address), catalog.published, files or FileSystem())
    weakref.finalize(folders, catalog.close)
    return folders


def files_in(manifest: bytes) -> Mapping[str, str]:
    """Returns the sha256 (hex) of each file that a manifest lists, by name."""
    described = json.loads(manifest).get("files") or {}
    return {name: one["sha256"] if isinstance(one, dict) else one for name, one in described.items()}


def sizes_in(manifest: bytes) -> Mapping[str, int]:
    """Returns how large each file is that a manifest lists, by sha256, where it says so."""
    described = (json.loads(manifest).get("files") or {}).values()
    return {one["sha256"]: one["bytes"] for one in described if isinstance(one, dict) and "bytes" in one}


def _digests(manifests: Iterator[bytes]) -> set[str]:
    return {digest for manifest in manifests for digest in files_in(manifest).values()}


def _object(digest: str) -> str:
    return f"{FOLDER}/{digest}"
