"""Folders that never change once they have their place: versions, generations, releases.

An id is a letter, a sequence number and the beginning of the sha256 of the folder's manifest, which names
the checksum of every other file. The same content published again keeps the id it has. A file whose bytes are on the
shelf already becomes another name of the one there (a hard link), so that it takes no room; each folder stays whole by
itself, and what is removed of one takes nothing from another.
"""

import errno
import filecmp
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from app.desk.errors import ReleaseDamaged
from app.home.durable import FileSystem, explaining_full_disk, fault, is_full, publish_folder, sha256_of
from app.home.shared import MANIFEST, SharedFolders
from model_updates.version_files import SOUND

JsonObject: TypeAlias = dict[str, object]
_SHARED = ".shared"
_LATELY = 0.05  # seconds
_ID = re.compile(r"([vgr])([0-9]+)-([0-9a-f]{8})")


class Shelf:
    """All published folders of one kind; the first letter of its label, such as `version`, begins every id."""

    def __init__(
        self,
        folder: Path,
        label: str,
        files: FileSystem,
        shared: Callable[[], SharedFolders | None] = lambda: None,
    ) -> None:
        self.folder = folder
        self.label = label
        self._files = files
        self._shared = shared
        self._last: SharedFolders | None = None
        self._asked_again = 0.0

    def lately(self) -> SharedFolders | None:
        """Returns where folders are shared, as of a moment ago: who looks asks a dozen times, and nothing is lost."""
        if time.monotonic() >= self._asked_again:
            self._last = self._shared()
            self._asked_again = time.monotonic() + _LATELY
        return self._last

    def ids(self) -> list[str]:
        """Every published id, by sequence number; where machines share a home, of all that any of them published."""
        shared = self.lately()
        return _in_order(shared.rows.ids(self.label[0])) if shared else self.ids_here()

    def ids_here(self) -> list[str]:
        """The ids of the folders that lie on this machine, by sequence number."""
        return _in_order(path.name for path in self.folder.iterdir() if self._is_id(path.name))

    def bring(self, published_id: str) -> Path:
        """Returns the folder of what was published; where it is not on this machine it is fetched.

        Raises:
            ReleaseDamaged: it is nowhere, or what came is not what was published.
            ObjectsUnreachable: the bucket does not answer.
            NoSpace: the disk is full.
        """
        folder, shared = self.folder / published_id, self.lately()
        if shared and self._is_id(published_id) and not folder.is_dir():
            twins = {facts[1]: path for name in self.ids_here() for facts, path in self._files_of(name)}
            shared.fetch(folder, twins.get)
        return folder

    def bring_again(self, published_id: str) -> bool:
        """Fetches a folder in place of the one that lies here; says whether there is anywhere to fetch it from."""
        shared, folder = self._shared(), self.folder / published_id
        if not shared or published_id not in self.ids():
            return False
        fresh = shared.staging / uuid.uuid4().hex / published_id
        fresh.parent.mkdir()
        shared.fetch(fresh, lambda digest: None)  # what is damaged may have other names here
        if folder.exists():
            self._files.rename(folder, fresh.parent / "damaged")
        self._files.rename(fresh, folder)
        self._files.fsync_dir(folder.parent)
        shutil.rmtree(fresh.parent, ignore_errors=True)
        return True

    def drop(self, published_id: str) -> None:
        """Takes a folder back that others may have; what this machine has of it is the caller's to remove."""
        shared = self._shared()
        if shared and self._is_id(published_id):
            shared.drop([published_id])

    def is_old(self, published_id: str, seconds: float) -> bool:
        """Whether a folder was published so long ago, or nobody knows when."""
        shared, folder = self._shared(), self.folder / published_id
        since = shared.rows.since(published_id) if shared else None
        if since is not None:
            return time.time() - since.timestamp() >= seconds
        return not folder.is_dir() or time.time() - folder.stat().st_mtime >= seconds

    def publish(self, staged: Path) -> str:
        """Moves a finished folder to the shelf and returns its id; of content that is there already, that one's.

        The folder is on the same file system, its manifest written last.

        Raises:
            ReleaseDamaged: The folder has no readable manifest.
            NoSpace: The disk is full.
        """
        manifest = staged / MANIFEST
        if not manifest.is_file():
            raise ReleaseDamaged(
                f"{staged.name} cannot be published as a {self.label}: it has no {MANIFEST}, "
                "so whoever made it did not finish. Make it again."
            )
        _json_object(manifest.read_bytes(), f"The manifest of {staged.name}")
        with explaining_full_disk(self.folder, f"publishing a {self.label}"):
            existing = self.known(staged)
            if existing is not None:
                # It is wanted from now on; the garbage collector goes by its age.
                os.utime(self.folder / existing)
                # Whoever published it may have died before its name was durable.
                fault(f"{self.label}:fsync-parent")
                self._files.fsync_dir(self.folder)
                shutil.rmtree(staged)
                self._push(existing)
                return existing
            self._share(staged)
            _for_whom_the_manifest_is(staged, manifest)
            highest = max((sequence(name) for name in [*self.ids(), *self.ids_here()]), default=0)
            target = self.folder / f"{self.label[0]}{highest + 1}-{sha256_of(manifest)[:8]}"
            try:
                publish_folder(self._files, staged, target, self.label)
            except OSError as error:
                if error.errno not in {errno.EEXIST, errno.ENOTEMPTY}:
                    raise
                return self.publish(staged)  # another process was first
            self._push(target.name)
        return target.name

    def _push(self, published_id: str) -> None:
        shared = self._shared()
        if shared:
            fault(f"{self.label}:push")
            shared.push(self.folder / published_id)

    def known(self, folder: Path) -> str | None:
        """Returns the id of what has the same content as a folder with a manifest; None where nothing has."""
        digest = sha256_of(folder / MANIFEST)
        for name in {*self.ids(), *self.ids_here()}:
            if name.endswith(f"-{digest[:8]}") and _contents(self.bring(name)) == _contents(folder):
                return name
        return None

    def read(self, published_id: str) -> tuple[JsonObject, str]:
        """Reads a manifest that must be the one its id was made from; returns it, and its sha256.

        Raises:
            ReleaseDamaged: Missing, unreadable or changed.
        """
        if not self._is_id(published_id):
            raise ReleaseDamaged(f"{published_id!r} is not the id of a {self.label}.")
        shared, data = self.lately(), None
        if shared and not (self.folder / published_id).is_dir():
            data = shared.rows.manifest(published_id)
        try:
            data = data or (self.folder / published_id / MANIFEST).read_bytes()
        except OSError as error:
            raise ReleaseDamaged(
                f"The manifest of {self.label} {published_id} cannot be read ({error.strerror})."
            ) from error
        digest = hashlib.sha256(data).hexdigest()
        if not published_id.endswith(f"-{digest[:8]}"):
            raise ReleaseDamaged(
                f"The manifest of {self.label} {published_id} is not the one it was made with."
            )
        return _json_object(data, f"The manifest of {self.label} {published_id}"), digest

    def bytes_beside(self, ids: Iterable[str], others: Iterable[str]) -> int:
        """How large the files are, as the manifests say, that some folders have and others have not.

        They may lie on other machines; what has gone has none.
        """
        theirs = {facts for name in others for facts, _ in self._files_of(name)}
        own = {facts for name in ids for facts, _ in self._files_of(name)}
        return sum(size or 0 for size, _ in own - theirs)

    def verify(
        self, published_id: str, sha256: str, *, every_byte: bool = False, leave_out: str | None = None
    ) -> None:
        """Checks a folder against the manifest checksum that somebody noted; with `every_byte` reads the files, too.

        Files whose names begin with what to `leave_out` are not looked at.

        Raises:
            ReleaseDamaged: Something is missing or changed.
        """
        self.bring(published_id)
        manifest, found = self.read(published_id)
        if found != sha256:
            raise ReleaseDamaged(f"The manifest of {self.label} {published_id} was replaced.")
        for name, size, digest in listed_files(manifest):
            if leave_out is not None and name.startswith(leave_out):
                continue
            path = self.folder / published_id / name
            if not path.is_file():
                raise ReleaseDamaged(f"{self.label.capitalize()} {published_id} has lost its file {name}.")
            actual = path.stat().st_size
            if size is not None and actual != size:
                raise ReleaseDamaged(
                    f"{name} of {self.label} {published_id} has {actual} bytes instead of {size}."
                )
            if every_byte and digest is not None and sha256_of(path) != digest:
                (path.parent / SOUND).unlink(
                    missing_ok=True
                )  # it rotted where no time tells: nobody trusts that now
                raise ReleaseDamaged(
                    f"{name} of {self.label} {published_id} has changed since it was published."
                )

    def _share(self, staged: Path) -> None:
        """Gives the files of a staged folder that are on the shelf, byte by byte, the place of those."""
        held = {facts: path for name in self.ids_here() for facts, path in self._files_of(name)}
        fault(f"{self.label}:share")
        for name, size, digest in listed_files(_json_object((staged / MANIFEST).read_bytes(), staged.name)):
            twin = held.get((size, digest))
            try:
                # What is on the shelf may have rotted since; then this copy is the sound one, and stays.
                if twin is None or twin.samefile(staged / name):
                    continue
                if not filecmp.cmp(twin, staged / name, shallow=False):
                    continue
                fresh = staged / f"{name}{_SHARED}"
                self._files.link(twin, fresh)
            except OSError as error:
                if is_full(error):
                    raise
                # A file system without hard links, or the twin has gone meanwhile: it stays a file of its own.
            else:
                self._files.rename(fresh, staged / name)

    def _files_of(self, published_id: str) -> Iterator[tuple[tuple[int | None, str | None], Path]]:
        try:
            manifest, _ = self.read(published_id)
        except ReleaseDamaged:
            return
        for name, size, digest in listed_files(manifest):
            if digest is not None:
                yield (size, digest), self.folder / published_id / name

    def _is_id(self, name: str) -> bool:
        match = _ID.fullmatch(name)
        return match is not None and match[1] == self.label[0]


