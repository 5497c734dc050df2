"""One immutable piece of a generation: vectors that came together, with their ids and routes.

Generations share segments. A process opens each once: its bytes are compared with the manifest's checksums, its files
are mapped, and whoever opens another generation that has it is given the one that is held.
"""

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from index import faiss_index
from index.errors import GenerationDamaged, UnknownIds
from index.manifest import WHAT_TO_DO, Manifest, files_of, is_there, verify_files
from index.tuning import Rows, build_tuned
from index.vector_index import VectorIndex

INDEX_FILE = "index.faiss"
IDS_FILE = "ids.npy"
ROUTES_FILE = "routes.npy"
BASE = ""
Elsewhere: TypeAlias = Callable[[str], VectorIndex | None]
"""What returns the vectors of an index file, by its sha256, where another engine than FAISS has them."""

_held: WeakValueDictionary[tuple[object, ...], "Segment"] = WeakValueDictionary()
_opening = threading.Lock()


@dataclass(frozen=True, eq=False)
class Segment:
    """An opened segment, which many threads and generations use; two are the same when they are one object."""

    facts: Mapping[str, Any]  # What a manifest says of it, but its number
    ids: NDArray[np.bytes_]  # Of each row
    index: VectorIndex  # Of its rows
    routes: NDArray[np.uint16] | None  # Of each row, a place in the facts' routes; None before there were any

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _sorted(self) -> tuple[NDArray[np.bytes_], NDArray[np.int64]]:
        """The ids in their order, and the row of each."""
        order = np.argsort(self.ids, kind="stable")
        return self.ids[order], order

    def rows_of(self, ids: NDArray[np.bytes_]) -> NDArray[np.int64]:
        """Returns the row of each id, -1 where it has none here."""
        names, order = self._sorted
        if not len(names):
            return np.full(len(ids), -1, dtype=np.int64)
        places = np.minimum(np.searchsorted(names, ids), len(names) - 1)
        return np.where(names[places] == ids, order[places], -1)

    def rows_beginning(self, text: bytes) -> NDArray[np.int64]:
        """Returns the rows whose ids begin so, in the order of the ids."""
        names, order = self._sorted
        return order[bisect_left(names, text) : bisect_left(names, text + b"\xff")]

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Finds rows as its index does; `k` may be larger than what there is."""
        k = min(k, len(self) if allowed is None else int(np.count_nonzero(allowed)))
        if k == 0:
            nothing = (len(queries), 0)
            return np.empty(nothing, dtype=np.float32), np.empty(nothing, dtype=np.int64)
        return self.index.search(queries, k, allowed)

    def route_names(self, rows: NDArray[np.int64]) -> NDArray[np.str_]:
        """Returns the route of each of some rows."""
        if self.routes is None:
            return np.full(len(rows), BASE)
        return np.array(self.facts["routes"])[self.routes[rows]]


@dataclass(frozen=True)
class Contents:
    """What a segment is written of: (n,) ids, (n, dim) float32 vectors as they are stored, (n,) names of routes."""

    ids: NDArray[np.bytes_]
    vectors: NDArray[np.float32]
    routes: NDArray[np.str_]
    # By what the routes were decided, kept in the manifest of the generation; it means nothing here
    rests_on: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)


def file_names(number: int) -> tuple[str, str, str]:
    """Returns the names of a segment's files; the first has those of generations from before there were segments."""
    names = (INDEX_FILE, IDS_FILE, ROUTES_FILE)
    return names if number == 1 else tuple(name.replace(".", f"-{number}.") for name in names)  # type: ignore[return-value]


def write_segment(
    folder: Path,
    number: int,
    contents: Contents,
    factory: str,
    queries: Callable[[], Rows],
    *,
    is_asked: bool,
) -> dict[str, Any]:
    """Writes the files of a segment and returns what a manifest says of it; see `tuning.build_tuned`.

    Raises:
        UnknownFactory: The factory is not offered, or needs more vectors.
    """
    index_file, ids_file, routes_file = (folder / name for name in file_names(number))
    index, factory, tuned = build_tuned(contents.vectors, factory, queries, is_asked=is_asked)
    faiss_index.write(index, index_file)
    names, numbers = np.unique(contents.routes, return_inverse=True)
    np.save(ids_file, contents.ids, allow_pickle=False)
    np.save(routes_file, numbers.astype(np.uint16), allow_pickle=False)
    return {"number": number, "count": len(contents), "factory": factory, "routes": names.tolist(), **tuned}


