"""From finished cells to figures: what was learned, what was forgotten, what it cost; means over seeds.

`a[j][i]` is the recall of slice i after step j, counted from the step that taught it (0 for the base, which is known
from the start). Averages are over slices, each once, whatever the number of its queries. Slices that no step teaches
are reported apart and are part of no average; the base is part of every one unless a figure says otherwise.

    average at the end     AR = mean_i a[T][i]
    forgetting             F  = mean_{i taught before T} ( max_{since(i) <= k < T} a[k][i] - a[T][i] )
    just after each step   L  = mean_{i no base} a[since(i)][i]
    backward transfer      B  = mean_{i taught before T} ( a[T][i] - a[since(i)][i] )

With one slice a step these are `average_recall`, `forgetting` and `bwt` of `model_updates/evaluation.py`; a step of a
sequence may bring several slices or none. Where galleries grow with the steps, recall falls without forgetting, too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.bench.material import KINDS
from app.bench.results import TOLD, VIEWS, Cell, SliceRun
from model_updates.evaluation import pd

FIRST, TENTH, MEAN_OF_SIX = "t2i_r1", "t2i_r10", "mean_recall"
MAIN = "trained/told/r1"
"""What tables are sorted by, and what the best strategy is best at."""

RESEGMENTED = "resegmented"
"""The share of earlier captions that a grown vocabulary cuts otherwise; only some steps measure it."""


@dataclass(frozen=True)
class Spread:
    """One figure over the seeds that have it."""

    by_seed: Mapping[int, float]  # its values, by seed

    @property
    def mean(self) -> float:
        """Over seeds."""
        return math.fsum(self.by_seed.values()) / len(self.by_seed)

    @property
    def half_range(self) -> float | None:
        """Half of the distance from the lowest to the highest; None with one seed."""
        values = self.by_seed.values()
        return (max(values) - min(values)) / 2 if len(values) > 1 else None

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        by_seed = {str(seed): round(value, 3) for seed, value in self.by_seed.items()}
        half = None if self.half_range is None else round(self.half_range, 3)
        return {"mean": round(self.mean, 3), "half_range": half, "by_seed": by_seed}


@dataclass(frozen=True)
class Curves:
    """How recall went on from step to step, text to image, R@1, percent; step 0 is before the first update."""

    average: tuple[float | None, ...]  # of the slices known by then; None before there is one
    first: tuple[float | None, ...]  # of those that were known first
    of: str  # what those are


def figures_of(cell: Cell) -> dict[str, float]:
    """Returns every figure of a cell by its name, `kind/view/figure` or a cost's; what it cannot have is left out."""
    found: dict[str, float] = {}
    for kind in KINDS:
        slices = _of_kind(cell, kind)
        for view in VIEWS:
            place = f"{kind}/{view}"
            found |= {f"{place}/{name}": value for name, value in _of_slices(slices, cell, view).items()}
    unseen = [run for run in cell.slices if run.unseen]
    for view in VIEWS:
        for name, metric in (("r1", FIRST), ("r10", TENTH)):
            before = _average(run.recalls[view][0].get(metric) for run in unseen)
            after = _average(run.recalls[view][-1].get(metric) for run in unseen)
            if before is not None and after is not None:
                found[f"unseen/{view}/{name}"] = after
                found[f"unseen/{view}/{name}_drop"] = before - after
    if cell.probe:
        found |= {"probe": cell.probe[-1], "probe_drop": pd(cell.probe[0], cell.probe[-1])}
    return found | _costs(cell) | drift_of(cell)


def _of_slices(slices: Sequence[SliceRun], cell: Cell, view: str) -> dict[str, float]:
    last = len(cell.steps)
    taught = [run for run in slices if run.since > 0]
    earlier = [series(run, last, view) for run in slices if run.since < last]
    found = {
        "r1": _average(run.recalls[view][-1].get(FIRST) for run in slices),
        "r10": _average(run.recalls[view][-1].get(TENTH) for run in slices),
        "r1_taught": _average(run.recalls[view][-1].get(FIRST) for run in taught),
        "learned": _average(series(run, last, view)[0] for run in taught),
        "forgetting": _average(max(one[:-1]) - one[-1] for one in earlier),
        "bwt": _average(one[-1] - one[0] for one in earlier),
    }
    if view == TOLD:
        found["rm"] = _average(run.recalls[view][-1].get(MEAN_OF_SIX) for run in slices)
    return {name: value for name, value in found.items() if value is not None}


def series(run: SliceRun, steps: int, view: str, metric: str = FIRST) -> list[float]:
    """Returns a slice's recall after the step that taught it and after every later one.

    A reference that can read every slice before its step is looked up from the start; that part is left out.
    """
    values = [found[metric] for found in run.recalls[view]]
    return values[-(steps - run.since + 1) :]


