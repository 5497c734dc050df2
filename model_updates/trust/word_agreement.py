"""Captions as bags of words and letter sequences, and how alike captions are in them.

Idea: two texts that name the same things share words, and words that share letters are related, in any language that is
written in letters. Weighing each sequence by how rare it is (tf-idf; Sparck Jones, 1972) makes the likeness of two
captions a number between 0 and 1: the cosine of their weighted bags. Which of the sequences goes with what a picture
shows is left to `cross_fit`, which learns it from the other pairs.
"""

import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Kernel = NDArray[np.float32]

SHORTEST, LONGEST = 3, 5  # letters in a sequence; scripts without spaces say as much in one to three
UNSPACED_LONGEST = 3
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
# Products that a kernel may cost; above it, rare sequences share places in a shorter bag. 1,000 captions get 10,000.
BUDGET = 10_000_000_000
MOST_PLACES = 16_384


def words_of(text: str) -> list[str]:
    """Returns the words of a text in lower case, letters, marks and digits alone."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c if unicodedata.category(c)[0] in "LMN" else " " for c in folded).split()


def sequences_of(text: str) -> list[str]:
    """Returns the distinct words of a text and their letter sequences, in the order they come.

    Sequences have 3 to 5 letters and mark where a word begins and ends; in scripts that put no spaces between words
    they have 1 to 3.
    """
    found: dict[str, None] = {}
    for word in words_of(text):
        unspaced = any(is_unspaced(letter) for letter in word)
        shortest, longest = (1, UNSPACED_LONGEST) if unspaced else (SHORTEST, LONGEST)
        found[f"={word}"] = None
        bounded = word if unspaced else f"<{word}>"
        for length in range(shortest, longest + 1):
            for start in range(len(bounded) - length + 1):
                found[bounded[start : start + length]] = None
    return list(found)


@lru_cache(maxsize=1 << 16)
def is_unspaced(letter: str) -> bool:
    """Whether a letter is of a script that puts no spaces between words."""
    return unicodedata.name(letter, "").startswith(_UNSPACED)


def likeness(bags: Sequence[Iterable[str]], *, seen_in: int = 2) -> Kernel:
    """Returns how alike each two bags are: (n, n) float32 cosines of tf-idf weights, in [0, 1].

    Bags hold the distinct words or sequences of each text. An empty one is like no other, and not like itself.
    Sequences that fewer than `seen_in` bags hold say nothing of other texts and are left out.
    """
    held = [list(dict.fromkeys(bag)) for bag in bags]
    counts = Counter(part for bag in held for part in bag)
    kept = sorted(part for part, count in counts.items() if count >= seen_in)
    n = len(held)
    room = int(min(MOST_PLACES, max(1024, BUDGET // max(1, n * n))))
    places = {
        part: number if len(kept) <= room else zlib.crc32(part.encode()) % room
        for number, part in enumerate(kept)
    }
    width = max(1, min(len(kept), room))
    rows = [(row, part) for row, bag in enumerate(held) for part in bag if part in places]
    flat = np.asarray([row * width + places[part] for row, part in rows], dtype=np.int64)
    rare = np.log((n + 1) / (np.asarray([counts[part] for _, part in rows], dtype=np.float64) + 1)) ** 2
    # Sequences that share a place count as one of their joint length.
    weights = (
        np.sqrt(np.bincount(flat, weights=rare, minlength=n * width)).astype(np.float32).reshape(n, width)
    )
    lengths = np.linalg.norm(weights, axis=1, keepdims=True)
    weights /= np.where(lengths > 0, lengths, 1)
    return np.asarray(weights @ weights.T, dtype=np.float32)
