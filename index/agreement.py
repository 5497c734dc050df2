"""Approximate search against exact search, in one number.

Two results agree when they are equally good, not when they are the same ids in the same order: among tied
neighbours any is right. So an answer counts as right when its exact score is at least the exact k-th best
score, within a tolerance. (The idea of comparing up to draws is FAISS's, contrib/evaluation.py.)
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index import faiss_index
from index.errors import ResultCountError, VectorError
from index.vectors import unit_rows

# Rounding of float32 products over up to about a thousand dimensions.
TOLERANCE = 1e-5
QUERIES_PER_BLOCK = 64


def agreement(
    index: faiss_index.FaissIndex,
    vectors: ArrayLike,
    queries: ArrayLike,
    k: int,
    tolerance: float = TOLERANCE,
) -> float:
    """Measures which share of an index's answers is as good as exact search's.

    `index` is built over `vectors`, in their order; both they, (n, dim), and `queries`, (q, dim), are float32 rows of
    unit length. A score that is worse than the exact k-th one by no more than `tolerance` counts as a tie. The answer
    is between 0 and 1, and 1 for an empty gallery. A repeated or missing answer counts as wrong.

    Raises:
        VectorError: Arrays do not fit the index, or there is no query.
        ResultCountError: k is below 1.
    """
    if k < 1:
        raise ResultCountError(f"Agreement over {k} results means nothing; ask for at least 1.")
    rows = unit_rows(vectors, dim=index.d)
    asked = unit_rows(queries, dim=index.d)
    if index.ntotal != len(rows):
        raise VectorError(
            f"The index holds {index.ntotal} vectors and is compared with {len(rows)}; "
            "compare it with the vectors that it was built from."
        )
    if len(asked) == 0:
        raise VectorError("Agreement needs at least one query; there are none.")
    wanted = min(k, len(rows))
    if wanted == 0:
        return 1.0
    _, positions = faiss_index.search(index, asked, wanted)
    right = 0
    for start in range(0, len(asked), QUERIES_PER_BLOCK):
        block = slice(start, start + QUERIES_PER_BLOCK)
        right += _right_answers(asked[block] @ rows.T, positions[block], tolerance)
    return right / (wanted * len(asked))


def _right_answers(exact: NDArray[np.float32], positions: NDArray[np.int64], tolerance: float) -> int:
    """Counts answers whose exact score reaches the k-th best; exact (q, n), positions (q, k)."""
    wanted = positions.shape[1]
    kth_best = -np.partition(-exact, wanted - 1, axis=1)[:, wanted - 1]
    right = 0
    for row, threshold, answers in zip(exact, kth_best, positions, strict=True):
        distinct = np.unique(answers[answers >= 0])
        right += int((row[distinct] >= threshold - tolerance).sum())
    return right
