"""One query read in several languages: how much each reading's cosines count.

Idea: words that a table does not know land in the middle of things and are somewhat near to many pictures; the reading
that was meant is near to few. So a reading's cosines count by how far they stand above its own tenth-best, half of it:
the other half of a high cosine is worth something, too, for a table that reads nonsense seldom has one. Both numbers
were chosen on trained names of 36 languages (docs/log.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NEIGHBOUR = 10  # the picture whose cosine says how near a reading is to things in general
PART = 0.5


def background(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns what is taken off each reading's cosines: a part of its tenth-best, or of the last where there are fewer.

    Args:
        cosines: (r, n) of each reading's pictures in any order, -inf where fewer were found; at least the ten best.

    Returns:
        (r,) float32; 0 for a reading that found nothing.
    """
    count = cosines.shape[1]
    if count == 0:
        return np.zeros(len(cosines), dtype=np.float32)
    place = max(0, count - NEIGHBOUR)
    tenth = np.partition(cosines, place, axis=1)[:, place]
    least = np.where(np.isfinite(cosines), cosines, np.inf).min(axis=1)
    found = np.where(np.isfinite(tenth), tenth, np.where(np.isfinite(least), least, 0.0))
    return np.asarray(PART * found, dtype=np.float32)