def open_segment(
    folder: Path,
    manifest: Manifest,
    said: Mapping[str, Any],
    *,
    verify: bool,
    use_gpu: bool,
    is_doubted: bool = False,
    elsewhere: Elsewhere | None = None,
) -> Segment:
    """Returns a segment of a generation's folder: the one that is held, or its files mapped after every byte was read.

    `said` is what the manifest says of it. Without `verify` nothing is read and nothing is held; what `is_doubted` is
    read also where it is held. An index that another engine has is not read at all.

    Raises:
        GenerationDamaged: A file is missing, changed, a git-LFS pointer, or disagrees with the manifest.
    """
    facts = {name: value for name, value in said.items() if name != "number"}
    listed = files_of(folder, manifest)
    names = [name for name in file_names(said["number"]) if name in listed]
    index = elsewhere(str(listed[names[0]]["sha256"])) if elsewhere else None
    if not verify:
        return _read(folder, said, facts, use_gpu, index)
    key = (*(str(listed[name]) for name in names), repr(facts), use_gpu, index)
    with _opening:
        held = _held.get(key)
        # Whoever holds a segment may be about to share files that have gone meanwhile.
        is_gone = held is not None and not all(is_there(folder, manifest, name) for name in names)
        if held is None or is_doubted or is_gone:
            verify_files(folder, manifest, names if index is None else names[1:])
        if held is None or is_gone:
            held = _held[key] = _read(folder, said, facts, use_gpu, index)
        return held


def forget_held() -> None:
    """Has every segment read again by who opens it next; who holds one keeps it."""
    with _opening:
        _held.clear()


def _read(
    folder: Path, said: Mapping[str, Any], facts: Mapping[str, Any], use_gpu: bool, index: VectorIndex | None
) -> Segment:
    index_file, ids_file, routes_file = (folder / name for name in file_names(said["number"]))
    try:
        ids = np.load(ids_file, mmap_mode="r", allow_pickle=False)
        routes = np.load(routes_file, mmap_mode="r", allow_pickle=False) if facts["routes"] else None
        if index is None:
            index = _mapped(index_file, facts, use_gpu)
    except (OSError, ValueError, RuntimeError) as error:
        raise GenerationDamaged(f"Generation {folder.name} cannot be read: {error}. {WHAT_TO_DO}") from error
    found = (index.count, len(ids), len(ids) if routes is None else len(routes))
    if found != (said["count"],) * 3:
        raise GenerationDamaged(
            f"Generation {folder.name} should hold {said['count']} vectors of {index.dim} dimensions; "
            f"found {found[0]} vectors, {found[1]} ids, {found[2]} routes. {WHAT_TO_DO}"
        )
    return Segment(facts, ids, index, routes)


def _mapped(file: Path, facts: Mapping[str, Any], use_gpu: bool) -> faiss_index.FaissVectors:
    index = faiss_index.read(file, mapped=not use_gpu)
    copied = faiss_index.clone_to_gpu(index) if use_gpu else None
    return faiss_index.FaissVectors(index, float(facts.get("tuned", {}).get("kept", 1.0)), copied)


def pack_ids(ids: Sequence[str]) -> NDArray[np.bytes_]:
    """Returns (n,) ids as fixed-width bytes, so that their file needs no pickle.

    Raises:
        UnknownIds: One is empty, repeated or not ASCII; numpy would drop a NUL at the end.
    """
    if len(set(ids)) != len(ids):
        raise UnknownIds(f"{len(ids) - len(set(ids))} ids occur more than once; an id has one vector.")
    for content_id in ids:
        if not content_id or not content_id.isascii() or "\0" in content_id:
            raise UnknownIds(f"{content_id!r} cannot be an id: ids are non-empty ASCII text without NUL.")
    return as_bytes(ids)


def as_bytes(ids: Collection[str] | NDArray[np.bytes_]) -> NDArray[np.bytes_]:
    """Returns (n,) ids as fixed-width bytes."""
    return (
        ids
        if isinstance(ids, np.ndarray)
        else np.array([content_id.encode() for content_id in ids], dtype=np.bytes_)
    )


def unpack_ids(packed: NDArray[np.bytes_]) -> list[str]:
    """Returns ids as text."""
    names: list[str] = packed.astype(np.str_).tolist()
    return names
