"""Which captions of a chunk read as another language than the rest?

Idea: a table that was filled from two sources may have a tenth of its captions in another language, which hardly moves
what all of them look like on average. Two letter models tell them apart row by row: one of the other language, which
somebody taught, and one of the chunk's own captions without those that the other explains better. The second is
learned, and captions are assigned anew, until nothing changes (expectation maximisation with hard assignments; Celeux
and Govaert, 1992). A caption is judged by a model that did not see it, so that none vouches for itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.language_profiles import LanguageProfile, letters_of

FOLDS, MOST_STEPS = 5, 6
MOST_LEARNED = 2_000  # captions that show how the rest is written
FEWEST = 40  # distinct captions
PRIOR = float(np.log(0.1 / 0.9))
# Nats by which the other language explains a caption better. Names have words in common: by 12 nats at most .08 of the
# captions of 31 clean languages read as English, and .25 of Filipino ones; where a tenth is English, .09 and more.
SURE, READS = 12.0, 7.0
NOTICED = 0.085


@dataclass(frozen=True)
class OtherLanguage:
    """Captions in a language that is not the chunk's."""

    language: str
    share: float  # of the captions that are surely in it
    rows: NDArray[np.bool_]  # (n,) captions that read as it


def other_language(texts: Sequence[str], others: Mapping[str, LanguageProfile]) -> OtherLanguage | None:
    """Returns the other language that explains its captions best, or None where too few are surely in any.

    `others` are profiles by language, without the chunk's own.
    """
    letters = [letters_of(text) for text in texts]
    distinct = sorted(set(filter(None, letters)))
    if len(distinct) < FEWEST:
        return None
    best, clearest = None, 0.0
    for language, profile in others.items():
        gain = dict(zip(distinct, _gains(distinct, profile).tolist(), strict=True))
        gains = np.asarray([gain.get(text, -np.inf) for text in letters])
        sure = gains >= SURE
        if sure.mean() >= NOTICED and gains[sure].sum() > clearest:
            clearest = float(gains[sure].sum())
            best = OtherLanguage(language, float(sure.mean()), gains >= READS)
    return best


def _gains(distinct: Sequence[str], other: LanguageProfile) -> NDArray[np.float64]:
    """Returns (n,) nats by which the other language explains each caption better than the rest of the chunk does."""
    theirs = other.log_likelihoods(distinct)
    by_letter = theirs / np.asarray([len(text) for text in distinct])
    is_other = by_letter > np.median(by_letter)  # to begin with, what is surely not in it shows the rest
    order = np.random.default_rng(0).permutation(len(distinct))
    folds = np.array_split(order, FOLDS)
    gains = np.zeros(len(distinct))
    for _ in range(MOST_STEPS):
        for fold in folds:
            seen = np.setdiff1d(np.flatnonzero(~is_other), fold)
            seen = order[np.isin(order, seen)][:MOST_LEARNED]
            own = LanguageProfile.learned_from([distinct[int(at)] for at in seen])
            gains[fold] = theirs[fold] - own.log_likelihoods([distinct[int(at)] for at in fold])
        before, is_other = is_other, gains + PRIOR > 0
        if (before == is_other).all():
            break
    return gains
