"""Build, search, filter, read and write FAISS indexes; factory strings and tuning live here.

Only kinds that give their vectors back are offered: fast-scan codes crash the process when asked for a
row (faiss 1.15.1), and a filtered HNSW search finds nothing when few rows are allowed. So filters use FAISS's own
selector, HNSW exact products over the allowed rows unless they are most, and IVF more of its lists.
"""

import math
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeAlias

import faiss
import numpy as np
from numpy.typing import NDArray

from index.errors import UnknownFactory
from index.kinds import FACTORIES, is_offered
from index.vectors import nearest_rows

# faiss ships no types; every value of this alias is a CPU or GPU `faiss.Index`.
FaissIndex: TypeAlias = faiss.Index

# A hidden FAISS limit of the GPU build: more neighbours than this raise inside a kernel launch.
GPU_MOST_NEIGHBOURS = 2048
# An eighth of the lists keeps IVF close to exact; FAISS's own default is a single list.
IVF_LISTS_SHARE = 8
HNSW_SEARCH_WIDTH = 64
COMPARED_IN_FULL = 0.1  # the share of an index in lists up to which all that a filter leaves is compared

_read_limit = threading.Lock()


def build(vectors: NDArray[np.float32], factory: str = "Flat") -> FaissIndex:
    """Builds, trains and fills an inner-product index on the CPU.

    Row i of `vectors`, (n, dim) float32 and of unit length, becomes position i; `"Flat"` is exact.

    Raises:
        UnknownFactory: The string is not offered, or needs more vectors for training.
    """
    if not is_offered(factory):
        raise UnknownFactory(f"There is no index kind {factory!r}. Choose one of {FACTORIES}.")
    index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    if not index.is_trained:
        lists = index.nlist if isinstance(index, faiss.IndexIVF) else 1
        if len(vectors) < lists:
            raise UnknownFactory(
                f"{factory} splits vectors into {lists} lists but there are {len(vectors)} vectors. "
                "Use fewer lists, or Flat."
            )
        index.train(vectors)
    if isinstance(index, faiss.IndexIVF):
        index.nprobe = max(1, index.nlist // IVF_LISTS_SHARE)
    if isinstance(index, faiss.IndexHNSW):
        index.hnsw.efSearch = HNSW_SEARCH_WIDTH
    index.add(vectors)
    if isinstance(index, faiss.IndexIVF):
        # Rows are found by position through this map; it is written with the index. Made here and not on
        # demand, because two searching threads may demand it at once.
        index.make_direct_map()
    return index


def search(
    index: FaissIndex, queries: NDArray[np.float32], k: int, *, allowed: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Finds the positions with the largest inner products.

    `queries` are (q, dim) float32, of unit length. `k` is between 1 and the number of vectors, or of those that are
    `allowed`, (n,) of each vector; None allows all.

    Returns:
        Scores (q, k) float32, descending, and positions (q, k) int64. The order of equal scores is FAISS's.
    """
    if allowed is None:
        scores, positions = index.search(queries, k)
        selector = None
    else:
        few = int(np.count_nonzero(allowed))
        if isinstance(index, faiss.IndexHNSW) and 2 * few <= len(allowed):
            return search_rows(index, queries, k, np.flatnonzero(allowed))
        # Checkers see the generated signatures; at run time faiss wraps them to take arrays and keywords.
        selector = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))  # type: ignore[call-arg, arg-type, unused-ignore]
        parameters = _parameters(index, selector, few / len(allowed))
        scores, positions = index.search(queries, k, params=parameters)
    short = (positions < 0).any(axis=1)
    if short.any():
        scores[short], positions[short] = _in_full(index, queries[short], k, allowed, selector)
    return scores, positions


def _in_full(
    index: FaissIndex,
    queries: NDArray[np.float32],
    k: int,
    allowed: NDArray[np.bool_] | None,
    selector: faiss.IDSelector | None,
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Compares all that is allowed: lists or links that were near had too little of it."""
    if isinstance(index, faiss.IndexIVF):
        lists = faiss.SearchParametersIVF(sel=selector, nprobe=index.nlist)  # type: ignore[call-arg, unused-ignore]
        scores, positions = index.search(queries, k, params=lists)
        return scores, positions
    rows = np.arange(index.ntotal) if allowed is None else np.flatnonzero(allowed)
    return search_rows(index, queries, k, rows)


def _parameters(index: FaissIndex, selector: faiss.IDSelector, share: float) -> faiss.SearchParameters:
    """Returns how an index searches with a selector of a share; what is not named FAISS takes from its defaults."""
    if isinstance(index, faiss.IndexIVF):
        # As many vectors are compared as without a filter; of few, all, which is exact.
        lists = (
            index.nlist if share <= COMPARED_IN_FULL else min(index.nlist, math.ceil(index.nprobe / share))
        )
        return faiss.SearchParametersIVF(sel=selector, nprobe=lists)  # type: ignore[call-arg, unused-ignore]
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(sel=selector, efSearch=index.hnsw.efSearch)  # type: ignore[attr-defined, no-any-return, unused-ignore]
    return faiss.SearchParameters(sel=selector)  # type: ignore[call-arg, unused-ignore]


def search_rows(
    index: FaissIndex, queries: NDArray[np.float32], k: int, allowed: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Exact products over the allowed rows (see `vectors.nearest_rows`)."""
    return nearest_rows(partial(reconstruct, index), queries, k, allowed)


def reconstruct(index: FaissIndex, positions: NDArray[np.int64]) -> NDArray[np.float32]:
    """Gives stored vectors back, (m, dim) float32; exact for Flat and HNSW, rounded for scalar-quantised kinds."""
    if len(positions) == 0:
        return np.empty((0, index.d), dtype=np.float32)
    rows: NDArray[np.float32] = index.reconstruct_batch(np.ascontiguousarray(positions, dtype=np.int64))
    return rows


def write(index: FaissIndex, path: Path) -> None:
    """Writes a CPU index to a file (not flushed to disk; publishing does that).

    FAISS's own writer says of a full disk that something failed, or nothing at all where it is full at the file's end.

    Raises:
        OSError: the disk is full, or cannot be written.
    """
    with path.open("wb") as file:
        faiss.write_index(index, faiss.PyCallbackIOWriter(file.write))  # type: ignore[attr-defined]


def read(path: Path, *, mapped: bool = False) -> FaissIndex:
    """Reads an index file whose checksum the caller has verified; a mapped one is read where a search comes to it.

    No array in a sound file is larger than the file, so a damaged length can not ask for more memory
    than that, in a faiss that has the limit.

    Raises:
        RuntimeError: FAISS refuses the file.
    """
    flags = faiss.IO_FLAG_MMAP_IFC if mapped else 0
    setter = getattr(faiss, "set_deserialization_vector_byte_limit", None)
    if setter is None:
        return faiss.read_index(str(path), flags)
    # The limit is one global of the library.
    with _read_limit:
        before = faiss.get_deserialization_vector_byte_limit()
        setter(path.stat().st_size)
        try:
            return faiss.read_index(str(path), flags)
        finally:
            setter(before)


def clone_to_gpu(index: FaissIndex) -> FaissIndex | None:
    """Copies an index to the first GPU, or returns None where faiss or the machine has none.

    HNSW has no GPU form; it also gives None. The caller keeps the CPU index for filters and rows, and lets
    one thread at a time search the copy: FAISS's GPU indexes are not thread-safe, even for reading.
    """
    if isinstance(index, faiss.IndexHNSW) or faiss.get_num_gpus() == 0:
        return None
    return faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index)


@dataclass(frozen=True, eq=False)
class FaissVectors:
    """An index of FAISS as `index.vector_index` asks for it."""

    index: FaissIndex  # on the CPU
    kept: float = 1.0  # of what exact search finds, as it was measured when it was written
    gpu_index: FaissIndex | None = None  # a copy on a GPU, if there is one
    _gpu_turn: threading.Lock = field(default_factory=threading.Lock, repr=False)

    engine_name = "FAISS"
    parameters = ""  # the manifest says it

    @property
    def dim(self) -> int:
        """Number of columns."""
        return int(self.index.d)

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.index.ntotal)

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Finds rows on the GPU where that can, else as `search` does."""
        if self.gpu_index is None or allowed is not None or k > GPU_MOST_NEIGHBOURS:
            return search(self.index, queries, k, allowed=allowed)
        with self._gpu_turn:
            scores, positions = self.gpu_index.search(queries, k)
        short = (positions < 0).any(axis=1)
        if short.any():
            scores[short], positions[short] = _in_full(self.index, queries[short], k, None, None)
        return scores, positions

    def exact(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Finds what comparing every row finds."""
        return search_rows(self.index, queries, k, np.arange(self.count))

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Gives rows back (see `reconstruct`)."""
        return reconstruct(self.index, rows)
