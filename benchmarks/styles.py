"""Measures how styles of the same things compete in one gallery; writes docs/results/styles.md.

    python benchmarks/styles.py --data ../shared/data --work WORK

Two styles of emoji with their English names, one after the other through the product: `perennial-photo`, the default
strategy, the default gate. In some trials the names of the second are exchanged, all or a part, and their groups with
them, so that the chunk claims old things for pictures of others. All figures are those that the gate measured and
judged by. Each finished trial leaves a JSON file.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from real_input import machine, say
from real_input_data import UploadRow, emoji_rows, emoji_splits
from real_input_figures import table_of
from real_input_runs import Bench, add, run_update
from untaught import Data, template

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.standing import accept
from model_updates.gate.report import GateReport, Policy

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "styles.md"
FIRST, SECOND = "fluent3d", "line"
Values = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """A style that is known, one that is taught after it, how many names of it, and which share is exchanged."""

    first: str
    second: str
    names: int  # taught; beside all that are held out
    exchanged: float = 0.0  # of the names
    hidden: bool = False  # whether the held-out names are left as they are

    @property
    def name(self) -> str:
        """Of its file."""
        part = " of what is taught" if self.hidden else ""
        return f"{self.first}, then {self.second}, {self.names}, {self.exchanged:.0%} exchanged{part}"


TRIALS = (
    Trial(FIRST, SECOND, 300),
    Trial(SECOND, FIRST, 300),
    Trial(FIRST, SECOND, 300, 1.0),
    Trial(FIRST, SECOND, 300, 0.5),
    Trial(FIRST, SECOND, 700),
    Trial(SECOND, FIRST, 700),
    Trial(FIRST, SECOND, 700, 0.5, hidden=True),
    Trial(SECOND, FIRST, 300, 1.0),
)


def main() -> None:
    """Runs the trials that are not finished yet and writes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument("--work", type=Path, required=True, help="homes and finished trials")
    parser.add_argument("--trials", type=int, nargs="*", help="numbers of those to run, from 0")
    parser.add_argument("--report", type=Path, default=REPORT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = arguments.work / "results"
    results.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.data, arguments.work, None, 0, say)
    for number, trial in enumerate(TRIALS):
        path = results / f"{trial.name}.json"
        if not path.exists() and (arguments.trials is None or number in arguments.trials):
            path.write_text(json.dumps(_run(bench, trial)), encoding="utf-8")
    done = {trial: json.loads(path.read_text(encoding="utf-8")) for trial in TRIALS
            if (path := results / f"{trial.name}.json").exists()}  # fmt: skip
    arguments.report.write_text(_report(done), encoding="utf-8")


def _run(bench: Bench, trial: Trial) -> Values:
    known = _home(bench, trial.first.replace(" ", "-"))
    if not known.home.exists():
        first = _home(bench, "template")
        styles = {one: _rows(bench, one) for one in (FIRST, SECOND)}
        template(first, Data(styles, {}), bench.work)
        shutil.copytree(first.home, known.home)
        with Workspace.open(known) as workspace:
            _teach(bench, workspace, trial.first, styles[trial.first])
    settings = _home(bench, "trial")
    shutil.rmtree(settings.home, ignore_errors=True)
    shutil.copytree(known.home, settings.home)
    with Workspace.open(settings) as workspace:
        return _teach(bench, workspace, trial.second, _chosen(_rows(bench, trial.second), trial)).to_json()


def _home(bench: Bench, name: str) -> Settings:
    return Settings(home=bench.work / "homes" / name, device="cpu", gate=Policy())


def _rows(bench: Bench, style: str) -> list[UploadRow]:
    return emoji_rows(bench.data, emoji_splits(bench.data), "en", (style,))


def _chosen(rows: Sequence[UploadRow], trial: Trial) -> list[UploadRow]:
    """Returns what a trial uploads: names drawn by chance, a share of them exchanged."""
    random = np.random.default_rng(0)
    parts = [[row for row in rows if (row.split == "train") is taught] for taught in (True, False)]
    taught, held = ([part[int(n)] for n in random.permutation(len(part))] for part in parts)
    found = []
    for part, is_clean in ((taught[: trial.names], False), (held, trial.hidden)):
        count = 0 if is_clean else round(trial.exchanged * len(part))
        order = random.permutation(count)
        found += [
            replace(row, caption=part[int(n)].caption, group=part[int(n)].group)
            for row, n in zip(part[:count], order, strict=True)
        ]
        found += part[count:]
    return found


def _teach(bench: Bench, workspace: Workspace, style: str, rows: Sequence[UploadRow]) -> GateReport:
    chunk = add(bench, workspace, style, rows)
    if workspace.catalog.chunk(chunk).standing == "held":  # the gate is tried, not the checks
        accept(workspace, chunk, why="the gate is tried", by="benchmark")
    outcome = run_update(workspace, UpdateRequest(chunk=chunk, seed=0, by="benchmark"))
    say(outcome.sentence)
    if outcome.release is not None and outcome.commit is None:
        going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)
    return GateReport.from_json(outcome.gate)


def _report(done: dict[Trial, Values]) -> str:
    header = ["known, then taught", "names", "exchanged", "slice", "view", "R@1", "R@10", "same thing P@10"]
    header += ["of other domains", "verdict"]
    rows, reasons = [], []
    for trial, values in done.items():
        report = GateReport.from_json(values)
        part = f"{trial.exchanged:.0%}" + (", held-out ones not" if trial.hidden else "")
        for row in report.rows:
            if row.view != "own" and row.slice != "en/probes":
                cells = [
                    f"{row.live_recalls[name]:.1f} → {row.candidate_recalls[name]:.1f}"
                    if name in row.candidate_recalls
                    else "–"
                    for name in ("t2i_r1", "t2i_r10", "concept_p10", "elsewhere_p10")
                ]
                told = [f"{trial.first}, {trial.second}", str(trial.names), part, row.slice, row.view]
                rows.append([*told, *cells, str(report.verdict)])
        reasons += [f"\n{trial.name}: **{report.verdict}**\n"]
        reasons += [f"- {reason}" for rule in report.rules for reason in rule.reasons]
    return (
        "# Styles of the same things\n\n"
        f"Written by `python benchmarks/styles.py --data ../shared/data --work WORK`.\n{machine(1)}.\n\n"
        "Two styles of emoji, taught one after the other with their English names; of the second, names drawn by\n"
        "chance, and all that are held out. *Exchanged*: names stand, with their groups, on pictures of other\n"
        "things, so that the chunk claims what it does not show. Old slices are ranked by things\n"
        "([how](../gate.md#what-is-measured-three-views-of-a-slice)). *Same thing P@10*: of the first ten pictures in\n"
        "the gallery of everything, the share that shows what the name says, of as many as there are. *Of other\n"
        "domains*: the share of the first ten that is drawn in another style. Percent, live → candidate.\n\n"
        + table_of(header, rows)
        + "\n## What the gate said\n"
        + "\n".join(reasons)
        + "\n"
    )


if __name__ == "__main__":
    main()
