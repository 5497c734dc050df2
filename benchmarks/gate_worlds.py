"""Made-up homes for the gate: slices whose true levels are known, ranked by versions that differ by chance.

A thing's caption finds its picture at rank 0, among five, among ten, or not: four places. Each version moves some
things by one place, up or down alike, so that two versions differ per caption with a wanted deviation; a true drop
moves things down and keeps them there. What is held out, and how it is looked up, is as in the product: a slice is
measured in its own gallery and among everything (the same things, nearly the same ranks), and 200 things that were
trained on beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from model_updates.evaluation import SliceResult, View
from model_updates.gate.comparison import slice_name
from model_updates.gate.report import GateReport, Policy
from model_updates.gate.rules import Past, judge

PLACES = np.array([0, 3, 7, 50])
"""A rank for each place; the mean of R@1, 5 and 10 falls by a third from one to the next."""
SHARES = (0.5, 0.2, 0.1, 0.2)
MEMORY = 200
GALLERY = 1000
Ranks = NDArray[np.int64]
Levels = NDArray[np.float64]


@dataclass(frozen=True)
class Size:
    """How a home looks.

    Attributes:
        slices: old ones.
        things: held out in each.
        deviation: of a caption's score between two versions.
        memory: things of each that were trained on and are measured too.
        is_mixed: whether slices are measured among everything too.
    """

    slices: int
    things: int = 150
    deviation: float = 0.15
    memory: int = MEMORY
    is_mixed: bool = True


@dataclass
class World:
    """Old slices, and what every version that was live truly loses on them (points below the first, per slice)."""

    size: Size
    rng: np.random.Generator
    versions: list[dict[tuple[int, View], SliceResult]] = field(default_factory=list)
    losses: list[Levels] = field(default_factory=list)

    def __post_init__(self) -> None:
        counts = {View.OWN: self.size.things, View.MEMORY: self.size.memory}
        self.base = {
            (n, view): (self.rng.choice(4, count, p=SHARES), self.rng.random(count))
            for n in range(self.size.slices)
            for view, count in counts.items()
            if count
        }
        self.go_live(np.zeros(self.size.slices))

    def measure(self, losses: Levels) -> dict[tuple[int, View], SliceResult]:
        """Ranks a new version that truly stands so many points below the first on each slice."""
        measured = {}
        for (n, view), (base, luck) in self.base.items():
            found = self._moved(_lowered(base, luck, float(losses[n]) / self._seen), 1.0)
            measured[n, view] = _result(n, view, found)
            if view is View.OWN and self.size.is_mixed:
                measured[n, View.MIXED] = _result(n, View.MIXED, self._moved(found, 0.1))
        return measured

    def go_live(self, losses: Levels, measured: dict[tuple[int, View], SliceResult] | None = None) -> None:
        """Adds a version to those that were live."""
        self.losses.append(losses)
        self.versions.append(self.measure(losses) if measured is None else measured)

    def judge(
        self, measured: dict[tuple[int, View], SliceResult], *, gain: float = 30.0, attempts: int = 1
    ) -> GateReport:
        """Has the gate judge a candidate that also learned a new slice by so many points."""
        live, earlier = self.versions[-1], self.versions[:-1]
        new, before = self._new_slice(gain)
        past = {
            key: Past(tuple((f"v{n + 1}", version[key]) for n, version in enumerate(earlier))) for key in live
        }
        return judge(
            candidate={**measured, "new": new},
            live={**live, "new": before},
            new_slices={"new"},
            taught_pairs={slice_name(new): 1000},
            canaries=(),
            policy=Policy(),
            past=past,
            attempts=attempts,
        )

    def _new_slice(self, gain: float) -> tuple[SliceResult, SliceResult]:
        count = self.size.things
        before = np.full(count, 3) - (self.rng.random(count) < 0.1)
        after = before - (self.rng.random(count) < 3 * gain / 100)
        return (_result(-1, View.OWN, self._moved(np.clip(place, 0, 3), 1.0)) for place in (after, before))  # type: ignore[return-value]

    @property
    def _seen(self) -> float:
        """The share of a fall that is seen: things at either end step back, and those that fell stand there."""
        first, second, third, _ = SHARES
        chance = self.size.deviation**2 * 9 / 2
        return 1.0 - chance * (first + third) / (first + second + third)

    def _moved(self, places: Ranks, share: float) -> Ranks:
        """Moves things by one place, up or down alike; two versions then differ by `deviation` a caption."""
        chance = share * self.size.deviation**2 * 9 / 2
        step = np.where(self.rng.random(len(places)) < chance, self.rng.choice((-1, 1), len(places)), 0)
        # A step beyond the first or last place goes the other way: a thing moves as often wherever it stands.
        step = np.where((places + step < 0) | (places + step > 3), -step, step)
        return np.asarray(places + step)


def _lowered(base: Ranks, luck: NDArray[np.float64], loss: float) -> Ranks:
    """Things that lose a place for good: those of the least luck, so that a loss of 4 points contains one of 2."""
    can_fall = base < 3
    share = 3 * loss / 100 / max(1e-9, can_fall.mean())
    return np.asarray(base + (can_fall & (luck < share)))


def _result(number: int, view: View, places: Ranks) -> SliceResult:
    positions = np.arange(len(places))
    ids = tuple(f"{view}{number}-{n}" if view is View.MEMORY else f"{number}-{n}" for n in positions)
    padding = tuple(f"other-{n}" for n in range(GALLERY - len(ids)))
    empty = np.empty(0, dtype=np.int64)
    return SliceResult("xx", f"d{number}", ids + padding, positions, PLACES[places], empty, empty, view)


def after(size: Size, promotions: int, rng: np.random.Generator) -> World:
    """Returns a home after so many harmless promotions."""
    world = World(size, rng)
    for _ in range(promotions):
        world.go_live(np.zeros(size.slices))
    return world


def french(losses: Levels) -> Levels:
    """The attack that moves one slice alone: by 2 points a step."""
    moved: Levels = losses + 2.0 * (np.arange(len(losses)) == 0)
    return moved


def least_protected(losses: Levels) -> Levels:
    """The attack that moves whatever has most room: by 1.5 points a step."""
    moved: Levels = losses + 1.5 * (np.arange(len(losses)) == int(np.argmin(losses)))
    return moved


def worst_stand(losses: Sequence[Levels]) -> tuple[float, float]:
    """Returns how far below its high water a slice, and the pool, ever stood."""
    table = np.stack(losses)
    slices = (table - np.minimum.accumulate(table, axis=0)).max()
    pool = table.mean(axis=1)
    return float(slices), float((pool - np.minimum.accumulate(pool)).max())
