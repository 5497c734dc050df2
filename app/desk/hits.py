"""Two releases asked the same: how far their answers lie apart."""

from __future__ import annotations

from dataclasses import dataclass

from app.desk.errors import AppError


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """How far the answer to one query differs between two releases.

    Attributes:
        query: that was asked, in the query grammar.
        read_a: the language that release A read it in.
        read_b: the language that release B read it in.
        overlap: share of the hits that both have, 0 to 1.
        same_first: whether both show the same picture first.
        moved: mean of how many places a picture that both found stands apart.
        seconds_a: that release A took.
        seconds_b: that release B took.
    """

    query: str
    read_a: str
    read_b: str
    overlap: float
    same_first: bool
    moved: float
    seconds_a: float
    seconds_b: float


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of one query: how its answer changed, or why there is none."""

    query: str
    change: AnswerChange | None = None
    error: AppError | None = None


@dataclass(frozen=True, slots=True)
class ManyCompared:
    """Two releases asked the same queries.

    Attributes:
        a: id of a release.
        b: id of another.
        queries: how many were asked.
        overlap: mean share of hits in common, of the queries that were answered; None when none was.
        asked: what became of them; where those that changed most were wanted, these, most changed first.
    """

    a: str
    b: str
    queries: int
    overlap: float | None
    asked: tuple[Asked, ...]
