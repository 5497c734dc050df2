"""A power-cut simulator: records durable operations and rebuilds every kind of state a cut may leave.

The model is pessimistic. A file's bytes are sure only up to its last fsync; later bytes may be missing,
torn, zero or complete. A name is sure to have come or gone only after an fsync of its folder; until then
each change may have reached the disk or not, whatever became of the others. A move between two folders is
two changes, so a cut may show both names, or none.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

from tests.app.home.publishing import UnsyncedFileSystem

_ABOVE = -1
"""Where the root itself has its name, which is sure."""


@dataclass(frozen=True)
class Operation:
    """One recorded call: its name, the paths below the root, and the bytes written."""

    name: str
    paths: tuple[str, ...]
    data: bytes = b""


class RecordingFileSystem(UnsyncedFileSystem):
    """Does the real thing and writes it down; can forget a class of fsync, as a bug would.

    Attributes:
        operations: What was done, in order.
        acknowledged: How many operations had been done when each event was reported.
    """

    def __init__(self, root: Path, *, forget: Set[str] = frozenset()) -> None:
        """Starts recording below a root.

        Args:
            root: Everything recorded lies below it.
            forget: `files`, or names of folders below the root (`versions`, `commits`), or `staged`
                for the folders inside staging: their fsyncs are neither done nor recorded.
        """
        self.root = root
        self.forget = forget
        self.operations: list[Operation] = []
        self.acknowledged: dict[str, int] = {}

    def acknowledge(self, event: str) -> None:
        self.acknowledged[event] = len(self.operations)

    def _record(self, name: str, *paths: Path, data: bytes = b"") -> None:
        inside = tuple(path.relative_to(self.root).as_posix() for path in paths)
        self.operations.append(Operation(name, inside, data))

    def mkdir(self, path: Path) -> None:
        super().mkdir(path)
        self._record("mkdir", path)

    def write(self, path: Path, data: bytes) -> None:
        super().write(path, data)
        self._record("write", path, data=data)

    def fsync_file(self, path: Path) -> None:
        if "files" not in self.forget:
            self._record("fsync_file", path)

    def fsync_dir(self, path: Path) -> None:
        top, _, rest = path.relative_to(self.root).as_posix().partition("/")
        if ("staged" if rest else top) not in self.forget:
            self._record("fsync_dir", path)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self._record("rename", source, target)

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self._record("link", source, target)

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self._record("unlink", path)


@dataclass
class _Change:
    """A change of names: entries taken away and given, each in a folder node."""

    removed: tuple[tuple[int, str], ...]
    added: tuple[tuple[int, str, int], ...]
    is_durable: bool = False

    def touches(self, folder: int) -> bool:
        return any(entry[0] == folder for entry in (*self.removed, *self.added))


@dataclass
class Disk:
    """What is surely on the disk, and what may be.

    Nodes are files and folders, numbered; names live in folders and point at nodes.
    """

    sure_names: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    names: dict[int, dict[str, int]] = field(default_factory=lambda: {0: {}})
    sure_bytes: dict[int, bytes] = field(default_factory=dict)
    bytes_now: dict[int, bytes] = field(default_factory=dict)
    changes: list[_Change] = field(default_factory=list)
    next_node: int = 1

    @classmethod
    def of(cls, root: Path) -> Disk:
        """A disk on which everything below a root is safe."""
        disk = cls()
        for path in sorted(root.rglob("*")):
            inside = path.relative_to(root).as_posix()
            if path.is_dir():
                disk.apply(Operation("mkdir", (inside,)))
            else:
                disk.apply(Operation("write", (inside,), path.read_bytes()))
        disk.sure_names = {node: dict(entries) for node, entries in disk.names.items()}
        disk.sure_bytes = dict(disk.bytes_now)
        disk.changes = []
        return disk

    def apply(self, operation: Operation) -> None:
        """Does one recorded operation."""
        folder, name = self._place(operation.paths[0])
        node = 0 if folder == _ABOVE else self.names[folder].get(name)
        if operation.name == "mkdir":
            self.names[self.next_node] = {}
            self._change(added=((folder, name, self._new()),))
        elif operation.name == "write":
            if node is None:
                node = self._new()
                self._change(added=((folder, name, node),))
            self.bytes_now[node] = operation.data
        elif node is None:
            raise FileNotFoundError(operation.paths[0])
        elif operation.name == "fsync_file":
            self.sure_bytes[node] = self.bytes_now[node]
        elif operation.name == "fsync_dir":
            self._settle(node)
        elif operation.name == "rename":
            target, new_name = self._place(operation.paths[1])
            if target == folder:
                self._change(((folder, name),), ((folder, new_name, node),))
            else:
                self._change(removed=((folder, name),))
                self._change(added=((target, new_name, node),))
        elif operation.name == "link":
            self._change(added=((*self._place(operation.paths[1]), node),))
        else:
            self._change(removed=((folder, name),))

    def _settle(self, folder: int) -> None:
        for change in self.changes:
            if not change.is_durable and change.touches(folder):
                change.is_durable = True

    def _change(
        self, removed: tuple[tuple[int, str], ...] = (), added: tuple[tuple[int, str, int], ...] = ()
    ) -> None:
        change = _Change(removed, added)
        _carry_out(change, self.names)
        self.changes.append(change)

    def _new(self) -> int:
        self.next_node += 1
        return self.next_node - 1

    def _place(self, path: str) -> tuple[int, str]:
        *folders, name = path.split("/")
        if name == ".":
            return _ABOVE, ""
        node = 0
        for folder in folders:
            node = self.names[node][folder]
        return node, name

    def after_power_cut(self, chance: random.Random) -> dict[str, bytes | None]:
        """One state that a cut may leave: bytes by path, None for folders."""
        names = {node: dict(entries) for node, entries in self.sure_names.items()}
        for change in self.changes:
            if change.is_durable or chance.random() < 0.5:
                _carry_out(change, names)
        return dict(self._walk(0, "", names, chance, {}))

    def _walk(
        self,
        folder: int,
        prefix: str,
        names: dict[int, dict[str, int]],
        chance: random.Random,
        contents: dict[int, bytes],
    ) -> Iterator[tuple[str, bytes | None]]:
        for name, node in names.get(folder, {}).items():
            if node not in self.bytes_now:
                yield prefix + name, None
                yield from self._walk(node, f"{prefix}{name}/", names, chance, contents)
            else:
                # Two names of one file show the same bytes.
                if node not in contents:
                    contents[node] = self._bytes(node, chance)
                yield prefix + name, contents[node]

    def _bytes(self, node: int, chance: random.Random) -> bytes:
        written, sure = self.bytes_now[node], self.sure_bytes.get(node, b"")
        if written == sure:
            return sure
        torn = chance.randrange(len(written) + 1)
        return chance.choice((sure, written, written[:torn], bytes(len(written))))


def _carry_out(change: _Change, names: dict[int, dict[str, int]]) -> None:
    for folder, name in change.removed:
        names.get(folder, {}).pop(name, None)
    for folder, name, node in change.added:
        names.setdefault(folder, {})[name] = node


def materialise(state: dict[str, bytes | None], root: Path) -> None:
    """Writes a state into an empty folder."""
    root.mkdir()
    for path, data in state.items():
        if data is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(data)
