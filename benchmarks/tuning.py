"""Tunes every strategy of the protocols alike, on languages and domains that no protocol teaches.

    python benchmarks/tuning.py --data ../shared/data --work WORK

Each strategy gets the same trials with the same epochs: its default learning rate, a third and three times of it, and
further ones by factors of three while the best is the highest or the lowest. Rates of the domain protocols are tuned
on four domains that no protocol uses (those of languages-towers, too), those of the language protocols on two
invented languages, those of the streams on scenes of their own from random weights. The weight of a penalty on
parameters does not carry from one size of model to another: what has one gets two further trials, at the best of the
rates, 100 and 10,000 times its default (afec's pull: 10,000 and 1,000,000 times). Other strengths stay what they are
by default; the two that were once set on a style which protocols report, c-clip's merge and displacement, were tried,
too (tune-strengths, by the rates of that day). What scores best over all slices at the end (mean of R@1 and R@10,
searched, trained and held-out captions alike) is written to benchmarks/sequences/tuned-*.toml, where it differs from
the default. `evergreen` chooses its parts by what a chunk brings and keeps the defaults of each: it is not tuned.
What is known before the first step of the trials, and counts in their scores, is English on fluent3d pictures, which
`domains` measures as unseen, by other concepts.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from protocol_data import TUNING, home_of
from protocols import CELLS, HERE, SEQUENCES, say

from app.bench.grid import CellTask, missing, run_grid
from app.bench.results import SEARCHED, Cell, read_cells
from app.bench.sequence import BenchSequence, StrategyRun, read_sequence
from app.home.settings import Settings
from model_updates.encoder import Encoder
from model_updates.opening import open_encoder
from model_updates.options import options_of
from model_updates.references import REFERENCES
from model_updates.strategies import strategy_named

REPORT = HERE.parent / "docs" / "results" / "tuning.md"
TABLES = {
    "tuned-domains.toml": "tune-domains",
    "tuned-languages.toml": "tune-languages",
    "tuned-scratch.toml": "tune-stream",
}
"""What the protocols' sequences take options from, and the sequence that each is tuned on."""
TIMES = (1.0, 1 / 3, 3.0)
STEP, MOST_RATES = 3.0, 6
PENALTIES = {"strength": (1e2, 1e4), "pull": (1e4, 1e6)}
"""By option, what its default is multiplied by in the first and in the second trial."""
ABOUT = " ".join((__doc__ or "").split("\n\n")[2].split())
HEAD = f"""# Tuning

Written by `python benchmarks/tuning.py --data ../shared/data`. {ABOUT}

| strategy | sequence | trial | score | chosen |
|---|---|---|--:|---|
"""

Kept = Mapping[str, Mapping[tuple[str, int], Cell]]
"""By sequence, its finished cells by strategy and seed."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A strategy with options to try; each is its own, so that scores can be kept by it.

    Attributes:
        compared: the strategy and what differs from its defaults.
        rate: its learning rate; 0 where it has none.
        penalty: whether it tries the weight of a penalty.
    """

    compared: StrategyRun
    rate: float
    penalty: bool = False


@dataclass
class Tuned:
    """One strategy on one sequence, and its trials so far, the defaults first."""

    sequence: BenchSequence
    trials: list[Trial]

    def scores(self, kept: Kept) -> dict[Trial, float]:
        """Returns the score of each trial that ran; a step that was refused leaves it out."""
        found = {}
        for trial in self.trials:
            cell = kept[self.sequence.name].get((trial.compared.label, 0))
            ran = cell is not None and cell.digest == self.sequence.digest(trial.compared)
            if cell is not None and ran and not any(step["refused"] for step in cell.steps):
                found[trial] = score(cell)
        return found


def main() -> int:
    """Runs the trials that are not finished, chooses and writes."""
    asked = _arguments()
    encoder = open_encoder("perennial-tiny")
    tuned = {
        table: {
            name: tuned_of(name, read_sequence(SEQUENCES / f"{sequence}.toml"), encoder)
            for name in _names(table)
        }
        for table, sequence in TABLES.items()
    }
    settings = None if asked.report_only else home_of(TUNING, asked.data, asked.work, say)
    failed: set[str] = set()
    # Each round may show that a rate further out, or the weight of a penalty at the best rate, is to be tried.
    while left := _left(tuned, settings, asked, failed):
        say(f"{len(left)} trials")
        failed |= {one.name for one in run_grid(left, processes=asked.processes, say=say, fresh=False)}
    _write(tuned, asked.cells)
    return 1 if failed else 0


def tuned_of(name: str, sequence: BenchSequence, encoder: Encoder) -> Tuned:
    """Returns a strategy with the trials that all begin with."""
    kind = strategy_named(name)
    strategy = kind(options_of(kind, sequence.defaults.get(name, {})))
    if "learning_rate" not in strategy.Options.__dataclass_fields__:
        return Tuned(sequence, [Trial(StrategyRun(name=name), 0.0)])
    default = float(
        getattr(strategy.options, "learning_rate", 0.0) or strategy.schedule(encoder).learning_rate
    )
    rates = [float(f"{default * times:.3g}") for times in TIMES]
    first = Trial(StrategyRun(name=name), default)
    return Tuned(sequence, [first, *(_at(name, rate) for rate in rates[1:])])


