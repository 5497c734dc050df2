"""Pairs: one picture and one text to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.sentence import known_fields


@dataclass(frozen=True)
class TrainingPair:
    """One picture and one text to learn from; `english` is an English caption of the same picture."""

    image_id: str
    text: str
    language: str
    domain: str
    english: str | None = None


def stored_pairs(stored: Iterable[Mapping[str, Any]]) -> tuple[TrainingPair, ...]:
    """Returns the pairs that a strategy's facts keep as plain values."""
    return tuple(TrainingPair(**known_fields(TrainingPair, pair)) for pair in stored)


def by_language(pairs: Sequence[TrainingPair]) -> list[tuple[str, list[int]]]:
    """Returns the places of the pairs of each language, in the order of the tags."""
    places: dict[str, list[int]] = {}
    for n, pair in enumerate(pairs):
        places.setdefault(pair.language, []).append(n)
    return sorted(places.items())


@dataclass(frozen=True)
class Fold:
    """A share of a chunk that a copy is examined on, and what the copy may learn: all of it that shows other things."""

    train: tuple[TrainingPair, ...]  # pairs to learn from
    validation: tuple[TrainingPair, ...]  # pairs that choose the epoch
    examined: tuple[TrainingPair, ...]  # pairs that the copy is to find
