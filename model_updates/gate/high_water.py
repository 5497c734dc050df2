"""The best that any version ever was, without the luck of having measured best.

Of nine equal versions one measures best by chance, and a candidate held against that one seems to have lost. So levels
that chance alone could spread are read as one, as James and Stein do ("Estimation with quadratic loss", 1961): the high
water is `(1 - f)` times the mean of all versions plus `f` times the best, with `f = 1 - noise / spread`. Where versions
differ for certain `f` is nearly 1; where they do not, their mean is known better than any of them.

It is a weighted mean of versions, so every caption has a score at the high water, and what is compared stays paired.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HighWater:
    """What captions score at the high water."""

    best: int  # which version measures best
    level: float  # the high water itself, a fraction
    scores: FloatArray  # `(n_captions,)`, the versions' scores weighed


def high_water(
    scores: Sequence[FloatArray], clusters: Sequence[str], weights: FloatArray | None = None
) -> HighWater:
    """Returns the high water of some versions.

    Of each version's `(n_captions,)` scores of the same captions the first wins ties; `weights` `(n_captions,)` is what
    each caption counts, all alike when None.
    """
    table = np.stack(scores)
    counted = np.ones(table.shape[1]) if weights is None else weights
    levels = (table * counted).sum(axis=1) / counted.sum()
    best, versions = int(np.argmax(levels)), len(levels)
    if versions == 1:
        return HighWater(0, float(levels[0]), table[0])
    spread = float(levels.var(ddof=1))
    noise = _noise(table, np.asarray(clusters), counted)
    certain = 0.0 if spread <= noise else 1.0 - noise / spread
    share = np.full(versions, (1.0 - certain) / versions)
    share[best] += certain
    return HighWater(best, float(share @ levels), share @ table)


def _noise(table: FloatArray, clusters: NDArray[np.str_], weights: FloatArray) -> float:
    """The variance that a version's level has by chance, beyond what all versions share: captions hard for each."""
    _, cluster_of = np.unique(clusters, return_inverse=True)
    own = (table - table.mean(axis=0)) * weights
    own -= weights * (own.sum(axis=1) / weights.sum())[:, None]
    sums = np.stack([np.bincount(cluster_of, weights=row) for row in own])
    # The mean over versions was taken off each: that loses one of them.
    return float((sums**2).sum() / (len(table) - 1) / weights.sum() ** 2)
