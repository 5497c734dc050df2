"""One query read in several languages: how much each reading's cosines count, and what a picture scores by them all.

Idea: words that a table does not know land in the middle of things and are somewhat near to many pictures; the reading
that was meant is near to few. So a reading's cosines count by how far they stand above its own tenth-best, half of it:
the other half of a high cosine is worth something, too, for a table that reads nonsense seldom has one. Both numbers
were chosen on trained names of 36 languages (docs/log.md).

A picture then scores by the chance that it is meant, whatever the language: exp(scale * cosine) weighs pictures, as the
towers were trained to, the posterior weighs languages, and the chances of all readings are added. What two languages
call alike is found by both; taking each picture's best reading alone lost a fifth of a point more (docs/log.md).
"""

import numpy as np
from numpy.typing import NDArray

NEIGHBOUR = 10  # the picture whose cosine says how near a reading is to things in general
PART = 0.5


def background(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns what is taken off each reading's cosines: a part of its tenth-best, or of the last where there are fewer.

    Cosines are (r, n) of each reading's pictures in any order, at least the ten best, -inf where fewer were found.
    Returns (r,) float32; 0 for a reading that found nothing.
    """
    count = cosines.shape[1]
    if count == 0:
        return np.zeros(len(cosines), dtype=np.float32)
    place = max(0, count - NEIGHBOUR)
    tenth = np.partition(cosines, place, axis=1)[:, place]
    least = np.where(np.isfinite(cosines), cosines, np.inf).min(axis=1)
    found = np.where(np.isfinite(tenth), tenth, np.where(np.isfinite(least), least, 0.0))
    return np.asarray(PART * found, dtype=np.float32)


def fused(cosines: NDArray[np.float32], lowered: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Returns each picture's score by all readings together; by one reading alone, its cosine.

    Cosines are (r, n) of the same n pictures in each reading, what `background` says taken off; -inf where unknown.
    `lowered` (r,) is the log of each reading's odds against the likeliest, over the scale (`handicaps` in
    `app.language`); `scale` is how steeply the towers were trained to tell cosines apart. Returns (n,) float32: log of
    the mean of exp(scale * cosine) over readings, weighted by their chances, over the scale; no higher than the highest
    cosine.
    """
    weights = scale * np.asarray(lowered, dtype=np.float64)
    exponents = scale * np.asarray(cosines, dtype=np.float64) + weights[:, None]
    together = _log_of_sum(exponents) - _log_of_sum(weights)
    return np.asarray(together / scale, dtype=np.float32)


def added(a: NDArray[np.float32], b: NDArray[np.float32], scale: float) -> NDArray[np.float32]:
    """Returns log(exp(scale * a) + exp(scale * b)) / scale of finite numbers, to within 1e-7 of `np.logaddexp`.

    NumPy's function goes number by number and takes nine times as long.
    """
    gap: NDArray[np.float32] = np.abs(a - b)
    gap *= -scale
    np.log1p(np.exp(gap, out=gap), out=gap)
    gap /= scale
    return np.asarray(gap + np.maximum(a, b), dtype=np.float32)


def _log_of_sum(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the log of the sum of exp over the first axis; -inf where all are."""
    highest = exponents.max(axis=0)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(exponents - highest).sum(axis=0)) + highest)
