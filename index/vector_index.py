"""What a segment asks of whatever keeps its vectors: FAISS on this machine, pgvector in a database, or Milvus.

Rows are counted from 0, in the order in which they were written; a row never changes.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from index.errors import GenerationDamaged

FEW = 10_000  # allowed rows that are compared one by one
TOLERANCE = 1e-5  # rounding of float32 products over up to about a thousand dimensions
KEPT = 0.99  # of the first `FIRST` of exact search
FIRST = 10
WIDTHS = (100, 200, 400, 800)  # how many candidates a search of a graph holds, tried until one keeps enough


class VectorIndex(Protocol):
    """Vectors of unit length, which many threads search."""

    @property
    def dim(self) -> int:
        """Number of columns."""

    @property
    def count(self) -> int:
        """Number of rows."""

    @property
    def engine_name(self) -> str:
        """What searches it."""

    @property
    def parameters(self) -> str:
        """How widely a search looks, as the engine says it; empty where all are compared, or a manifest says it."""

    @property
    def kept(self) -> float:
        """The share of what exact search finds that this finds, as it was measured when it was built."""

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Finds the rows with the largest inner products.

        `queries` are (q, dim) of unit length. `k` is between 1 and the number of rows, or of those that are `allowed`,
        (count,) of each row; None allows all.

        Returns:
            Scores (q, k), descending, and rows (q, k); -1 where an approximate index found fewer than k. The order of
            equal scores is the engine's.
        """

    def exact(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Finds what comparing every row finds, as `search` returns it."""

    def vectors(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Gives rows back as they are stored, (m, dim); exact, or rounded where their kind is."""


class VectorEngine(Protocol):
    """What keeps the vectors of large index files beside the files, and lets them be searched there."""

    def begin(self) -> None:
        """Has it keep vectors from now on.

        Raises:
            VectorsRefused: it cannot; the sentence says what to do.
            VectorsUnreachable: it does not answer.
        """

    def end(self) -> None:
        """Has it keep none; what it has stays until `drop_others`, for who still searches it.

        Raises:
            VectorsUnreachable: it does not answer.
        """

    @property
    def are_kept(self) -> bool:
        """Whether it is to keep vectors."""

    def known(self) -> Mapping[str, VectorIndex]:
        """Returns what it has to be searched, by the sha256 of the file that each was made of."""

    def make(
        self, digest: str, stored: VectorIndex, kind: str, queries: Callable[[], NDArray[np.float32]]
    ) -> None:
        """Has it keep the vectors of an index file, or leaves them if it does; seen by others when it is complete.

        What its search would keep too little of, it does not offer: the file is searched.

        `kind` is the file's. `queries`, (q, dim) of unit length, are what searching is tuned on. One process of a home
        at a time calls it, that which holds the updater lock.

        Raises:
            VectorsRefused: it cannot.
            VectorsUnreachable: it does not answer.
        """

    def drop_others(self, needed: Collection[str] = ()) -> list[str]:
        """Removes the vectors of all files but those that are needed; returns what they were called."""


def tuned(scores: Callable[[int], NDArray[np.float32]], right: NDArray[np.float32]) -> tuple[int, float]:
    """Returns how many candidates a search of a graph is to hold so that it keeps enough, and what it keeps then.

    `scores` gives those, (q, k), of what it finds with so many; `right` are those that comparing all finds. What is as
    good as the last of them is right, too.
    """
    kept, width = 0.0, WIDTHS[0]
    for width in WIDTHS:
        kept = float((scores(width) >= right[:, -1:] - TOLERANCE).mean())
        if kept >= KEPT:
            break
    return width, kept


def padded(
    found: Sequence[Sequence[tuple[int, float]]], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Returns (row, score) of each query as scores (q, k) and rows (q, k), filled up with -inf and -1."""
    scores = np.full((len(found), k), -np.inf, dtype=np.float32)
    places = np.full((len(found), k), -1, dtype=np.int64)
    for n, one in enumerate(found):
        places[n, : len(one)] = [row for row, _ in one]
        scores[n, : len(one)] = [score for _, score in one]
    return scores, places


def allowed_first(
    scores: NDArray[np.float32], rows: NDArray[np.int64], allowed: NDArray[np.bool_], k: int
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.bool_]]:
    """Returns the first k that are allowed of what was found without a filter, (q, k), and which queries have fewer.

    What those have instead is to be replaced.
    """
    order = np.argsort(~((rows >= 0) & allowed[rows]), axis=1, kind="stable")[:, :k]
    scores, rows = np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
    lacking = k - rows.shape[1]
    scores = np.pad(scores, ((0, 0), (0, lacking)), constant_values=-np.inf)
    rows = np.pad(rows, ((0, 0), (0, lacking)), constant_values=-1)
    return scores, rows, np.asarray((~((rows >= 0) & allowed[rows])).any(axis=1))


def require_all(name: str, found: int, rows: NDArray[np.int64]) -> None:
    """Refuses an answer that lacks rows.

    Raises:
        GenerationDamaged: rows have gone from where an engine keeps them.
    """
    wanted = len(np.unique(rows))
    if found != wanted:
        raise GenerationDamaged(
            f"{name} lacks {wanted - found} of {wanted} vectors that were asked for. Remove it there: then its file is "
            "searched, and `perennial home move --index` makes it again."
        )
