"""What many slices say together about each: how likely one of them lost more than a policy allows.

With sixty slices the worst of sixty chance results looks like a loss, and a bound on each slice alone sends every
harmless update to a person. So the slices are read together, as Efron and Morris do ("Stein's paradox", 1977): most of
them moved by some common amount and scatter a little around it, and a few may have moved by anything:

    theta_i ~ (1 - p_i) Normal(mu, tau^2) + p_i Normal(0, 10^2)         drop of slice i, points
    d_i | theta_i ~ Normal(theta_i, s_i^2)                              what was measured

The second part keeps a slice that lost much from being talked down by the others. `mu` and `tau` are averaged over a
grid, weighed by how well they explain all slices, so that one slice alone can be judged too. The prior chance that any
slice at all is of the second kind is a half, shared among them: the more slices, the more it takes to suspect one.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]

COMMON_SPREAD = 1.5
"""Prior deviation of the common movement in points: updates that keep what is known move it by less than two."""
SCATTER = 1.0
"""Prior scale in points of how far slices scatter around it."""
ANYTHING = 10.0
"""Deviation in points of a slice that moved by itself."""
ANY_ODD = 0.5
_HALVINGS = 16  # of 200 points: a bound is known to 0.003
_MU, _TAU = (
    axis.ravel()
    for axis in np.meshgrid(np.arange(-6.0, 6.01, 0.5), [0.05, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0], indexing="ij")
)
_LOG_PRIOR = -0.5 * (_MU / COMMON_SPREAD) ** 2 - 0.5 * (_TAU / SCATTER) ** 2


@dataclass(frozen=True, eq=False)
class Shared:
    """The posterior of every slice's drop."""

    odd: FloatArray  # `(n,)` chance that a slice moved by itself
    _weights: FloatArray
    _own: FloatArray
    _common: tuple[FloatArray, FloatArray]
    _apart: tuple[FloatArray, FloatArray]

    def beyond(self, limit: float | FloatArray) -> FloatArray:
        """Returns the chance `(n,)` that each slice's drop is more than `limit` points, or its own of `(n, 1)`."""
        common, apart = (
            normal_tail((limit - mean) / deviation) for mean, deviation in (self._common, self._apart)
        )
        return np.asarray(((self._own * apart + (1 - self._own) * common) * self._weights).sum(axis=1))

    def bound(self, level: float) -> FloatArray:
        """Returns the drop `(n,)` in points that each slice stays below with confidence `level`."""
        low, high = np.full(len(self.odd), -100.0), np.full(len(self.odd), 100.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = self.beyond(middle[:, None]) > 1.0 - level
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high


def share(
    drops: ArrayLike,
    errors: ArrayLike,
    *,
    suspected: ArrayLike | None = None,
    family: int | None = None,
    scale: float = 1.0,
) -> Shared:
    """Reads the measured drops of some slices together.

    Drops `(n,)` are points lost as measured, errors `(n,)` their standard errors, positive. `suspected` `(n,)` is the
    chance, known from elsewhere, that a slice moves by itself; at least the prior's is assumed. `family` comparisons
    share the prior, n when None. `scale` multiplies all prior deviations: 2 for R@1, which varies so much more than the
    mean of three.
    """
    d, s = np.asarray(drops, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    odd = np.full(len(d), ANY_ODD / max(1, family or len(d)))
    if suspected is not None:
        odd = np.maximum(odd, np.minimum(np.asarray(suspected, dtype=np.float64), 0.95))
    mu, tau, anything = scale * _MU, scale * _TAU, scale * ANYTHING
    noise = s[:, None] ** 2
    near, far = noise + tau**2, noise + anything**2
    log_common = -0.5 * np.log(near) - 0.5 * (d[:, None] - mu) ** 2 / near + np.log1p(-odd)[:, None]
    log_apart = -0.5 * np.log(far) - 0.5 * d[:, None] ** 2 / far + np.log(odd)[:, None]
    log_either = np.logaddexp(log_common, log_apart)
    log_weights = _LOG_PRIOR + log_either.sum(axis=0)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    own = np.exp(log_apart - log_either)
    common = _combined(d[:, None], noise, mu, tau**2)
    apart = _combined(d[:, None], noise, 0.0, anything**2)
    return Shared(np.asarray((own * weights).sum(axis=1)), weights, own, common, apart)


def posterior(estimate: float, error: float, *, center: float = 0.0, spread: float) -> tuple[float, float]:
    """Returns mean and deviation of a Normal(center, spread^2) belief after an estimate with a standard error."""
    precision = 1.0 / error**2 + 1.0 / spread**2
    return (estimate / error**2 + center / spread**2) / precision, precision**-0.5


def normal_tail(z: FloatArray | float) -> FloatArray:
    """Returns the chance that a standard normal number is above `z`."""
    from scipy.special import ndtr  # judging learns; what was judged is read without

    return np.asarray(ndtr(-np.asarray(z, dtype=np.float64)))


def one_sided(level: float) -> float:
    """Returns how many deviations a one-sided bound of that confidence lies from the mean."""
    return NormalDist().inv_cdf(level)


def _combined(
    measured: FloatArray, noise: FloatArray, mean: FloatArray | float, variance: FloatArray | float
) -> tuple[FloatArray, FloatArray]:
    precision = 1.0 / noise + 1.0 / variance
    return (measured / noise + mean / variance) / precision, precision**-0.5
