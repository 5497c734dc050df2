"""What the captions have in common that an update taught to find their pictures: the words behind a gain.

A word is told when at least three more of the captions with it find their picture than before, and a larger part of
them than of all: that is a fact about these captions, counted like the gain itself, and no guess at what an encoder
understands. Where everything gained alike, no word is told.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence

import numpy as np
import stopwordsiso
from numpy.typing import NDArray

from model_updates.trust.word_agreement import is_unspaced, words_of

FEWEST = 3
"""Captions with a word that must be found beyond those that were found before."""
MOST = 2
_BEYOND = 1.25  # times the gain of all captions
_SHORTEST = 3  # letters
_MARKS = ".,;:!?\"'()"


def gained_words(
    texts: Sequence[str], before: NDArray[np.bool_], after: NDArray[np.bool_], language: str
) -> tuple[str, ...]:
    """Returns up to two words, of whose captions most more are found than before, most first.

    Args:
        texts: the captions, in one language.
        before: (n,) whether each found its picture.
        after: (n,) whether it does now.
        language: of the captions. Where nobody has listed the words of it that say nothing, or it is written without
            spaces, no word is told.
    """
    tag = language.partition("-")[0]
    if not stopwordsiso.has_lang(tag):
        return ()
    empty = stopwordsiso.stopwords(tag)
    mean = (int(after.sum()) - int(before.sum())) / max(1, len(texts))
    steps: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for text, was, now in zip(texts, before, after, strict=True):
        for word in set(words_of(text)) - empty:
            seen[word] += 1
            steps[word] += int(now) - int(was)
    told = [
        word
        for word, step in sorted(steps.items(), key=lambda item: (-item[1], item[0]))
        if step >= FEWEST and step > _BEYOND * mean * seen[word] and _says_something(word)
    ]
    return tuple(_as_written(word, texts) for word in told[:MOST])


def _says_something(word: str) -> bool:
    letters = [letter for letter in word if unicodedata.category(letter)[0] == "L"]
    return len(letters) >= _SHORTEST and not any(map(is_unspaced, letters))


def _as_written(word: str, texts: Sequence[str]) -> str:
    """Returns a word as most of the captions write it inside a sentence."""
    inside = (one for text in texts for one in text.split()[1:])
    written = Counter(one.strip(_MARKS) for one in inside if words_of(one) == [word])
    return written.most_common(1)[0][0] if written else word
