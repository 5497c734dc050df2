"""Whether one strategy does better than another, or the difference could be chance.

Both answered the same queries with the same seeds, so what is compared is the difference in each query, not two
averages. An interval is a two-way bootstrap: each draw takes seeds with replacement and things with replacement, a
thing's captions in all slices and languages together and the same ones for every seed, because two captions of one
thing are no more evidence than one. Draws of S seeds vary less than seeds do, by the factor (S-1)/S, and the spread of
a few is itself uncertain: their deviations are widened by the factor's inverse and to Student's quantile. With one seed
only things are drawn, and the interval says nothing of other seeds. Draws are chance, too: where other draws could move
the interval's end over zero, by one standard error of that end, the difference counts as not told.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from app.bench.figures import figures_of
from app.bench.results import Cell, SliceRun
from app.desk.errors import AppError
from model_updates.gate.bootstrap import Bootstrap

DRAWS = 2000
LEVEL = 0.95
ZERO = "not distinguishable"
FEWEST_SEEDS = 3
FIGURES = ("r1", "r10", "bwt", "learned")
"""What is known of every query, so that two strategies can be paired by it; see `app.bench.figures`."""
SIX = "rm"
"""So is this, but in cells of before 2026-11-26."""

FloatArray = NDArray[np.float64]
_NORMAL = 1.960  # quantile 97.5 % of the normal distribution
_BLOCK = 2000  # so many draws of things are in memory at once


class NotComparable(AppError):
    """Two cells did not answer the same queries."""


@dataclass(frozen=True)
class Criterion:
    """What two strategies are compared by."""

    kind: str  # "trained", "held-out" or "unseen"
    view: str  # "told" or "searched"
    figure: str  # one of `FIGURES`, or `SIX`

    @property
    def name(self) -> str:
        """As `figures_of` calls it."""
        return f"{self.kind}/{self.view}/{self.figure}"


@dataclass(frozen=True)
class PairedDifference:
    """One strategy's figure less another's, in points."""

    mean: float  # over seeds
    low: float  # of the 95 % interval
    high: float  # of the 95 % interval
    seeds: tuple[int, ...]  # that both were run with
    things: int  # that were drawn; 0 where the interval is over seeds alone
    p: float = 1.0  # two-sided, of no difference: twice the share of draws on the other side of zero
    error: float = 0.0  # standard error, in points, of the end that is nearer to zero, over other draws

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero, by more than other draws could move its end."""
        return self.low > self.error or self.high < -self.error

    @property
    def words(self) -> str:
        """Higher, lower, or that it cannot be told."""
        if not self.is_clear:
            return ZERO
        return "higher" if self.low > 0 else "lower"

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        return {
            "mean": round(self.mean, 3),
            "low": round(self.low, 3) if math.isfinite(self.low) else None,
            "high": round(self.high, 3) if math.isfinite(self.high) else None,
            "seeds": list(self.seeds),
            "things": self.things,
            "p": float(f"{self.p:.2g}"),
            "words": self.words,
        }


Counts = NDArray[np.int64]
_Slice = tuple[Counts, FloatArray, FloatArray]
"""Of one slice with one seed: its things, what each gained in all, and how many queries ask for it."""


def difference(
    ours: Sequence[Cell], theirs: Sequence[Cell], measure: Criterion, *, draws: int = DRAWS
) -> PairedDifference | None:
    """Returns ours less theirs, paired per query and per seed; None where no seed or no slice is common.

    Raises:
        NotComparable: the two answered other queries.
    """
    other = {cell.seed: cell for cell in theirs}
    both = [cell for cell in ours if cell.seed in other]
    named = _things(both)
    pairs = {
        cell.seed: _paired(cell, other[cell.seed], measure, things)
        for cell, things in zip(both, named, strict=True)
    }
    pairs = {seed: slices for seed, slices in pairs.items() if slices}
    if not pairs:
        return None
    things = np.unique(np.concatenate([own for slices in pairs.values() for own, _, _ in slices]))
    rows = [_resampled(slices, things, draws) for slices in pairs.values()]
    means = (np.stack([row.means for row in rows]) * _seed_weights(len(rows), draws)).sum(axis=0)
    whole = Bootstrap(100 * float(np.mean([row.difference for row in rows])), 100 * means)
    beyond = min(int((means <= 0).sum()), int((means >= 0).sum()))
    return PairedDifference(
        whole.difference,
        *whole.interval(LEVEL),
        tuple(sorted(pairs)),
        len(things),
        min(1.0, 2 * (beyond + 1) / (draws + 1)),
        _error_of_end(whole),
    )