def _in_order(ids: Iterable[str]) -> list[str]:
    return sorted(ids, key=lambda name: (sequence(name), name))


def sequence(published_id: str) -> int:
    """The number in an id: 3 for `r3-1a2b3c4d`."""
    match = _ID.fullmatch(published_id)
    return int(match[2]) if match else 0


def _json_object(data: bytes, what: str) -> JsonObject:
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ReleaseDamaged(f"{what} is not JSON ({error}).") from error
    if not isinstance(parsed, dict):
        raise ReleaseDamaged(f"{what} is not a JSON object.")
    return parsed


def _for_whom_the_manifest_is(staged: Path, manifest: Path) -> None:
    """Lets everybody read the files of a folder who may read its manifest: safetensors lets their owner alone.

    A file that is shared with an older folder is widened there, too, and never narrowed; one of another user stays.
    """
    mode = manifest.stat().st_mode & 0o777
    for path in staged.rglob("*"):
        own = path.stat().st_mode & 0o777
        if path.is_file() and own | mode != own:
            with suppress(PermissionError):
                path.chmod(own | mode)


def listed_files(manifest: JsonObject) -> Iterator[tuple[str, int | None, str | None]]:
    """Name, size and sha256 of the files in a manifest, written as objects or as bare checksums."""
    files = manifest.get("files")
    if not isinstance(files, dict):
        return
    for name, description in files.items():
        if isinstance(description, dict):
            yield str(name), description.get("bytes"), description.get("sha256")
        else:
            yield str(name), None, description if isinstance(description, str) else None


def _contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != SOUND)
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}
