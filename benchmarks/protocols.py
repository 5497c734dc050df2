"""Runs the seven protocols of docs/results/strategies/: homes from the evaluation data, then every sequence on them.

    python benchmarks/protocols.py --data ../shared/data --work WORK [--only languages] [--processes 2]

Homes are made once in the work folder (`protocol_data.py` says what is in them). Finished cells are kept
under benchmarks/results/, a file for each sequence, and are not run again, so the whole set can be stopped, and go on
elsewhere. `--quick` runs small sequences of their own within ten minutes on two cores. What a claim of `orderings.toml`
or a promise of `evergreen` compares runs with as many seeds as that asks for; the other rows of a table are context and
run with the first alone, which saves a third of the time; `--every-seed` runs all, `--seeds 8` the first eight of what
`--only` and `--strategy` name, also beyond what is planned.

    python benchmarks/protocols.py --data ../shared/data --work WORK --verify "domains: c-clip, seed 0"

runs a finished cell again, on a home that has the chunks that it needs, and prints what differs: figures, single
answers, commit, data and versions. The cell is not kept; it exits with 1 where answers differ.

    python benchmarks/protocols.py --data ../shared/data --work WORK --outdated --remake 3600

lists, for each sequence, the cells that were made by another code than today's (`app/bench/sources.py`) and the
processor time that they took, and makes the cheapest of them again, as many as took an hour; those made again are
current then, so that a later call goes on with the rest. Without `--remake` it lists alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from evergreen_bars import promised
from orderings_claims import read_claims
from protocol_data import ALONE, PAINTED, PHOTO, PHOTO_TUNING, TUNING, home_of
from protocol_data import QUICK as QUICK_HOME

from app.bench.figures import figures_of
from app.bench.grid import CellTask, missing, run_grid
from app.bench.results import VIEWS, Cell, read_cells
from app.bench.sequence import LIVE, BenchSequence, StrategyRun, read_sequence
from app.bench.sources import sources_of
from app.home.settings import Settings

HERE = Path(__file__).parent
SEQUENCES = HERE / "sequences"
CLAIMS = HERE / "orderings.toml"
CELLS = HERE / "results"
QUICK, TUNE = "quick-", "tune-"

Costly = TypeVar("Costly", bound=tuple[Any, ...])


def main() -> int:
    """Runs what is not finished, and says how many cells failed."""
    asked = _arguments()
    if asked.verify:
        return verify(asked)
    if asked.outdated:
        return remake(asked)
    sequences = [with_seeds(one, most=asked.seeds or 0) for one in _sequences(asked.only, quick=asked.quick)]
    settings = {name: home_of(name, asked.data, asked.work, say) for name in _homes(sequences)}
    tasks = [task for found in sequences for task in _tasks(found, settings, asked)]
    left = missing(tasks)
    say(f"{len(tasks)} cells, {len(tasks) - len(left)} of them finished before")
    failed = run_grid(left, processes=asked.processes, say=say)
    for one in failed:
        say(f"failed: {one.name}: {one.reason}")
    return 1 if failed else 0


def with_seeds(sequence: BenchSequence, claims: Path = CLAIMS, most: int = 0) -> BenchSequence:
    """Returns the sequence with as many seeds as a claim of a file about it asks for, or `most`."""
    own = [
        claim.seeds
        for claim in read_claims(claims)
        for side in (claim.a, claim.b)
        if side is not None and side.sequence == sequence.name
    ]
    more = range(len(sequence.seeds), max([most, *own], default=0))
    return sequence.model_copy(update={"seeds": (*sequence.seeds, *more)})


def planned(
    sequence: BenchSequence, claims: Path = CLAIMS, *, every_seed: bool = False, most: int | None = None
) -> list[tuple[StrategyRun, int]]:
    """Returns which strategy runs with which seed: with as many as what compares it asks for, else with the first.

    `most` says how many run of each instead.
    """
    if most is not None:
        return [(compared, seed) for compared in sequence.strategies for seed in sequence.seeds[:most]]
    asked = {one.label: promised(sequence.name, one.label) for one in sequence.strategies}
    for claim in read_claims(claims):
        for side in (claim.a, claim.b):
            if side is not None and side.sequence == sequence.name:
                asked[side.label] = max(claim.seeds, asked.get(side.label, 1))
    return [
        (compared, seed)
        for compared in sequence.strategies
        for seed in (sequence.seeds if every_seed else sequence.seeds[: asked[compared.label]])
    ]


def _tasks(
    sequence: BenchSequence, settings: dict[str, Settings], asked: argparse.Namespace
) -> list[CellTask]:
    return [
        CellTask(settings[home_for(sequence)], sequence, compared, seed, asked.cells)
        for compared, seed in planned(sequence, every_seed=asked.every_seed, most=asked.seeds)
        if not asked.strategy or compared.name in asked.strategy or compared.label in asked.strategy
    ]


def verify(asked: argparse.Namespace) -> int:
    """Runs one finished cell again and says what differs."""
    name, _, rest = asked.verify.partition(": ")
    label, _, seed = rest.rpartition(", seed ")
    kept = read_cells(asked.cells, name).get((label, int(seed) if seed.isdigit() else -1))
    if kept is None:
        say(f'No finished cell is called {asked.verify!r}; one is "domains: c-clip, seed 0".')
        return 2
    sequence = with_seeds(read_sequence(SEQUENCES / f"{name}.toml"), most=kept.seed + 1)
    compared = next((one for one in sequence.strategies if one.label == label), None)
    if compared is None:
        say(f"{name}.toml has no strategy {label!r} any more.")
        return 2
    asked.work.mkdir(parents=True, exist_ok=True)
    settings = home_of(home_for(sequence), asked.data, asked.work, say, needed(sequence, compared))
    with tempfile.TemporaryDirectory(dir=asked.work) as place:
        task = CellTask(settings, sequence, compared, kept.seed, Path(place))
        if failed := run_grid([task], processes=1, say=say):
            say(failed[0].reason)
            return 2
        again = read_cells(task.folder, name)[label, kept.seed]
    for line in differences(kept, again):
        say(line)
    return int(answers_that_differ(kept, again) > 0)


def remake(asked: argparse.Namespace) -> int:
    """Lists the cells of another code, and makes the cheapest of them again within the seconds that are asked for."""
    old: list[tuple[float, BenchSequence, StrategyRun, int]] = []
    for sequence in (with_seeds(one) for one in _sequences(asked.only, quick=asked.quick)):
        kept = read_cells(asked.cells, sequence.name)
        own = outdated(sequence, kept)
        seconds = sum(one[0] for one in own)
        say(f"{sequence.name}: {len(own)} of {len(kept)} cells, {seconds:.0f} s of processor time")
        old += [(cost, sequence, compared, seed) for cost, compared, seed in own]
    say(f"together: {len(old)} cells, {sum(one[0] for one in old) / 3600:.1f} h")
    if not asked.remake:
        return 0
    chosen = within(sorted(old, key=itemgetter(0)), asked.remake)
    homes = {name: home_of(name, asked.data, asked.work, say) for name in _homes([one[1] for one in chosen])}
    tasks = [
        CellTask(homes[home_for(of)], of, compared, seed, asked.cells) for _, of, compared, seed in chosen
    ]
    failed = run_grid(tasks, processes=asked.processes, say=say)
    return int(bool(failed))


def outdated(
    sequence: BenchSequence, kept: Mapping[tuple[str, int], Cell]
) -> list[tuple[float, StrategyRun, int]]:
    """Returns the cells of a sequence that another code made, and the processor time that each took, seconds."""
    compared = {one.label: one for one in sequence.strategies}
    return [
        (cell_seconds(cell), compared[label], seed)
        for (label, seed), cell in kept.items()
        if label in compared
        and seed in sequence.seeds
        and cell.made.get("sources") != sources_of(compared[label].name)
    ]


def cell_seconds(cell: Cell) -> float:
    """Returns the processor time of a cell: with measuring where that was recorded, else of its updates."""
    return float(cell.made.get("cpu_seconds") or sum(step["cpu_seconds"] for step in cell.steps))


def within(cells: Sequence[Costly], seconds: float) -> list[Costly]:
    """Returns the first of cells, each with its seconds at first, that together take no longer."""
    ends = accumulate(one[0] for one in cells)
    return [one for one, end in zip(cells, ends, strict=True) if end <= seconds]


def needed(sequence: BenchSequence, compared: StrategyRun) -> frozenset[str] | None:
    """Returns the chunks that a cell reads; None where a part of its sequence names none and so reads all."""
    choices = [sequence.filled(one) for one in (sequence.base, sequence.unseen, sequence.probe) if one]
    choices += [sequence.filled(step) for step in sequence.steps]
    if not all(one.chunks for one in choices):
        return None
    options = [value for value in sequence.options_of(compared).values() if isinstance(value, str)]
    return frozenset([*(name for one in choices for name in one.chunks), *options])


def differences(kept: Cell, again: Cell) -> list[str]:
    """Returns what differs between a cell and the same one run again, a line each."""
    lines = [f"{answers_that_differ(kept, again)} answers of {_answers(kept)} differ after the last step."]
    figures = figures_of(kept), figures_of(again)
    for name in ("trained/told/r1", "held-out/told/r1", "trained/searched/r1", "trained/told/forgetting"):
        old, new = (found.get(name) for found in figures)
        if old is not None and new is not None:
            lines.append(f"{name}: {old:.2f} kept, {new:.2f} again, {new - old:+.2f}")
    for name in ("commit", "data", "python", "torch", "versions"):
        old, new = (one.made.get(name, "not recorded") for one in (kept, again))
        lines += [f"{name}: {old} kept, {new} again"] if old != new else []
    return lines


def answers_that_differ(kept: Cell, again: Cell) -> int:
    """Returns how many queries one of two cells answered and the other did not; all where they were asked others."""
    other = {run.digest: run for run in again.slices}
    if {run.digest for run in kept.slices} != other.keys():
        return _answers(kept)
    return sum(
        int((run.last[view] != other[run.digest].last[view]).sum()) for run in kept.slices for view in VIEWS
    )


def _answers(cell: Cell) -> int:
    return sum(len(VIEWS) * len(run.clusters) for run in cell.slices)


def _sequences(only: list[str] | None, *, quick: bool) -> list[BenchSequence]:
    paths = sorted(SEQUENCES.glob("*.toml"))
    found = [read_sequence(path) for path in paths if not path.name.startswith("tuned")]
    named = [one for one in found if one.name in only] if only else found
    if only:
        return named
    return [one for one in named if one.name.startswith(QUICK) == quick and not one.name.startswith(TUNE)]


def _homes(sequences: list[BenchSequence]) -> list[str]:
    return sorted({home_for(sequence) for sequence in sequences})


def home_for(sequence: BenchSequence) -> str:
    """Returns the home that a sequence runs on."""
    if sequence.encoder == LIVE:
        return PAINTED
    if sequence.name.endswith("-alone"):
        return ALONE
    if sequence.name.startswith(TUNE):
        return PHOTO_TUNING if sequence.encoder == PHOTO else TUNING
    if sequence.name.startswith(QUICK):
        return QUICK_HOME
    return "photo" if sequence.encoder == PHOTO else "tiny"


def say(line: str) -> None:
    """Prints a line with the time."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument("--work", type=Path, required=True, help="where homes are made")
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--only", nargs="*", help="names of sequences")
    parser.add_argument("--strategy", nargs="*", help="names or labels of strategies")
    parser.add_argument("--every-seed", action="store_true", help="also of rows that no claim compares")
    parser.add_argument(
        "--seeds", type=int, default=None, help="the first so many, instead of what is planned"
    )
    parser.add_argument("--verify", metavar="CELL", help="run one finished cell again and compare")
    parser.add_argument("--outdated", action="store_true", help="list what another code made")
    parser.add_argument(
        "--remake", metavar="SECONDS", type=float, default=0.0, help="and make so much again, cheapest first"
    )
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