def is_paired(cells: Sequence[Cell], figure: str) -> bool:
    """Whether cells know a figure of every query, so that things are drawn; else they are compared over seeds alone."""
    return figure in FIGURES or (
        figure == SIX and all(run.six is not None for cell in cells for run in cell.slices)
    )


def _error_of_end(whole: Bootstrap) -> float:
    """Returns the standard error of the interval's end nearer to zero: half of what as many draws leave open there."""
    tail = (1 - LEVEL) / 2
    at = tail if whole.difference > 0 else 1 - tail
    off = math.sqrt(tail * (1 - tail) / len(whole.means))
    low, high = np.quantile(whole.means, [max(0.0, at - off), min(1.0, at + off)])
    return float(high - low) / 2


def student(freedom: int) -> float:
    """Returns the quantile 97.5 % of Student's t."""
    return float(stdtrit(freedom, 0.975))


def seed_difference(
    ours: Sequence[Cell], theirs: Sequence[Cell], figure: str, other: str = ""
) -> PairedDifference | None:
    """Returns ours less theirs of a figure that is known per seed alone, with Student's interval over seeds.

    Two seeds say next to nothing of their spread, and one nothing; the interval is the whole line then. `figure` is a
    name in `figures_of`, and `other` the one of theirs where it differs.
    """
    mine = {cell.seed: figures_of(cell).get(figure) for cell in ours}
    counterpart = {cell.seed: figures_of(cell).get(other or figure) for cell in theirs}
    gained = {
        seed: value - against
        for seed, value in mine.items()
        if value is not None and (against := counterpart.get(seed)) is not None
    }
    if not gained:
        return None
    values, freedom = np.asarray(list(gained.values())), len(gained) - 1
    mean, half, p = float(values.mean()), math.inf, 1.0
    if len(values) >= FEWEST_SEEDS:
        error = float(values.std(ddof=1)) / math.sqrt(len(values))
        half = student(freedom) * error
        p = 2 * float(stdtr(freedom, -abs(mean) / error)) if error else float(mean == 0)
    return PairedDifference(mean, mean - half, mean + half, tuple(sorted(gained)), 0, p)


def _paired(ours: Cell, theirs: Cell, measure: Criterion, named: Counts) -> list[_Slice]:
    mine, other = _measured(ours, measure), _measured(theirs, measure)
    if mine.keys() != other.keys():
        raise NotComparable(
            f"{ours.strategy} and {theirs.strategy}, seed {ours.seed} of {ours.sequence}, were not asked the same "
            f"captions ({len(mine.keys() & other.keys())} of {len(mine)} and {len(other)} slices agree). Delete "
            "the older cells and run them again on the home as it is now."
        )
    slices = []
    for digest, run in mine.items():
        if not np.array_equal(run.clusters, other[digest].clusters):
            raise NotComparable(
                f"{ours.strategy} and {theirs.strategy}, seed {ours.seed} of {ours.sequence}, count the things of "
                f"{run.language} {run.domain} differently. Delete the older cells and run them again."
            )
        gained = _scores(run, measure) - _scores(other[digest], measure)
        things, place = np.unique(run.clusters, return_inverse=True)
        sizes = np.bincount(place).astype(np.float64)
        sums = np.bincount(place, weights=gained).astype(np.float64)
        slices.append((named[things], sums, sizes))
    return slices


def _measured(cell: Cell, measure: Criterion) -> Mapping[str, SliceRun]:
    """Returns the slices that a measure is about, by their digests."""
    last = len(cell.steps)
    return {
        run.digest: run
        for run in cell.slices
        if (run.unseen if measure.kind == "unseen" else run.kind == measure.kind and not run.unseen)
        and (measure.figure != "bwt" or run.since < last)
        and (measure.figure != "learned" or run.since > 0)
    }


