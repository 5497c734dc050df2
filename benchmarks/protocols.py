"""Runs the five protocols of docs/results/strategies/: homes from the evaluation data, then every sequence on them.

    python benchmarks/protocols.py --data ../shared/data --work WORK [--only languages] [--processes 2]

Homes are made once in the work folder (`protocol_data.py` says what is in them). Finished cells are kept
under benchmarks/results/, a file for each sequence, and are not run again, so the whole set can be stopped, and go on
elsewhere. `--quick` runs small sequences of their own within ten minutes on two cores. What a claim of `orderings.toml`
or a promise of `evergreen` compares runs with as many seeds as that asks for; the other rows of a table are context and
run with the first alone, which saves a third of the time; `--every-seed` runs all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from evergreen_bars import promised
from orderings_claims import read_claims
from protocol_data import ALONE, PHOTO, PHOTO_TUNING, TUNING, home_of
from protocol_data import QUICK as QUICK_HOME

from app.bench.grid import CellTask, missing, run_grid
from app.bench.sequence import BenchSequence, StrategyRun, read_sequence
from app.home.settings import Settings

HERE = Path(__file__).parent
SEQUENCES = HERE / "sequences"
CLAIMS = HERE / "orderings.toml"
CELLS = HERE / "results"
QUICK, TUNE = "quick-", "tune-"


def main() -> int:
    """Runs what is not finished, and says how many cells failed."""
    asked = _arguments()
    sequences = _sequences(asked.only, quick=asked.quick)
    settings = {name: home_of(name, asked.data, asked.work, say) for name in _homes(sequences)}
    tasks = [task for found in sequences for task in _tasks(found, settings, asked)]
    left = missing(tasks)
    say(f"{len(tasks)} cells, {len(tasks) - len(left)} of them finished before")
    failed = run_grid(left, processes=asked.processes, say=say)
    for one in failed:
        say(f"failed: {one.name}: {one.reason}")
    return 1 if failed else 0


def planned(
    sequence: BenchSequence, claims: Path = CLAIMS, *, every_seed: bool = False
) -> list[tuple[StrategyRun, int]]:
    """Returns which strategy runs with which seed: with as many as what compares it asks for, else with the first."""
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
        for compared, seed in planned(sequence, every_seed=asked.every_seed)
        if not asked.strategy or compared.name in asked.strategy or compared.label in asked.strategy
        if asked.seeds is None or seed < asked.seeds
    ]


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
    parser.add_argument("--seeds", type=int, default=None, help="only the first so many")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
