"""What a segment asks of whatever keeps its vectors: FAISS on this machine, or pgvector in a database.

Rows are counted from 0, in the order in which they were written; a row never changes.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class VectorIndex(Protocol):
    """Vectors of unit length, which many threads search."""

    @property
    def dim(self) -> int:
        """Number of columns."""

    @property
    def count(self) -> int:
        """Number of rows."""

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