def further(tuned: Tuned, scores: Mapping[Trial, float]) -> list[Trial]:
    """Returns the trials that those so far ask for: a rate beyond the best one, at last the weights of a penalty.

    Args:
        tuned: a strategy whose trials have all run.
        scores: of each trial.
    """
    rates = [trial for trial in tuned.trials if not trial.penalty]
    best = max(rates, key=lambda trial: scores[trial])
    lowest, highest = min(rates, key=lambda trial: trial.rate), max(rates, key=lambda trial: trial.rate)
    if 1 < len(rates) < MOST_RATES and best in (lowest, highest):
        rate = best.rate / STEP if best is lowest else best.rate * STEP
        return [_at(best.compared.name, float(f"{rate:.3g}"))]
    return penalties_of(best) if len(rates) == len(tuned.trials) else []


def penalties_of(best: Trial) -> list[Trial]:
    """Returns a trial with other weights of its strategy's penalty on parameters; nothing where there is none."""
    fields = strategy_named(best.compared.name).Options.__dataclass_fields__
    # A prompt's pull is no penalty on parameters: afec alone has both.
    penalised = PENALTIES if "strength" in fields else {}
    weighed = {option: times for option, times in penalised.items() if option in fields}
    return [
        Trial(
            best.compared.model_copy(update={"options": {**best.compared.options, **options}}),
            best.rate,
            penalty=True,
        )
        for options in (
            {option: float(fields[option].default) * times[number] for option, times in weighed.items()}
            for number in range(2 if weighed else 0)
        )
    ]


def score(cell: Cell) -> float:
    """Returns the mean of R@1 and R@10 over all slices after the last step, searched, percent."""
    last = [run.recalls[SEARCHED][-1] for run in cell.slices]
    return sum(found["t2i_r1"] + found["t2i_r10"] for found in last) / (2 * len(last))


def _at(name: str, rate: float) -> Trial:
    return Trial(StrategyRun(name=name, options={"learning_rate": rate}), rate)


def _names(table: str) -> list[str]:
    """Returns the strategies of the protocols that take their options from a table; references have none."""
    files = [path for path in sorted(SEQUENCES.glob("*.toml")) if path.name not in TABLES]
    sequences = [
        read_sequence(path) for path in files if tomllib.loads(path.read_text()).get("tuned") == table
    ]
    named = {one.name for sequence in sequences for one in sequence.strategies}
    return sorted(named - REFERENCES.keys() - {"evergreen"})


def _left(
    tuned: Mapping[str, Mapping[str, Tuned]],
    settings: Settings | None,
    asked: argparse.Namespace,
    failed: set[str],
) -> list[CellTask]:
    """Adds the trials that finished ones ask for, and returns what is to be run."""
    tasks, kept = [], _kept(asked.cells)
    for name, one in ((name, one) for strategies in tuned.values() for name, one in strategies.items()):
        while len(scores := one.scores(kept)) == len(one.trials):
            more = further(one, scores)
            if not more:
                break
            one.trials += more
        chosen = not asked.strategy or name in asked.strategy
        if settings is not None and chosen and (not asked.only or one.sequence.name in asked.only):
            tasks += [
                CellTask(settings, one.sequence, trial.compared, 0, asked.cells) for trial in one.trials
            ]
    return [task for task in missing(tasks) if task.name not in failed]


def _kept(cells: Path) -> Kept:
    return {name: read_cells(cells, name) for name in TABLES.values()}


def _write(tuned: Mapping[str, Mapping[str, Tuned]], cells: Path) -> None:
    """Writes what was chosen for each table, and every trial to the report."""
    rows, kept = [], _kept(cells)
    for table, strategies in tuned.items():
        chosen = []
        for name, one in sorted(strategies.items()):
            scores = one.scores(kept)
            best = max(scores, key=lambda trial: scores[trial], default=None)
            rows += _rows(name, one, scores, best)
            if best is not None and best.compared.options:
                lines = "\n".join(f"{option} = {value}" for option, value in best.compared.options.items())
                chosen.append(f'["{name}"]\n{lines}\n')
        note = "# Written by `python benchmarks/tuning.py`; see docs/results/tuning.md.\n"
        (SEQUENCES / table).write_text("\n".join([note, *chosen]), encoding="utf-8")
    REPORT.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")


def _rows(name: str, one: Tuned, scores: Mapping[Trial, float], best: Trial | None) -> list[str]:
    if not scores:
        return [f"| `{name}` | {one.sequence.name} | – | – | not run |"]
    rows = []
    for trial, value in scores.items():
        said = trial.compared.label.removeprefix(name).lstrip(",") or "defaults"
        rows.append(
            f"| `{name}` | {one.sequence.name} | {said} | {value:.1f} | {'yes' if trial is best else ''} |"
        )
    return rows


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
