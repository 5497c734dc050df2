"""What relevance is measured by: how near captions are, where scales lie, words that say something."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.learning.sampling import sampled
from app.query.snapshot import Vectors
from model_updates.search_encoder import unit

NEAREST = 2
_SELDOM, _OFTEN = 3, 0.2  # captions that have a word which says something: so many, and this share at most
_MOST_WORDS = 1000
# what reading a sentence in another language changes, this many times: fr, pt, ar want 1.3, others more (docs/log.md)
_FURTHER, TURNS = 1.6, 8
# A run of letters; scripts without spaces between words are read two letters at a time.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_RUN = re.compile(rf"([{_UNSPACED}]+)|[^\W{_UNSPACED}]+")

Scale = NDArray[np.float64]
"""(5,): captions as near as those of 96 in 100 and of 75 in 100; pictures as near as 99 in 100, 75 and 25."""


def read_as(captions: Vectors, english: Vectors, own: Vectors, first: int) -> Vectors:
    """Returns (TURNS * n, dim) unit vectors of (n, dim) English captions as another language would read them.

    `english` and `own` are (32, dim) vectors of the same sentences; the first space has so many numbers.
    """
    rows = np.tile(captions, (TURNS, 1))
    taken = (7 * np.arange(len(rows)) + np.arange(len(rows)) // len(captions)) % len(own)
    spaces = []
    for space in (slice(0, first), slice(first, None)):
        moved = rows[:, space] + _FURTHER * (own - english)[taken][:, space]
        length = np.linalg.norm(own[taken][:, space], axis=1, keepdims=True)
        spaces.append(moved * (length / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-9)))
    return unit(np.concatenate(spaces, axis=1))


def nearest(cosines: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns of (n, m) cosines the (n,) means of the two highest of each row."""
    count = min(NEAREST, cosines.shape[1])
    highest: NDArray[np.float64] = np.partition(cosines, -count, axis=1)[:, -count:].mean(axis=1, dtype=float)
    return highest


def scale_of(captions: NDArray[np.float64], pictures: NDArray[np.float32]) -> Scale:
    """Returns the scale that (n,) nearest captions of texts and their (n,) pictures lead to."""
    return np.concatenate([np.quantile(captions, (0.04, 0.25)), np.quantile(pictures, (0.01, 0.25, 0.75))])


def words_of(text: str) -> list[str]:
    """Returns the words of a text, small; of scripts without spaces every two letters that follow one another."""
    found: list[str] = []
    for run in _RUN.finditer(text.casefold()):
        word = run.group()
        found += [word[n : n + 2] for n in range(max(1, len(word) - 1))] if run.group(1) else [word]
    return found


def common_words(texts: Sequence[str]) -> list[str]:
    """Returns a fixed sample of the words that several captions have, but not so many that they say nothing."""
    counts = Counter(word for text in texts for word in set(words_of(text)))
    return sampled(
        (word for word, count in counts.items() if _SELDOM <= count <= _OFTEN * len(texts)), _MOST_WORDS
    )


def are_told(words: Sequence[str], texts: Sequence[str], cosines: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Returns (n,) whether the nearest captions of a word all have it, as those of words for things do.

    `cosines` are (n, m), of words and texts.
    """
    have = [set(words_of(text)) for text in texts]
    first = np.argsort(-cosines, axis=1)[:, :NEAREST]
    return np.array([all(word in have[at] for at in row) for word, row in zip(words, first, strict=True)])


def seldom_reached(cosines: NDArray[np.float32]) -> float:
    """Returns what one in a thousand of (n,) cosines reaches, with pictures of something else."""
    return float(np.quantile(cosines, 0.999)) if len(cosines) else -1.0
