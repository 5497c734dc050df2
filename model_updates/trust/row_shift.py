"""Captions that slipped by some rows: from which row on, and to which, does another caption fit each picture better?

Idea: a table whose caption column was padded, cut or pasted one cell too low is wrong from there on, yet its captions
are all there, a fixed number of rows away. So each picture's own caption is compared with those 1 to 5 rows away, and
the rows are searched for the stretch whose gains add up to most (the cumulative sum of Page, Continuous inspection
schemes, 1954). Where rows slipped, both captions have changed places: gains are as large there as losses elsewhere, and
where neither caption belongs to the picture they add up to nothing.

Rows beside each other are foretold from all others at once: in a table that is sorted, the rows around would else vouch
for any of them. What goes with what is learned twice, from the captions as they stand and as if all had slipped,
because a slip may be the smaller or the larger part of a table; neither may speak against it. In tables that follow a
rule each row foretells the next, so that both learnings are sure, each of itself; there the captions put back in place
must fit certainly better on the whole than they do as they came.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.evidence import Evidence, UploadedPairs

FARTHEST = 5
AT_ONCE = 1_000  # rows that vouch for each other
BLOCK = 30  # rows that are foretold together
SHORTEST = 20  # rows of a slip
CHANCE = float(np.sqrt(2))  # deviations of a gain where neither caption belongs to the picture
DRIFT = 0.25  # gain a row that a stretch must have to go on
CONTRARY = 0.5  # of the certainty by one learning that the other may speak against it with
LEAST = 4.0  # deviations of a stretch that is worth putting back
# Of the strength of orders of the captions that mean nothing, seen in all data looked at.
USUAL_SPREAD = 1.4

Rows = NDArray[np.float64]


@dataclass(frozen=True)
class RowShift:
    """The stretch of rows whose pictures prefer captions of other rows most."""

    rows: int  # by how many rows they look moved down; negative for up
    first: int  # position of the first row of the stretch
    last: int  # and of the last
    certainty: float  # deviations that the sum of its gains is above none; 0 where nothing slipped


def moved(size: int, at: NDArray[np.intp], rows: int) -> NDArray[np.intp]:
    """Returns the order that undoes a slip: at the positions `at`, pictures get the caption `rows` further down."""
    order = np.arange(size)
    order[at] = np.roll(at, -rows)
    return order


def row_shift(pairs: UploadedPairs, *, seed: int = 0) -> RowShift:
    """Returns the stretch of rows that most certainly slipped; the pairs are in the order of the upload, at least 40.

    The seed is of the draw that witnesses are weighed by.
    """
    parts = np.array_split(np.arange(len(pairs)), -(-len(pairs) // AT_ONCE))
    gains = np.concatenate([_gains(pairs.part(part), seed) for part in parts], axis=2)
    found, doubted = RowShift(1, 0, 0, 0.0), list[RowShift]()
    for rows, (stands, slipped) in zip(_distances(), gains, strict=True):
        for one, other in ((stands, slipped), (slipped, stands)):
            stretch = _stretch(rows, one)
            if _certainty(other[stretch.first : stretch.last + 1]) > -CONTRARY * stretch.certainty:
                found = max(found, stretch, key=_certainty_of)
            elif stretch.certainty >= LEAST:
                doubted.append(stretch)
    if found.certainty >= LEAST or not doubted:
        return found
    return max([found, *_put_back(pairs, parts, doubted, seed)], key=_certainty_of)


def _put_back(
    pairs: UploadedPairs, parts: Sequence[NDArray[np.intp]], doubted: Sequence[RowShift], seed: int
) -> Iterator[RowShift]:
    """Yields the stretches with what is gained on the whole where captions are put back, in deviations."""
    for part in parts:
        here = [one for one in doubted if part[0] <= (one.first + one.last) // 2 <= part[-1]]
        evidence = Evidence(pairs.part(part), seed=seed) if here else None
        for one in here:
            assert evidence is not None  # noqa: S101 - of these
            uploaded = evidence.strength(np.arange(len(part)))
            at = np.arange(max(one.first, part[0]), min(one.last, part[-1]) + 1) - part[0]
            gained = evidence.strength(moved(len(part), at, one.rows)) - max(0.0, uploaded)
            yield replace(one, certainty=max(0.0, gained / USUAL_SPREAD))


def _distances() -> list[int]:
    return [rows for rows in range(-FARTHEST, FARTHEST + 1) if rows]


def _gains(pairs: UploadedPairs, seed: int) -> Rows:
    """Returns (distances, 2, n) gains of the caption so many rows away over the own one, learned in both ways.

    They are 0 where that caption stands in another block.
    """
    blocks = np.array_split(np.arange(len(pairs)), max(2, len(pairs) // BLOCK))
    evidence = Evidence(pairs, blocks=blocks, seed=seed)
    stands = evidence.compared(np.arange(len(pairs)))
    gains = np.zeros((2 * FARTHEST, 2, len(pairs)))
    for number, rows in enumerate(_distances()):
        slipped = evidence.compared(np.concatenate([np.roll(block, -rows) for block in blocks]))
        for block, now, then in zip(blocks, stands, slipped, strict=True):
            at = np.arange(max(0, -rows), len(block) - max(0, rows))
            gains[number, 0, block[at]] = now[at, at + rows] - now[at, at]
            gains[number, 1, block[at]] = then[at, at] - then[at, (at - rows) % len(block)]
    return gains


def _stretch(rows: int, gains: Rows) -> RowShift:
    """Returns the stretch whose gains add up to most; with certainty 0 when it is too short."""
    best, first, last = 0.0, 0, 0
    total, start = 0.0, 0
    for at, gain in enumerate((gains - DRIFT * (gains != 0)).tolist()):
        if total <= 0:
            total, start = 0.0, at
        total += gain
        if total > best:
            best, first, last = total, start, at
    is_long = last - first + 1 >= SHORTEST
    return RowShift(rows, first, last, _certainty(gains[first : last + 1]) if is_long else 0.0)


def _certainty(gains: Rows) -> float:
    return float(gains.sum() / (max(CHANCE, float(gains.std())) * np.sqrt(len(gains))))


def _certainty_of(stretch: RowShift) -> float:
    return stretch.certainty
