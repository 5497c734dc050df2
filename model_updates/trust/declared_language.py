"""Are a chunk's captions in the language that its upload says?

Idea: a detector is often wrong about one short caption and hardly ever about a few hundred. So its confidences are
averaged over the captions, each once and by its letters, and the declared language is doubted only where another one
gets several times as much. A detector that does not know the declared language spreads its confidence over many; only
when it is sure of a single one does that say something, as it does of English under a foreign tag.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEAST_CAPTIONS = 20
LEAST_CONFIDENCE = 0.2  # mean over all captions; the right language gets .24 (Indonesian names) to 1.0
TIMES_AS_MUCH = 2.5
CERTAIN = (
    2.0  # standard errors by which it must be that; a few names are soon taken for those of another language
)
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
    declared: str, confidences: Mapping[str, NDArray[np.float64]], letters: Sequence[int]
) -> DeclaredLanguage | None:
    """Compares what a detector says of different captions with what was declared.

    Confidences are (n,) in [0, 1] by language; the declared one is left out when the detector does not know it. A
    caption counts by its `letters` (n,). None when there are too few captions to say anything.
    """
    others = {tag: values for tag, values in confidences.items() if tag != declared}
    if len(letters) < LEAST_CAPTIONS or not others:
        return None
    weights = np.asarray(letters, dtype=np.float64) / sum(letters)
    knows = declared in confidences
    own = confidences[declared] if knows else np.zeros(len(letters))
    means = {tag: float(weights @ values) for tag, values in others.items()}
    ranked = sorted(means, key=lambda tag: -means[tag])
    first = others[ranked[0]]
    rival = own if knows else others[ranked[1]] if len(ranked) > 1 else np.zeros(len(letters))
    more, error = _mean(first - TIMES_AS_MUCH * rival, weights)
    surely = float(weights @ ((first >= SURE) & (own < 1 - SURE)))
    clear = means[ranked[0]] >= LEAST_CONFIDENCE and more >= CERTAIN * error
    looks = ranked[0] if clear or (knows and surely >= MANY) else None
    worst = np.argsort(own - first, kind="stable")
    return DeclaredLanguage(looks, knows, means[ranked[0]], float(weights @ own), worst)


def _mean(values: NDArray[np.float64], weights: NDArray[np.float64]) -> tuple[float, float]:
    """Returns the mean by weights that add up to one, and its standard error."""
    mean = float(weights @ values)
    return mean, float(np.sqrt(weights**2 @ (values - mean) ** 2))


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
