"""How quick kinds of index are on this machine, and how an approximate one is told to find what exact search finds.

FAISS's own `ParameterSpace` tries how widely to look, on queries that people may ask of these very vectors; of what
keeps 99 in 100 of the first ten, the quickest is taken and written into the index.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from index import faiss_index
from index.kinds import HALVED, QUICK_ANYWHERE, TYPICAL, Chosen, Speeds, fitting

KEPT = 0.99  # of the first `FIRST` of exact search
FIRST = 10
WORTH = 0.7  # of what an exact search takes; for less of a gain nothing is given up
ROUNDS = 16
SAMPLE_NUMBERS = 1 << 24  # 64 MB: more than the caches of most processors hold

Rows = NDArray[np.float32]


@lru_cache(maxsize=8)
def speeds(dim: int) -> Speeds:
    """Measures exact searches among vectors of so many dimensions on this machine, in a third of a second."""
    rows = np.random.default_rng(0).random((SAMPLE_NUMBERS // dim, dim), dtype=np.float32) - np.float32(0.5)
    taken = (milliseconds(faiss_index.build(rows, kind), rows) for kind in ("Flat", HALVED))
    return Speeds(*(rows.size / each for each in taken))


def chosen(asked: str, count: int, dim: int) -> Chosen:
    """Chooses the kind of an index of so many vectors, as `kinds.fitting` does, by how quick this machine is."""
    quick = count * dim <= QUICK_ANYWHERE
    here = TYPICAL if quick else speeds(dim)
    took = (
        {}
        if quick
        else dict(zip(("Flat", HALVED), (round(count * dim / one, 2) for one in here), strict=True))
    )
    return Chosen(fitting(asked, count, dim, here), asked, count, took)


def milliseconds(index: faiss_index.FaissIndex, queries: Rows) -> float:
    """Returns the median time of a search by itself, of up to 16 queries."""
    taken = []
    for query in queries[:ROUNDS]:
        started = time.perf_counter()
        faiss_index.search(index, query[None], min(FIRST, index.ntotal))
        taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


def build_tuned(
    vectors: Rows, factory: str, queries: Callable[[], Rows], *, is_asked: bool
) -> tuple[faiss_index.FaissIndex, str, Mapping[str, Any]]:
    """Builds an index that keeps what exact search finds; returns it, its kind, and what was measured of it.

    Where an approximate kind keeps too little or wins too little time, and nobody asked for it, the exact one in it is
    built.

    Raises:
        UnknownFactory: The factory is not offered, or needs more vectors.
    """
    index = faiss_index.build(vectors, factory)
    if not isinstance(index, faiss.IndexIVF | faiss.IndexHNSW):
        return index, factory, {}
    told = tune(index, queries())
    if is_asked or (told["kept"] >= KEPT and told["ms"] <= WORTH * told["exact_ms"]):
        return index, factory, {"tuned": told}
    exact = factory.rpartition(",")[2]
    return faiss_index.build(vectors, exact), exact, {"tried": {"kind": factory, **told}}


class _Point(NamedTuple):
    kept: float
    parameters: str


def _point(found: faiss.OperatingPoint) -> _Point:
    return _Point(found.perf, found.key)


def tune(index: faiss_index.FaissIndex, queries: Rows) -> dict[str, Any]:
    """Sets how widely an approximate index looks; returns that, what it keeps and what searches take.

    `queries` are (q, dim) float32 unit rows. Where nothing keeps enough, what keeps most is set.
    """
    first = min(FIRST, index.ntotal)
    scores, right = faiss_index.search_rows(index, queries, first, np.arange(index.ntotal))
    criterion = faiss.IntersectionCriterion(len(queries), first)
    criterion.set_groundtruth(scores, right)  # type: ignore[call-overload, unused-ignore]
    criterion.nnn = first
    space = faiss.ParameterSpace()
    space.verbose = 0
    space.n_experiments = 0  # all: which ones it leaves out otherwise follows from times
    space.initialize(index)
    explored = space.explore(index, queries, criterion)  # type: ignore[call-overload, unused-ignore]
    points = [
        _point(explored.all_pts.at(n)) for n in range(explored.all_pts.size())
    ]  # while `explored` holds them
    enough = [point for point in points if point.kept >= KEPT]
    # Who looks wider keeps more and takes longer, and times are less certain than what is kept.
    best = min(enough, key=lambda one: one.kept) if enough else max(points, key=lambda one: one.kept)
    exact = float("inf")
    if isinstance(index, faiss.IndexIVF):
        index.nprobe = index.nlist  # all lists: what is stored, compared in full
        exact = milliseconds(index, queries)
    space.set_index_parameters(index, best.parameters)  # type: ignore[arg-type, unused-ignore]
    told = {"parameters": best.parameters, "kept": round(best.kept, 4), "queries": len(queries)}
    return told | {"ms": round(milliseconds(index, queries), 2), "exact_ms": round(exact, 2)}
