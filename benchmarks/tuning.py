"""Tunes every strategy of the protocols alike, on languages and domains that no protocol teaches.

    python benchmarks/tuning.py --data ../shared/data --work WORK

Each strategy gets the same three trials with the same epochs: its default learning rate, a third and three times of
it. Strengths stay what they are by default; the two that were once set on a style which protocols report, c-clip's
merge and displacement, were tried here, too (benchmarks/sequences/tune-strengths.toml). What scores best over all
slices at the end (mean of R@1 and R@10, searched, trained and held-out captions alike) is written to
benchmarks/sequences/tuned.toml, every trial to docs/results/tuning.md. Only what differs from a default is written.
`evergreen` chooses its parts by what a chunk brings and keeps the defaults of each: it is not tuned. What learns from
random weights is tuned apart, from random weights, on scenes in strokes (tune-stream, tuned-scratch.toml).
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from protocol_data import TUNING, home_of
from protocols import CELLS, SEQUENCES, TUNE, say

from app.bench.grid import CellTask, missing, run_grid
from app.bench.matrix import SEARCHED
from app.bench.results import Cell, cell_path, read_cell
from app.bench.sequence import BenchSequence, Compared, read_sequence
from model_updates.encoder import Encoder
from model_updates.opening import open_encoder
from model_updates.options import options_of
from model_updates.references import REFERENCES
from model_updates.strategies import strategy_named

Trials = dict[str, tuple[BenchSequence, list[Compared]]]
"""By strategy where it is tuned, and how."""
REPORT = CELLS.parent / "tuning.md"
TUNED, SCRATCH = "tuned.toml", "tuned-scratch.toml"
"""What the protocols' sequences take options from, for encoders that were trained before and for random weights."""
TIMES = (1.0, 1 / 3, 3.0)
ABOUT = " ".join((__doc__ or "").split("\n\n")[2].split())
HEAD = f"""# Tuning

Written by `python benchmarks/tuning.py --data ../shared/data`. {ABOUT}

| strategy | sequence | trial | score | chosen |
|---|---|---|--:|---|
"""


def main() -> int:
    """Runs the trials that are not finished, chooses and writes."""
    asked = _arguments()
    encoder = open_encoder("perennial-tiny")
    settings = home_of(TUNING, asked.data, asked.work, say)
    tuned = {table: _trials(table, encoder) for table in (TUNED, SCRATCH)}
    tasks = [
        CellTask(settings, sequence, compared, 0, cell_path(asked.cells, sequence.name, compared.label, 0))
        for trials in tuned.values()
        for name, (sequence, tried) in trials.items()
        if (not asked.strategy or name in asked.strategy) and (not asked.only or sequence.name in asked.only)
        for compared in tried
    ]
    left = [] if asked.report_only else missing(tasks)
    say(f"{len(tasks)} trials, {len(tasks) - len(left)} of them finished before")
    failed = run_grid(left, processes=asked.processes, say=say, fresh=False)
    _write(tuned, asked.cells)
    return 1 if failed else 0


def trials_of(name: str, sequence: BenchSequence, encoder: Encoder) -> list[Compared]:
    """Returns a strategy with the options of each of its trials, its defaults first."""
    kind = strategy_named(name)
    strategy = kind(options_of(kind, sequence.defaults.get(name, {})))
    known = {field: getattr(strategy.options, field) for field in strategy.Options.__dataclass_fields__}
    if "learning_rate" not in known:
        return [Compared(name=name)]
    rate = float(strategy.options.learning_rate or strategy.schedule(encoder).learning_rate)
    rates = [{} if times == 1 else {"learning_rate": float(f"{rate * times:.3g}")} for times in TIMES]
    return [Compared(name=name, options=options) for options in rates]


def score(cell: Cell) -> float:
    """Returns the mean of R@1 and R@10 over all slices after the last step, searched, percent."""
    last = [run.recalls[SEARCHED][-1] for run in cell.slices]
    return sum(found["t2i_r1"] + found["t2i_r10"] for found in last) / (2 * len(last))


def _trials(table: str, encoder: Encoder) -> Trials:
    """Returns the trials of all strategies whose options protocols take from a table."""
    files = [path for path in sorted(SEQUENCES.glob("*.toml")) if path.name not in (TUNED, SCRATCH)]
    sequences = [
        read_sequence(path) for path in files if tomllib.loads(path.read_text()).get("tuned") == table
    ]
    named = {one.name for sequence in sequences for one in sequence.strategies}
    found = {}
    for name in sorted(named - REFERENCES.keys() - {"evergreen"}):
        sequence = _sequence(name, table)
        found[name] = sequence, trials_of(name, sequence, encoder)
    return found


def _sequence(name: str, table: str) -> BenchSequence:
    """Returns where a strategy is tuned: on languages when it never moves a picture, else on domains."""
    kind = "domains" if strategy_named(name)().touches_image else "languages"
    return read_sequence(SEQUENCES / f"{TUNE}{'stream' if table == SCRATCH else kind}.toml")


def _write(tuned: Mapping[str, Trials], cells: Path) -> None:
    rows = []
    for table, trials in tuned.items():
        chosen = []
        for name, (sequence, compared) in sorted(trials.items()):
            said, best = _chosen(name, sequence, compared, cells)
            rows += said
            if best is not None and best.options:
                lines = "\n".join(f"{option} = {value}" for option, value in best.options.items())
                chosen.append(f'["{name}"]\n{lines}\n')
        note = "# Written by `python benchmarks/tuning.py`; see docs/results/tuning.md.\n"
        (SEQUENCES / table).write_text("\n".join([note, *chosen]), encoding="utf-8")
    REPORT.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _chosen(
    name: str, sequence: BenchSequence, compared: Sequence[Compared], cells: Path
) -> tuple[list[str], Compared | None]:
    """Returns a row for each trial of a strategy, and the best of them."""
    scored = {}
    for trial in compared:
        cell = read_cell(cell_path(cells, sequence.name, trial.label, 0))
        if cell is not None and not any(step["refused"] for step in cell.steps):
            scored[trial.label] = (score(cell), trial)
    if not scored:
        return [f"| `{name}` | {sequence.name} | – | – | not run |"], None
    best = max(scored.values(), key=lambda found: found[0])[1]
    rows = []
    for label, (value, trial) in scored.items():
        said = label.removeprefix(name).lstrip(",") or "defaults"
        rows.append(
            f"| `{name}` | {sequence.name} | {said} | {value:.1f} | {'yes' if trial is best else ''} |"
        )
    return rows, best


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument("--work", type=Path, required=True, help="where homes are made")
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--strategy", nargs="*", help="run the trials of these alone")
    parser.add_argument("--only", nargs="*", help="run the trials on these sequences alone")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--report-only", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