def _scores(run: SliceRun, measure: Criterion) -> FloatArray:
    view = measure.view
    if measure.figure == "bwt":
        return run.last[view].astype(np.float64) - run.learned[view].astype(np.float64)
    if measure.figure == SIX and run.six is not None:
        return run.six / 6
    bits = {"r1": run.last, "r10": run.last_ten, "learned": run.learned}[measure.figure]
    return bits[view].astype(np.float64)


def _things(cells: Sequence[Cell]) -> list[Counts]:
    """Returns for each cell a number for each of its clusters that means the same thing in every one.

    Clusters are numbered within a cell, but the same captions have the same digest in every cell: a thing is known by
    its first place in the first slice that all of them share.
    """
    shared = set.intersection(*({run.digest for run in cell.slices} for cell in cells)) if cells else set()
    starts: dict[str, int] = {}
    end, numbered = 0, []
    for cell in cells:
        named = np.full(1 + max(int(run.clusters.max()) for run in cell.slices), -1)
        for run in sorted(cell.slices, key=lambda run: (run.digest not in shared, run.digest)):
            if run.digest not in starts:
                starts[run.digest], end = end, end + len(run.clusters)
            things, places = np.unique(run.clusters, return_index=True)
            is_new = named[things] < 0
            named[things[is_new]] = starts[run.digest] + places[is_new]
        numbered.append(named)
    return numbered


def _resampled(slices: Sequence[_Slice], things: Counts, draws: int) -> Bootstrap:
    """Returns one seed's mean over slices, and the same in every draw of things; fractions."""
    together: dict[bytes, tuple[FloatArray, FloatArray, int]] = {}
    for own, sums, sizes in slices:
        row = np.zeros((2, len(things)))
        row[:, np.searchsorted(things, own)] = sums, sizes
        gained, asked, count = together.get(row[1].tobytes(), (np.zeros(len(things)), row[1], 0))
        together[row[1].tobytes()] = (gained + row[0], asked, count + 1)
    # Slices that ask for the same things have the same denominators, so that their sum is drawn instead of each.
    # What is added are whole numbers, which single precision holds exactly.
    gains, asks = (
        np.stack([found[part] for found in together.values()]).astype(np.float32) for part in (0, 1)
    )
    counts = np.asarray([count for _, _, count in together.values()], dtype=np.float64)
    means = []
    for block in range(math.ceil(draws / _BLOCK)):
        weights = _drawn(len(things), min(_BLOCK, draws - block * _BLOCK), block)
        drawn, counted = gains @ weights, asks @ weights
        # A draw may miss every thing of a small slice; that slice is then no part of its mean.
        with_queries = counted > 0
        rates = np.divide(drawn, counted, out=np.zeros_like(drawn), where=with_queries)
        means.append(rates.sum(axis=0) / np.maximum(counts @ with_queries, 1))
    difference = float((gains.sum(axis=1) / asks.sum(axis=1)).sum() / counts.sum())
    return Bootstrap(difference, np.concatenate(means))


@lru_cache(maxsize=16)
def _drawn(things: int, draws: int, block: int) -> NDArray[np.float32]:
    """Returns how often each draw of a block takes each thing, (things, draws); the same every time."""
    taken = (
        np.random.default_rng([0, block]).integers(things, size=(draws, things))
        + things * np.arange(draws)[:, None]
    )
    counts = np.bincount(taken.ravel(), minlength=things * draws).reshape(draws, things)
    return np.ascontiguousarray(counts.T, dtype=np.float32)


def _seed_weights(seeds: int, draws: int) -> FloatArray:
    """Returns the weight of each seed in each draw, (seeds, draws); a draw's add up to 1.

    A few seeds drawn with replacement spread too little, and a normal's quantile is too small for their mean: the
    deviations are widened by both, so that seeds alone give an interval about as wide as Student's.
    """
    if seeds == 1:
        return np.ones((1, draws))
    counts = np.random.default_rng(1).multinomial(seeds, np.full(seeds, 1 / seeds), size=draws).T / seeds
    widened = math.sqrt(seeds / (seeds - 1)) * student(seeds - 1) / _NORMAL
    return np.asarray(1 / seeds + widened * (counts - 1 / seeds), dtype=np.float64)
