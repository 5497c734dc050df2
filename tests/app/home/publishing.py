"""What the publishing tests share: tiny versions and generations, and file systems that record or fail.

Run as a program it dies or commits in a process of its own:
`python -m tests.app.home.publishing die HOMES CONTENT`, `… prune HOME RELEASE` and `… race HOME RELEASE ROUNDS`.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from app.desk.errors import ParentMoved
from app.home import garbage
from app.home.commits import CommitRecord
from app.home.durable import FAULT_POINTS, FAULT_VARIABLE, FileSystem
from app.home.folder import Home
from app.home.manifest import ReleaseManifest
from app.home.store import ReleaseStore

WEIGHT_BYTES = 600
COMMON = "common.bin"
"""The file that is the same in everything of one kind."""


class UnsyncedFileSystem(FileSystem):
    """The real file system without waiting for the disk: for tests that cut no power."""

    def fsync_file(self, path: Path) -> None:
        path.stat()

    def fsync_dir(self, path: Path) -> None:
        path.stat()


class Killed(BaseException):
    """The process died here."""


class FailingFileSystem(UnsyncedFileSystem):
    """Raises an error in place of the n-th durable operation, counted from 0."""

    def __init__(self, at: int, error: BaseException) -> None:
        self.at = at
        self.error = error
        self.calls = 0

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.at + 1:
            raise self.error

    def mkdir(self, path: Path) -> None:
        self._count()
        super().mkdir(path)

    def write(self, path: Path, data: bytes) -> None:
        self._count()
        super().write(path, data)

    def fsync_file(self, path: Path) -> None:
        self._count()

    def fsync_dir(self, path: Path) -> None:
        self._count()

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)

    def link(self, source: Path, target: Path) -> None:
        self._count()
        super().link(source, target)

    def unlink(self, path: Path) -> None:
        self._count()
        super().unlink(path)


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def stage(home: Home, kind: str, content: str, files: FileSystem) -> Path:
    """A finished staging folder with a nested file and one that all have in common, nothing of it flushed."""
    folder = home.staging / f"{kind}-{content}"
    files.mkdir(folder)
    files.mkdir(folder / "state")
    listed: dict[str, dict[str, object]] = {}
    for name in ("weights.bin", "state/memory.bin", COMMON):
        said = kind if name == COMMON else f"{kind} {name} {content}"
        data = hashlib.sha256(said.encode()).digest() * (WEIGHT_BYTES // 32)
        files.write(folder / name, data)
        listed[name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    manifest = {"kind": kind, "content": content, "files": listed}
    files.write(folder / "manifest.json", json.dumps(manifest).encode())
    return folder


def publish(home: Home, content: str, files: FileSystem | None = None) -> str:
    """A published release that nobody made live."""
    files = files or UnsyncedFileSystem()
    store = ReleaseStore(home, files)
    version = store.publish_version(stage(home, "version", content, files))
    generation = store.publish_generation(stage(home, "generation", content, files))
    return store.publish_release(
        ReleaseManifest(version, generation, strategy=content),
        {"report.html": content.encode()},
    )


def promote(home: Home, content: str, files: FileSystem | None = None) -> CommitRecord:
    """The whole way from staged files to a live release."""
    files = files or UnsyncedFileSystem()
    store = ReleaseStore(home, files)
    with store.updater_lock(f"promoting {content}"):
        garbage.clean_staging(store, grace_seconds=0)
        standing = store.standing()
        release = publish(home, content, files)
        return store.commit(
            release,
            parent=standing.commit.number if standing.commit else None,
            reason="promote",
            why=f"teach {content}",
            by="a test",
        )


def current(store: ReleaseStore) -> CommitRecord:
    commit = store.current()
    assert commit is not None
    return commit


def commit_file(home: Home, number: int) -> Path:
    return home.commits / f"{number:08d}.json"


def live_content(home: Home) -> str:
    """What is live, every byte of it verified; fails when that is impossible."""
    store = ReleaseStore(home)
    commit = store.current()
    assert commit is not None
    return str(store.verify_release(commit.release).manifest.strategy)


def damage(path: Path, *, change: Callable[[bytes], bytes] = lambda data: data[:-1] + b"?") -> None:
    """Rots a file in place."""
    path.write_bytes(change(path.read_bytes()))


def _race(home: Home, release: str, rounds: int) -> list[int]:
    """Tries to write every commit after the first, against whoever else does; returns those won."""
    store = ReleaseStore(home, UnsyncedFileSystem())
    while not (home.root / "go").exists():
        time.sleep(0.002)
    won = []
    for parent in range(1, rounds + 1):
        try:
            won.append(store.commit(release, parent=parent, reason="promote", why="race", by="racer").number)
        except ParentMoved:
            continue
    return won


def _die(homes: Path, content: str) -> list[int]:
    """Promotes in one home for each point at which a process may die, in a process each; returns how they ended."""
    ended = []
    for number, point in enumerate(FAULT_POINTS):
        process = os.fork()
        if not process:
            try:
                os.environ[FAULT_VARIABLE] = point
                promote(Home.open(homes / str(number)), content, FileSystem())
            finally:
                os._exit(0)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
    return ended


def main(command: str, root: str, what: str, rounds: str = "0") -> None:
    if command == "die":
        print(json.dumps(_die(Path(root), what)))
        return
    home = Home.open(Path(root))
    if command == "prune":
        garbage.prune(ReleaseStore(home), [what], by="a test", why="room")
    else:
        print(json.dumps(_race(home, what, int(rounds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
