"""Which share of a chunk's pairs do not belong together, and which pairs those may be.

Idea: the p-values of mismatched pairs are uniform, those of matched ones are small. So the share of pairs among the
large p-values, over the share that would be there if all were mismatched, estimates the mismatched share from above
(Storey, A direct approach to false discovery rates, 2002). It is too high by the matched pairs that score no better
than chance, so it is worth something only where few do; whether so is measured, not assumed.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

CUT = 0.5
DRAWS = 400
BINS = 20
MOST_DOUBT = 0.95
RIVAL_ODDS = 3.0  # a rival is about three times as frequent among exchanged captions as among badly read ones
DOUBTFUL = 0.6  # chance of being mismatched from which on a pair is listed


@dataclass(frozen=True)
class Mismatch:
    """How many pairs may be mismatched."""

    share: float  # estimated share of mismatched pairs, in [0, 1]; rather too high than too low
    low: float  # the true value of that estimate is above this with 95 % confidence, groups resampled
    high: float  # and below this with as much
    doubt: NDArray[np.float64]  # (n,) each pair's chance of being mismatched
    doubtful: NDArray[np.intp]  # positions of the pairs whose chance is at least `DOUBTFUL`, worst first


def mismatch(p_values: NDArray[np.float64], groups: NDArray[np.intp], *, seed: int = 0) -> Mismatch:
    """Estimates the mismatched share and each pair's chance of being one of them.

    p-values are (n,) as `agreement` gives them; `groups` (n,) are pairs of one thing, which are resampled together.
    """
    share, low, high = share_of(p_values, groups, seed=seed)
    doubt = np.clip(
        low / _density(p_values), 0.0, MOST_DOUBT
    )  # the estimate is rather too high: so not by all of it
    order = np.argsort(-p_values, kind="stable")
    return Mismatch(share, low, high, doubt, order[doubt[order] >= DOUBTFUL])


def with_rivals(judged: Mismatch, p_values: NDArray[np.float64], rivals: NDArray[np.bool_]) -> Mismatch:
    """Returns the same with chances that know whether another picture would fit each caption as well.

    `rivals` (n,) says whether there is such a picture.
    """
    odds = judged.doubt / np.maximum(1e-9, 1 - np.minimum(judged.doubt, 1 - 1e-9))
    odds = odds * np.where(rivals, RIVAL_ODDS, 1 / RIVAL_ODDS)
    doubt = odds / (1 + odds)
    order = np.lexsort((-p_values, -doubt))
    return replace(judged, doubt=doubt, doubtful=order[doubt[order] >= DOUBTFUL])


def share_of(
    p_values: NDArray[np.float64], groups: NDArray[np.intp], *, seed: int = 0
) -> tuple[float, float, float]:
    """Returns the estimated mismatched share with the bounds of a 90 % interval (percentiles of a bootstrap)."""
    large = (p_values > CUT).astype(np.float64) / (1 - CUT)
    _, numbers = np.unique(groups, return_inverse=True)
    sums, sizes = np.bincount(numbers, weights=large), np.bincount(numbers)
    draws = np.random.default_rng(seed).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=DRAWS)
    means = (draws @ sums) / np.maximum(1, draws @ sizes)
    low, high = np.quantile(means, [0.05, 0.95])
    return float(min(1.0, large.mean())), float(min(1.0, low)), float(min(1.0, high))


def _density(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the density of the p-values at each of them, made to fall from 0 to 1 (Grenander's idea on bins)."""
    heights, edges = np.histogram(p_values, bins=BINS, range=(0.0, 1.0))
    falling = _falling(heights * BINS / max(1, len(p_values)))
    middles = (edges[:-1] + edges[1:]) / 2
    return np.maximum(np.interp(p_values, middles, falling), 1e-6)


def _falling(heights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the closest sequence (least squares) that never rises: pool adjacent violators."""
    pooled: list[tuple[float, int]] = []
    for height in heights.tolist():
        value, size = float(height), 1
        while pooled and pooled[-1][0] < value:
            before, count = pooled.pop()
            value = (before * count + value * size) / (count + size)
            size += count
        pooled.append((value, size))
    return np.concatenate([np.full(size, value) for value, size in pooled])
