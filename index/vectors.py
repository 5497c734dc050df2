"""The only door for arrays: dtype, shape, finite numbers, length.

FAISS answers a NaN query with padding and never finds a stored NaN, without a word; so every array
is looked at once, here, before it is added, searched or cached.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import DimensionMismatch, VectorError

# Below this length the direction of a float32 row is rounding noise.
SHORTEST_LENGTH = 1e-12
ROWS_PER_BLOCK = 16384


def finite_rows(array: ArrayLike, *, dim: int | None = None) -> NDArray[np.float32]:
    """Checks an array and returns it as C-contiguous float32 rows, copied only where something had to change.

    Raises:
        VectorError: Not two-dimensional, not real numbers, or not finite.
        DimensionMismatch: The number of columns is not `dim`.
    """
    rows = np.asarray(array)
    if rows.ndim != 2:
        raise VectorError(
            f"Vectors must be a two-dimensional array (one row each); this one has shape {rows.shape}. "
            "Wrap a single vector as a one-row array."
        )
    if not (np.issubdtype(rows.dtype, np.floating) or np.issubdtype(rows.dtype, np.integer)):
        raise VectorError(f"Vectors must be real numbers; this array holds {rows.dtype}.")
    if dim is not None and rows.shape[1] != dim:
        raise DimensionMismatch(
            f"Expected {dim}-dimensional vectors; these have {rows.shape[1]} dimensions. "
            "They come from different encoders: use the encoder that the other side was made with."
        )
    if rows.shape[1] == 0:
        raise VectorError("Vectors need at least one dimension; these have 0.")
    # A float64 beyond float32's range becomes infinite here and is reported below.
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(rows, dtype=np.float32)
    finite = np.isfinite(result).all(axis=1)
    if not finite.all():
        first = int(np.flatnonzero(~finite)[0])
        raise VectorError(
            f"{int((~finite).sum())} of {len(result)} vectors hold NaN or infinite numbers, "
            f"row {first} first. The encoder produced them; check its weights and the input of that row."
        )
    return result


def unit_rows(array: ArrayLike, *, dim: int | None = None) -> NDArray[np.float32]:
    """Checks an array and returns its rows scaled to length 1, as C-contiguous float32 in memory of their own.

    Raises:
        VectorError: Not two-dimensional, not real numbers, not finite, or a row of length zero.
        DimensionMismatch: The number of columns is not `dim`.
    """
    rows = finite_rows(array, dim=dim)
    # float64 so that neither tiny nor huge finite rows lose their direction when squared.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    short = lengths < SHORTEST_LENGTH
    if short.any():
        first = int(np.flatnonzero(short)[0])
        raise VectorError(
            f"{int(short.sum())} of {len(rows)} vectors have length zero, row {first} first; "
            "they have no direction to compare. Check the input of that row."
        )
    unit: NDArray[np.float32] = (rows / lengths[:, None]).astype(np.float32)
    return unit


def nearest_rows(
    vectors_of: Callable[[NDArray[np.int64]], NDArray[np.float32]],
    queries: NDArray[np.float32],
    k: int,
    rows: NDArray[np.int64],
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Finds the rows with the largest products by comparing each, a block at a time so that memory stays bounded.

    Returns:
        Scores (q, k) float32, descending, and rows (q, k) int64; fewer columns where there are fewer rows.
    """
    best_scores = np.empty((len(queries), 0), dtype=np.float32)
    best_rows = np.empty((len(queries), 0), dtype=np.int64)
    for start in range(0, len(rows), ROWS_PER_BLOCK):
        block = rows[start : start + ROWS_PER_BLOCK]
        products = queries @ vectors_of(block).T
        scores = np.concatenate([best_scores, products], axis=1)
        found = np.concatenate([best_rows, np.broadcast_to(block, products.shape)], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best_scores = np.take_along_axis(scores, order, axis=1)
        best_rows = np.take_along_axis(found, order, axis=1)
    return best_scores, best_rows
