"""The few file operations that publishing needs, each able to survive a power cut or to die on demand.

Everything durable goes through one `FileSystem`, so that a test can record the calls and replay every
state a power cut could leave. Each step has a name; with PERENNIAL_FAULT set to it the process dies just
before the step, as if killed.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from app.desk.errors import NoSpace
from ingest.sentence import phrase

FAULT_VARIABLE = "PERENNIAL_FAULT"
KILLED = 137
# "Disk full" has these names, depending on whether a quota or the device ended.
_FULL = (errno.ENOSPC, errno.EDQUOT)

_PUBLISH_STEPS = ("fsync-files", "fsync-folder", "rename", "fsync-parent", "fsync-staging")
_COMMIT_STEPS = ("write", "fsync-file", "link", "fsync-commits", "unlink-temporary")

FAULT_POINTS: tuple[str, ...] = (
    *(f"version:{step}" for step in ("share", *_PUBLISH_STEPS)),
    *(f"generation:{step}" for step in ("share", *_PUBLISH_STEPS)),
    "release:stage",
    "release:write-manifest",
    *(f"release:{step}" for step in ("share", *_PUBLISH_STEPS)),
    *(f"commit:{step}" for step in _COMMIT_STEPS),
)
PRUNE_POINTS: tuple[str, ...] = (
    "prune:mark",
    "prune:marked",
    "prune:rename",
    "prune:renamed",
    "prune:deleted",
)


def is_full(error: OSError) -> bool:
    """Returns whether an error of the operating system says that the disk, or a quota, is full."""
    return error.errno in _FULL


PUSH_POINTS: tuple[str, ...] = ("version:push", "generation:push", "release:push")
"""Where the folder of a home that machines share is on this one, and no other has it yet."""


def fault(point: str) -> None:
    """Dies here, as if killed, when the environment names this point: one of `FAULT_POINTS`, or a caller's own."""
    if os.environ.get(FAULT_VARIABLE) == point:
        os._exit(KILLED)


class FileSystem:
    """The operations whose order decides what a power cut leaves; a test may record or fail them."""

    def mkdir(self, path: Path) -> None:
        """Makes one folder."""
        path.mkdir()

    def write(self, path: Path, data: bytes) -> None:
        """Writes a whole file; nothing is durable yet."""
        path.write_bytes(data)

    def fsync_file(self, path: Path) -> None:
        """Makes a file's bytes durable (not its name)."""
        _fsync(path, os.O_RDONLY)

    def fsync_dir(self, path: Path) -> None:
        """Makes the names in a folder durable."""
        _fsync(path, os.O_RDONLY | os.O_DIRECTORY)

    def rename(self, source: Path, target: Path) -> None:
        """Moves a file or folder within one file system, replacing a file at the target."""
        source.rename(target)

    def link(self, source: Path, target: Path) -> None:
        """Gives a file a second name; FileExistsError when the name is taken."""
        os.link(source, target)

    def unlink(self, path: Path) -> None:
        """Removes one name of a file."""
        path.unlink()


def _fsync(path: Path, flags: int) -> None:
    # Never retried after an error: the second call may report success over lost data.
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Returns the sha256 (hex) of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def temporary(path: Path) -> Path:
    """The sibling that `replace_file` writes first."""
    return path.with_name(f".{path.name}.new")


def replace_file(path: Path, data: bytes, *, files: FileSystem | None = None) -> None:
    """Writes or replaces a small file so that a power cut leaves the old or the new one, whole."""
    files = files or FileSystem()
    fresh = temporary(path)
    files.write(fresh, data)
    files.fsync_file(fresh)
    files.rename(fresh, path)
    files.fsync_dir(path.parent)


def publish_folder(files: FileSystem, staged: Path, target: Path, label: str) -> None:
    """Moves a finished folder to its place so that it is there whole, or not at all.

    Both are on one file system, and the target is not taken. The label, such as `version`, names the fault points.
    """
    fault(f"{label}:fsync-files")
    inner = sorted(staged.rglob("*"))
    for path in inner:
        if not path.is_dir():
            files.fsync_file(path)
    fault(f"{label}:fsync-folder")
    for path in [*(path for path in reversed(inner) if path.is_dir()), staged]:
        files.fsync_dir(path)
    fault(f"{label}:rename")
    files.rename(staged, target)
    fault(f"{label}:fsync-parent")
    files.fsync_dir(target.parent)
    fault(f"{label}:fsync-staging")
    files.fsync_dir(staged.parent)


@contextmanager
def explaining_full_disk(path: Path, what: str) -> Iterator[None]:
    """Turns a full disk, met while doing `what`, into a sentence; every other operating system error passes.

    Raises:
        NoSpace: The disk or the quota is full.
    """
    try:
        yield
    except OSError as error:
        if not is_full(error):
            raise
        raise NoSpace(
            phrase(
                "The disk ran full while {what}; {megabytes} are free at {path}. Nothing live has "
                "changed. Free some space and try again.",
                what=what,
                megabytes=_megabytes(free_bytes(path)),
                path=path,
            )
        ) from error


def folder_bytes(folder: Path, before: Path | None = None) -> int:
    """Returns how large the files right in a folder are together that the one before does not have; 0 where none is."""
    if not folder.is_dir():
        return 0
    shared = {path.stat().st_ino for path in before.iterdir()} if before and before.is_dir() else set()
    return sum(one.st_size for one in map(Path.stat, folder.iterdir()) if one.st_ino not in shared)


def room(*places: Path) -> int:
    """Returns how much of the disk files, and the files below folders, take; one with several names takes it once."""
    files = {}
    for place in places:
        for path in place.rglob("*") if place.is_dir() and not place.is_symlink() else [place]:
            with suppress(FileNotFoundError):
                one = path.lstat()
                if stat.S_ISREG(one.st_mode):
                    # Blocks, not length: LMDB's files are sparse.
                    files[one.st_dev, one.st_ino] = one.st_blocks * 512
    return sum(files.values())


def freed_by(places: Collection[Path]) -> int:
    """Returns how much room removing folders gives: that of the files which have all their names in them."""
    names: Counter[tuple[int, int]] = Counter()
    room_of: dict[tuple[int, int], tuple[int, int]] = {}
    for one in (path.lstat() for place in places for path in place.rglob("*") if path.is_file()):
        names[one.st_dev, one.st_ino] += 1
        room_of[one.st_dev, one.st_ino] = (one.st_nlink, one.st_blocks * 512)
    return sum(blocks for key, (links, blocks) in room_of.items() if names[key] == links)


def free_bytes(path: Path) -> int:
    """How many bytes an ordinary user may still write where a path is, or would be."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB"
