"""Are a chunk's captions in the language that its upload says?

Idea: a detector is often wrong about one short caption and hardly ever about a few hundred. So its confidences are
averaged over the captions, and the declared language is doubted only where another one gets several times as much. A
detector that does not know the declared language spreads its confidence over many; only when it is sure of a single one
does that say something, as it does of English under a foreign tag.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_CAPTIONS = 20
LEAST_CONFIDENCE = 0.2  # mean over all captions; the right language gets .24 (Indonesian names) to 1.0
TIMES_AS_MUCH = 2.5
SURE = 0.8  # of one caption
MANY = 0.4  # of the captions surely in another language are too many, whatever the rest look like
CLEARER = 0.25  # nats a letter by which another learned language's profile must fit better


@dataclass(frozen=True)
class DeclaredLanguage:
    """What the captions look like."""

    # the language they look like instead of the declared one; None when nothing speaks against it
    looks: str | None
    # whether a witness knows the declared language; else only what it is certainly not can be told
    knows: bool
    confidence: float  # mean confidence in `looks`, or in the likeliest other language when it is None
    declared_confidence: float  # mean confidence in the declared language
    captions: NDArray[np.intp]  # positions of the captions that look most like another language, worst first


def declared_language(
    declared: str, confidences: Mapping[str, NDArray[np.float64]]
) -> DeclaredLanguage | None:
    """Compares what a detector says of all captions with what was declared.

    Confidences are (n,) in [0, 1] by language; the declared one is left out when the detector does not know it. None
    when there are too few captions to say anything.
    """
    size = len(next(iter(confidences.values()), np.empty(0)))
    others = {tag: values for tag, values in confidences.items() if tag != declared}
    if size < LEAST_CAPTIONS or not others:
        return None
    knows = declared in confidences
    own = confidences[declared] if knows else np.zeros(size)
    means = {tag: float(values.mean()) for tag, values in others.items()}
    ranked = sorted(means, key=lambda tag: -means[tag])
    first, second = ranked[0], means[ranked[1]] if len(ranked) > 1 else 0.0
    rival = float(own.mean()) if knows else second
    surely = float(np.mean((others[first] >= SURE) & (own < 1 - SURE)))
    clear = means[first] >= LEAST_CONFIDENCE and means[first] >= TIMES_AS_MUCH * rival
    looks = first if clear or (knows and surely >= MANY) else None
    worst = np.argsort(-(others[first] - own), kind="stable")
    return DeclaredLanguage(looks, knows, means[first], float(own.mean()), worst)


def better_profile(declared: str, fits: Mapping[str, NDArray[np.float64]]) -> str | None:
    """Returns the learned language whose profile fits the captions certainly better than the declared one's, or None.

    `fits` has by language (n,) log-likelihoods per letter of the same captions, in nats; where the declared language is
    not among them nothing can be said.
    """
    if declared not in fits or len(fits[declared]) < LEAST_CAPTIONS:
        return None
    gains = {tag: values - fits[declared] for tag, values in fits.items() if tag != declared}
    best = max(gains, key=lambda tag: float(gains[tag].mean()), default=None)
    if best is None:
        return None
    gain = gains[best]
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return best if gain.mean() - 3 * error > CLEARER else None
