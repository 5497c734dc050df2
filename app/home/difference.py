"""What two releases differ in, as plain records: the same for page, REST, client and terminal."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """What the second of two has and the first has not, and the other way round."""

    added: tuple[str, ...]
    gone: tuple[str, ...]

    @classmethod
    def between(cls, a: Collection[str], b: Collection[str]) -> Change:
        """Compares two collections, each in its order."""
        return cls(tuple(one for one in b if one not in a), tuple(one for one in a if one not in b))


@dataclass(frozen=True)
class SliceChange:
    """Recall on a slice in percent: the mean of R@1, R@5 and R@10 by text, measured when each release was made."""

    slice: str
    view: str
    a: float | None
    b: float | None


@dataclass(frozen=True)
class Difference:
    """What two releases differ in.

    Attributes:
        a: id of the first.
        b: id of the second.
        same_version: whether they share the encoder.
        languages: learned.
        chunks: taught.
        texts_changed: languages of both that are read differently; what is not here is read the same to the bit.
        texts_same: languages of both that are read the same.
        pictures_changed: domains that are seen differently; "" stands for all that have no adapter of their own.
        pictures: counts: in a, in b, in both.
        strategies: that trained them last.
        slices: recall on every slice that either measured.
    """

    a: str
    b: str
    same_version: bool
    languages: Change
    chunks: Change
    texts_changed: tuple[str, ...]
    texts_same: tuple[str, ...]
    pictures_changed: tuple[str, ...]
    pictures: tuple[int, int, int]
    strategies: tuple[str, str]
    slices: tuple[SliceChange, ...]
