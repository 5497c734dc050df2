"""Captions that slipped by some rows: does another caption of the upload fit each picture better than its own?

Idea: a table whose caption column was sorted, padded or pasted one cell too low is wrong in every row, yet its captions
are all there, a fixed number of rows away. So the captions are heard again in the order they would have if they had
slipped by 1 to 5 rows, in the whole upload and within each part of it, and the best order is compared with the one that
was uploaded. What orders that mean nothing reach is measured with random ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.evidence import Evidence

FARTHEST = 5
RANDOM_ORDERS = 8
CERTAIN = 4.0  # deviations of random orders by which another order must be better
USUAL_SPREAD = (
    1.4  # of the strength of random orders, seen in all data looked at; counts as much as the eight here
)
WHOLE = "whole"


@dataclass(frozen=True)
class RowShift:
    """How well the captions fit in the order they came and in the best other order."""

    part: str  # of the upload in which captions would be moved: `WHOLE` or a name of the caller's
    rows: int  # by how many rows they look moved down; negative for up
    strength: float  # of the agreement in that order
    uploaded: float  # of the agreement in the order that was uploaded
    spread: float  # standard deviation of the strength of random orders
    found: bool  # whether the other order is certainly better


def moved(size: int, at: NDArray[np.intp], rows: int) -> NDArray[np.intp]:
    """Returns the order that undoes a slip: at the positions `at`, pictures get the caption `rows` further down."""
    order = np.arange(size)
    order[at] = np.roll(at, -rows)
    return order


def row_shift(evidence: Evidence, parts: Mapping[str, NDArray[np.intp]], *, seed: int = 0) -> RowShift:
    """Returns the order of captions that fits best, and whether it certainly beats the uploaded one.

    The evidence is of pairs in the order of the upload; `parts` are positions of each part that could have slipped by
    itself, such as the training part. The seed is of the random orders.
    """
    size = len(evidence.pairs)
    random = np.random.default_rng(seed)
    by_chance = [evidence.strength(random.permutation(size)) for _ in range(RANDOM_ORDERS)]
    spread = float(np.sqrt((np.var(by_chance, ddof=1) + USUAL_SPREAD**2) / 2))
    uploaded = evidence.strength(np.arange(size))
    best = RowShift(WHOLE, 0, -np.inf, uploaded, spread, found=False)
    for part, at in {WHOLE: np.arange(size), **parts}.items():
        for rows in [n for n in range(-FARTHEST, FARTHEST + 1) if n and len(at) > 2 * FARTHEST]:
            strength = evidence.strength(moved(size, at, rows))
            if strength > best.strength:
                best = RowShift(part, rows, strength, uploaded, spread, found=False)
    is_better = best.strength - max(uploaded, 0.0) > CERTAIN * spread
    return RowShift(best.part, best.rows, best.strength, uploaded, spread, found=is_better)
