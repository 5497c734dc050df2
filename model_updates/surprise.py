"""How surprising a language's own new texts are to its profile, and whether a text is more surprising than those.

Idea: a profile gives every text some likelihood, so the likeliest of a few languages need not be likely. What is usual
is measured when the profile is taught: it reads a part of the captions before it has seen them. Captions of few pairs
surprise their profile more, and that is measured with it.

Formula: a text of n letters surprises by s = -log P(text). Over texts read unseen, m = sum(s) / sum(n) is the mean
surprise of a letter and v the mean of (s - m n)^2 / n. A text is (s - m n) / sqrt(v n + (DRIFT n)^2) deviations from
what is usual: letters vary by v each, and what texts are about moves all letters of one together, by DRIFT.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

# In nats a letter. Chosen so that captions of photographs in languages known from names of emoji are not unfamiliar
# (docs/log.md).
DRIFT = 0.4
FEWEST = 20  # texts read unseen, below which nothing is said


@dataclass(frozen=True)
class Surprise:
    """What texts read unseen came to."""

    texts: float = 0.0  # how many
    letters: float = 0.0  # of all of them
    total: float = 0.0  # their surprise, in nats
    squares: float = 0.0  # sum of (s - m n)^2 / n

    @classmethod
    def measured(cls, texts: Iterable[tuple[int, float]]) -> Surprise:
        """Sums up texts, each given by its number of letters and its surprise."""
        read = list(texts)
        letters, total = float(sum(n for n, _ in read)), sum(s for _, s in read)
        mean = total / max(1.0, letters)
        return cls(float(len(read)), letters, total, sum((s - mean * n) ** 2 / n for n, s in read))

    def __add__(self, other: Surprise) -> Surprise:
        """Joins what was measured before each of two teachings."""
        return Surprise(
            self.texts + other.texts,
            self.letters + other.letters,
            self.total + other.total,
            self.squares + other.squares,
        )

    def deviations(self, letters: int, surprise: float) -> float | None:
        """Returns by how many deviations a text is more surprising than usual; None where too few were measured.

        The text has at least one letter; its surprise is minus the logarithm of its likelihood, in nats.
        """
        if self.texts < FEWEST:
            return None
        more = surprise - letters * self.total / self.letters
        return more / math.sqrt(letters * self.squares / self.texts + (DRIFT * letters) ** 2)
