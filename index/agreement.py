"""Approximate search against exact search, in one number.

Two results agree when they are equally good, not when they are the same ids in the same order: among tied
neighbours any is right. So an answer counts as right when its exact score is at least the exact k-th best
score, within a tolerance. (The idea of comparing up to draws is FAISS's, contrib/evaluation.py.)
"""

import numpy as np
from numpy.typing import ArrayLike

from index.errors import ResultCountError, VectorError
from index.vector_index import TOLERANCE, VectorIndex
from index.vectors import unit_rows


def agreement(index: VectorIndex, queries: ArrayLike, k: int) -> float:
    """Measures which share of an index's answers is as good as those of exact search among the vectors that it holds.

    `queries` are (q, dim) float32. A score that is worse than the exact k-th one by no more than rounding counts as a
    tie. The answer is between 0 and 1, and 1 for an empty gallery. A repeated or missing answer counts as wrong.

    Raises:
        VectorError: Queries do not fit the index, or there is none.
        ResultCountError: k is below 1.
    """
    if k < 1:
        raise ResultCountError(f"Agreement over {k} results means nothing; ask for at least 1.")
    asked = unit_rows(queries, dim=index.dim)
    if len(asked) == 0:
        raise VectorError("Agreement needs at least one query; there are none.")
    wanted = min(k, index.count)
    if wanted == 0:
        return 1.0
    exact, _ = index.exact(asked, wanted)
    _, positions = index.search(asked, wanted)
    right = 0
    for query, least, answers in zip(asked, exact[:, -1], positions, strict=True):
        distinct = np.unique(answers[answers >= 0])
        right += int((index.vectors(distinct) @ query >= least - TOLERANCE).sum())
    return right / (wanted * len(asked))
