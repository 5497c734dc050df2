"""How far a difference between two encoders could be chance: resampled images and Holm's levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """A mean difference and how it varies over resamples."""

    difference: float  # mean of `a - b`
    means: FloatArray  # `(samples,)`, the same mean in each resample

    def low(self, level: float) -> float:
        """Returns the one-sided lower bound: the difference is at least this with confidence `level`."""
        return float(np.quantile(self.means, 1.0 - level))

    def high(self, level: float) -> float:
        """Returns the one-sided upper bound: the difference is at most this with confidence `level`."""
        return float(np.quantile(self.means, level))

    def interval(self, level: float) -> tuple[float, float]:
        """Returns the two-sided percentile interval that holds the difference with confidence `level`."""
        tail = (1.0 - level) / 2.0
        return self.low(1.0 - tail), self.high(1.0 - tail)


def paired_bootstrap(
    scores_a: FloatArray,
    scores_b: FloatArray,
    clusters: NDArray[Any],
    *,
    seed: int | Sequence[int],
    samples: int = 2000,
    weights: FloatArray | None = None,
) -> Bootstrap:
    """Resamples whole images to see how far the mean of `a - b` could be chance.

    Captions of one image rise and fall together, so the image is what is drawn. Clusters whose sums agree are
    interchangeable; the number of times each kind is drawn is then exactly multinomial, which replaces
    `samples * clusters` draws by `samples * kinds`: at most seven kinds with one caption per image.

    Scores are `(n,)` of the same queries on both sides; `clusters` `(n,)` are equal where two belong to one image;
    positive `weights` `(n,)` weigh them, None all alike.
    """
    if not len(scores_a) == len(scores_b) == len(clusters) or len(clusters) == 0:
        raise ValueError(
            f"A paired comparison needs the same queries on both sides; found {len(scores_a)} and "
            f"{len(scores_b)} scores for {len(clusters)} queries."
        )
    weight = np.ones(len(clusters)) if weights is None else weights
    _, cluster_of = np.unique(clusters, return_inverse=True)
    sums = np.bincount(cluster_of, weights=weight * (scores_a - scores_b))
    sizes = np.bincount(cluster_of, weights=weight)
    # Rounding merges sums that differ only by the order of their additions.
    kinds, counts = np.unique(np.round([sums, sizes], 12), axis=1, return_counts=True)
    total = int(counts.sum())
    drawn = np.random.default_rng(seed).multinomial(total, counts / total, size=samples).astype(np.float64)
    return Bootstrap(
        difference=float(sums.sum() / sizes.sum()), means=(drawn @ kinds[0]) / (drawn @ kinds[1])
    )


def holm_levels(p_values: Sequence[float], alpha: float) -> list[float]:
    """Returns the level at which Holm's step-down procedure holds each hypothesis.

    The smallest of m p-values is held against alpha/m, the next against alpha/(m-1), and so on; the first
    that is not below its level ends the procedure, and all that follow share its level. What is rejected on
    the way is rejected jointly: the chance of even one false rejection is at most alpha.
    """
    levels = [0.0] * len(p_values)
    rejected, stopped = 0, False
    for position in sorted(range(len(p_values)), key=lambda i: p_values[i]):
        levels[position] = alpha / (len(p_values) - rejected)
        stopped = stopped or p_values[position] >= levels[position]
        rejected += not stopped
    return levels