def _costs(cell: Cell) -> dict[str, float]:
    steps = cell.steps
    stored = [step["stored_bytes"] for step in steps if not step["refused"]]
    cut = [step[RESEGMENTED] for step in steps if step.get(RESEGMENTED) is not None]
    return {
        "cpu_seconds": math.fsum(step["cpu_seconds"] for step in steps),
        "cpu_seconds_last": float(steps[-1]["cpu_seconds"]) if steps else 0.0,
        "seconds": math.fsum(step["seconds"] for step in steps),
        "peak_bytes": float(cell.peak_bytes),
        "stored_bytes": float(stored[-1]) if stored else 0.0,
        "re_embedded": float(sum(step["re_embedded"] for step in steps)),
        "image_forwards": float(sum(step["image_forwards"] for step in steps)),
        "refused": float(sum(bool(step["refused"]) for step in steps)),
        **({RESEGMENTED: float(cut[-1])} if cut else {}),
    }


def drift_of(cell: Cell) -> dict[str, float]:
    """Returns the mean over steps of each angle that the steps have under `drift`, by `drift/name`; degrees."""
    found: dict[str, list[float]] = {}
    for step in cell.steps:
        for name, degrees in (step.get("drift") or {}).items():
            found.setdefault(f"drift/{name}", []).append(degrees)
    return {name: math.fsum(values) / len(values) for name, values in found.items()}


def by_strategy(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Returns cells by their strategy's label, in the order they come; each strategy's by seed."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        found.setdefault(cell.strategy, []).append(cell)
    return {name: sorted(own, key=lambda cell: cell.seed) for name, own in found.items()}


def over_seeds(cells: Sequence[Cell]) -> dict[str, Spread]:
    """Returns every figure of one strategy's cells over their seeds."""
    each = {cell.seed: figures_of(cell) for cell in cells}
    names = dict.fromkeys(name for figures in each.values() for name in figures)
    return {
        name: Spread({seed: figures[name] for seed, figures in each.items() if name in figures})
        for name in names
    }


def curves_of(cells: Sequence[Cell], kind: str, view: str) -> Curves | None:
    """Returns one strategy's curves, the mean over seeds step by step; None without a slice of the kind."""
    each = [found for cell in cells if (found := _curves(cell, kind, view)) is not None]
    if not each:
        return None
    length = min(len(one.average) for one in each)
    names = dict.fromkeys(one.of for one in each)
    return Curves(
        tuple(_average(one.average[step] for one in each) for step in range(length)),
        tuple(_average(one.first[step] for one in each) for step in range(length)),
        next(iter(names)) if len(names) == 1 else "the first of each order",
    )


def _curves(cell: Cell, kind: str, view: str) -> Curves | None:
    slices = _of_kind(cell, kind)
    if not slices:
        return None
    steps = len(cell.steps)
    start = min(run.since for run in slices)
    rows = [(run.since, series(run, steps, view)) for run in slices]

    def mean_after(step: int, until: int) -> float | None:
        return _average(values[step - since] for since, values in rows if since <= min(step, until))

    first = [slice_name(run) for run in slices if run.since == start]
    return Curves(
        tuple(mean_after(step, step) for step in range(steps + 1)),
        tuple(mean_after(step, start) for step in range(steps + 1)),
        first[0] if len(first) == 1 else f"the first {len(first)} slices",
    )


def matrix_of(cells: Sequence[Cell], kind: str) -> tuple[list[str], list[list[float | None]]]:
    """Returns the slices of a kind in the order they were taught and, for each, its recall after every step.

    Mean over the seeds that took the steps in the first one's order; None before a slice was known.
    """
    own = first_order(cells)
    steps = len(own[0].steps)
    rows: list[list[float | None]] = []
    each = [_of_kind(cell, kind) for cell in own]
    for runs in zip(*each, strict=True):
        values = [series(run, steps, TOLD) for run in runs]
        means = [math.fsum(at) / len(at) for at in zip(*values, strict=True)]
        rows.append([None] * (steps + 1 - len(means)) + means)
    return short_names(each[0]), rows


def short_names(runs: Sequence[SliceRun]) -> list[str]:
    """Returns a name for each slice without what all have in common; alike ones are numbered by their steps."""
    one_domain = len({run.domain for run in runs}) == 1
    one_language = len({run.language for run in runs}) == 1
    if one_domain and not one_language:
        names = [run.language for run in runs]
    else:
        names = [run.domain if one_language else slice_name(run) for run in runs]
    return [
        f"{name}, {run.since}" if names.count(name) > 1 else name
        for name, run in zip(names, runs, strict=True)
    ]


def first_order(cells: Sequence[Cell]) -> list[Cell]:
    """Returns the cells that took the steps in the order of the first."""
    return [cell for cell in cells if _order(cell) == _order(cells[0])]


def _order(cell: Cell) -> list[tuple[str, str, int]]:
    return sorted((slice_name(run), run.kind, run.since) for run in cell.slices)


def _of_kind(cell: Cell, kind: str) -> list[SliceRun]:
    known = [run for run in cell.slices if run.kind == kind and not run.unseen]
    return sorted(known, key=lambda run: run.since)


def slice_name(run: SliceRun) -> str:
    """Returns what tables call a slice."""
    return f"{run.language} {run.domain}"


def _average(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
