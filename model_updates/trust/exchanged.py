"""Two words that changed places: do the pictures of each prefer the captions of the other?

Idea: when "boat" and "house" are exchanged throughout a chunk, every caption is wrong in the same way, and nothing that
is learned from the chunk itself can notice. An encoder that knows both words can: the pictures captioned with either
are nearer to the captions with the other. It must be so from both sides and for both words, each certainly.

It must also be an exception. In a domain that the encoder reads badly it takes many words for others, and always the
same way; so nothing is said unless the pictures of most words prefer captions with their own word, and unless each of
the two finds the other before all other words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.word_agreement import words_of

FEWEST = 6  # captions with a word
MOST_WORDS = 80
CERTAIN = 4.0  # standard errors, in each of four comparisons
CLEAR = 0.3  # deviations of the scores
TOGETHER = 0.2  # words that share captions more often than this are no rivals
AMONG_BEST, KNOWN_WORDS = 0.1, 0.8  # own words are among the best tenth of all, for so many of the words


@dataclass(frozen=True)
class Exchange:
    """Two words that look exchanged, and how many captions have either."""

    one: str
    other: str
    captions: int
    deviations: float


def exchanged(scores: NDArray[np.float32], texts: Sequence[str]) -> list[Exchange]:
    """Returns the couples of words that look exchanged, clearest first; a word is in one couple at most.

    Scores are (n, n) of pictures (rows) and captions (columns) by an encoder that has learned nothing from them.
    """
    values = np.asarray(scores, dtype=np.float64)
    values = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    values /= max(float(values.std()), 1e-9)
    bags = [set(words_of(text)) or {text} for text in texts]
    counts = Counter(word for bag in bags for word in bag)
    words = [word for word, n in counts.most_common(MOST_WORDS) if FEWEST <= n <= len(texts) / 2]
    if len(words) < 2:
        return []
    has = np.asarray([[word in bag for word in words] for bag in bags], dtype=np.float64)
    by_caption = (values @ has) / has.sum(
        axis=0
    )  # (n, w): each picture's mean score with the captions of a word
    by_picture = (values.T @ has) / has.sum(axis=0)
    tables = (by_caption, by_picture)
    means = [np.stack([table[has[:, w] > 0].mean(axis=0) for w in range(len(words))]) for table in tables]
    if not _mostly_known(means):
        return []
    found = []
    for a in range(len(words)):
        for b in range(a):
            both = (has[:, a] * has[:, b]).sum()
            if both <= TOGETHER * min(has[:, a].sum(), has[:, b].sum()) and _find_each_other(means, a, b):
                sides = [
                    _preference(table, has[:, one], one, other)
                    for table in tables
                    for one, other in ((a, b), (b, a))
                ]
                if all(mean > CLEAR and mean > CERTAIN * error for mean, error in sides):
                    clear = min(mean / max(error, 1e-9) for mean, error in sides)
                    number = int((has[:, a] + has[:, b] > 0).sum())
                    found.append(Exchange(words[b], words[a], number, clear))
    taken: set[str] = set()
    chosen = []
    for couple in sorted(found, key=lambda couple: -couple.deviations):
        if not {couple.one, couple.other} & taken:
            taken |= {couple.one, couple.other}
            chosen.append(couple)
    return chosen


def _mostly_known(means: Sequence[NDArray[np.float64]]) -> bool:
    """Whether most words' rows have their own column among the best: (w, w) mean scores, pictures and captions."""
    most = max(1, round(AMONG_BEST * len(means[0])))
    known = [(table > np.diagonal(table)[:, None]).sum(axis=1) < most for table in means]
    return all(float(np.mean(own)) >= KNOWN_WORDS for own in known)


def _find_each_other(means: Sequence[NDArray[np.float64]], a: int, b: int) -> bool:
    return all(int(table[a].argmax()) == b and int(table[b].argmax()) == a for table in means)


def _preference(
    table: NDArray[np.float64], has: NDArray[np.float64], one: int, other: int
) -> tuple[float, float]:
    """Returns how far rows with a word prefer the columns of the other: mean and standard error."""
    gain = table[has > 0, other] - table[has > 0, one]
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))
