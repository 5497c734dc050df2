"""Measures how styles of the same things compete in one gallery; writes docs/results/styles.md.

    python benchmarks/photographs.py --data ../shared/data --work WORK --seeds 0     # makes WORK/homes/template
    python benchmarks/styles.py --data ../shared/data --work WORK

Two styles of emoji with their English names, one after the other through the product: `perennial-photo`, the default
strategy, the default gate. All figures are those that the gate measured and judged by. The home is that of the
photograph benchmark, whose pictures of the first style are embedded already, without its photographs.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from photographs_data import SHOP
from photographs_runs import ENGLISH
from real_input import machine, say
from real_input_data import emoji_rows, emoji_splits
from real_input_figures import table_of
from real_input_runs import Bench, add, run_update

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.standing import withdraw
from model_updates.gate.report import GateReport, Policy, Verdict

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "styles.md"
STYLES = (SHOP, "line")


def main() -> None:
    """Makes the home, teaches the styles and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument("--work", type=Path, required=True, help="work folder of the photograph benchmark")
    parser.add_argument("--trained", type=int, default=1000, help="names of the second style that are taught")
    parser.add_argument("--report", type=Path, default=REPORT)
    arguments = parser.parse_args()
    bench = Bench(arguments.data, arguments.work, None, 0, say)
    settings = Settings(home=arguments.work / "homes" / "styles", device="cpu", gate=Policy())
    shutil.rmtree(settings.home, ignore_errors=True)
    shutil.copytree(arguments.work / "homes" / "template", settings.home)
    rows, reasons = [], []
    for style in STYLES:
        with Workspace.open(settings) as workspace:
            chunk = _chunk(bench, workspace, style, arguments.trained)
            outcome = run_update(workspace, UpdateRequest(chunk=chunk, seed=0, by="benchmark"))
            say(outcome.sentence)
            report = GateReport.from_json(outcome.gate)
            if outcome.release is not None and outcome.commit is None:
                going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)
        rows += _rows(style, report)
        reasons += [f"- {style}: {one}" for one in _reasons(report)]
        arguments.report.write_text(_report(rows, reasons, arguments.trained), encoding="utf-8")


def _chunk(bench: Bench, workspace: Workspace, style: str, trained: int) -> str:
    """Returns the id of a style's chunk: the first lies in the home, beside photographs that are withdrawn."""
    if style != STYLES[0]:
        rows = emoji_rows(bench.data, emoji_splits(bench.data), ENGLISH, (style,))
        taught = [row for row in rows if row.split == "train"][:trained]
        return add(bench, workspace, style, [*taught, *(row for row in rows if row.split != "train")])
    for chunk in workspace.catalog.chunks()[1:]:
        if chunk.name != style:
            withdraw(workspace, chunk.id, why="emoji alone", by="benchmark")
    return next(chunk.id for chunk in workspace.catalog.chunks() if chunk.name == style)


def _rows(style: str, report: GateReport) -> list[list[str]]:
    found = []
    for row in report.rows:
        if "concept_p10" in row.candidate_recalls:
            cells = [
                f"{row.live_recalls[name]:.1f} → {row.candidate_recalls[name]:.1f}"
                for name in ("t2i_r1", "t2i_r10", "concept_p10", "elsewhere_p10")
            ]
            found.append(
                [style, row.slice, row.view, row.role, str(row.captions), *cells, str(report.verdict)]
            )
    return found


def _reasons(report: GateReport) -> list[str]:
    return [
        reason
        for rule in report.rules
        if rule.rule == "same things" or rule.verdict is not Verdict.PROMOTE
        for reason in rule.reasons
    ]


def _report(rows: list[list[str]], reasons: list[str], trained: int) -> str:
    header = ["taught", "slice", "view", "role", "captions", "R@1", "R@10", "same thing P@10"]
    header += ["of other domains", "verdict"]
    return (
        "# Styles of the same things\n\n"
        f"Written by `python benchmarks/styles.py --data ../shared/data --work WORK --trained {trained}`.\n"
        f"{machine(1)}.\n\n"
        f"Two styles of emoji, taught one after the other with their English names, of the second {trained} and all\n"
        "that are held out. *Same thing P@10*: of the first ten pictures in the gallery of everything, the share\n"
        "that shows what the name says, of as many as there are (one a style). *Of other domains*: the share of the\n"
        "first ten that is drawn in another style. Percent, under the live release and under the candidate.\n\n"
        + table_of(header, rows)
        + "\nWhat the gate said of it:\n\n"
        + "\n".join(reasons)
        + "\n"
    )


if __name__ == "__main__":
    main()
