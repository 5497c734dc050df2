"""Two releases asked many queries: how far each answer changed, and which changed most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from app.desk.errors import AppError
from app.desk.hits import AnswerChange, Asked, Compared
from app.desk.troubles import trouble_of

Ask = Callable[[str], Compared]


def change_of(compared: Compared) -> AnswerChange:
    """Returns how far one answer changed."""
    a, b = compared.a, compared.b
    apart = [
        abs(move.rank_a - move.rank_b)
        for move in compared.moves
        if move.rank_a is not None and move.rank_b is not None
    ]
    first = [answer.hits[0].id if answer.hits else "" for answer in (a, b)]
    return AnswerChange(
        query=a.query,
        read_a=a.language,
        read_b=b.language,
        overlap=compared.overlap,
        same_first=first[0] == first[1],
        moved=sum(apart) / len(apart) if apart else 0.0,
        seconds_a=a.timing.encode + a.timing.index,
        seconds_b=b.timing.encode + b.timing.index,
    )


def ask_all(ask: Ask, queries: Iterable[str]) -> list[Asked]:
    """Asks every query once, in order; one that cannot be answered keeps none of the others from it."""
    return [_asked(ask, query) for query in distinct(queries)]


def distinct(queries: Iterable[str]) -> list[str]:
    """Returns queries without the empty ones, and of equal ones the first."""
    return list(filter(None, dict.fromkeys(" ".join(query.split()) for query in queries)))


def most_changed(asked: Sequence[Asked], most: int) -> list[Asked]:
    """Returns the answers that changed most: least in common first, then another first picture, then moves."""
    changed = [(one, one.change) for one in asked if one.change is not None]
    changed = [(one, change) for one, change in changed if change.overlap < 1 or change.moved > 0]
    changed.sort(key=lambda pair: (pair[1].overlap, pair[1].same_first, -pair[1].moved, pair[1].query))
    return [one for one, _ in changed[:most]]


def mean_overlap(asked: Sequence[Asked]) -> float | None:
    """Returns the mean overlap of the queries that were answered; None when none was."""
    overlaps = [one.change.overlap for one in asked if one.change is not None]
    return sum(overlaps) / len(overlaps) if overlaps else None


def _asked(ask: Ask, query: str) -> Asked:
    try:
        return Asked(query, change=replace(change_of(ask(query)), query=query))
    except AppError as error:
        return Asked(query, **trouble_of(error).answered())
