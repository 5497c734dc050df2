"""The report of a benchmark: a page, the same as plain values, a Markdown table for docs and one for a terminal."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.bench.comparison import Criterion
from app.bench.figures import MAIN
from app.bench.findings import SequenceFindings, command_of, findings_of
from app.bench.page import page_of
from app.bench.results import read_cells
from app.bench.sequence import BenchSequence, StrategyRun, step_name
from app.bench.tables import COSTS, change, figure, markdown_of
from app.words import messages


@dataclass(frozen=True)
class Written:
    """Where a report is, and its table."""

    html: Path  # the page
    document: dict[str, Any]  # the same as plain values
    table: Any  # for a terminal


def write_report(folder: Path, sequence: BenchSequence, cells: Path) -> Written:
    """Writes the report of the cells that are in a folder: `NAME.html`, `NAME.json` and `NAME.md`.

    Cells of another version of the sequence are left out, and the report says so.
    """
    findings = findings_in(sequence, cells)
    document = findings.to_json()
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"{sequence.name}.html"
    page.write_text(page_of(findings, facts_of(findings, sequence)), encoding="utf-8")
    text = json.dumps(document, ensure_ascii=False, indent=1)
    (folder / f"{sequence.name}.json").write_text(text + "\n", encoding="utf-8")
    (folder / f"{sequence.name}.md").write_text(markdown_of(findings), encoding="utf-8")
    return Written(page, document, terminal_table(findings))


def findings_in(
    sequence: BenchSequence,
    folder: Path,
    command: str = "",
    planned: Collection[tuple[StrategyRun, int]] | None = None,
) -> SequenceFindings:
    """Returns what the cells that are there say of a sequence as it is now.

    `command` is the usual one when empty. `planned` says which strategy with which seed counts as not run where it is
    missing; every one with every seed when None.
    """
    if planned is None:
        planned = [(one, seed) for one in sequence.strategies for seed in sequence.seeds]
    wanted = {one.label: sequence.digest(one) for one in sequence.strategies}
    kept = read_cells(folder, sequence.name)
    every = [(one.label, seed) for one in sequence.strategies for seed in sequence.seeds]
    found = [kept[key] for key in every if key in kept]
    cells = [cell for cell in found if cell.digest == wanted.get(cell.strategy)]
    there = {(cell.strategy, cell.seed) for cell in cells}
    others = [(cell.strategy, cell.seed) for cell in found if (cell.strategy, cell.seed) not in there]
    missing = [(one.label, seed) for one, seed in planned if (one.label, seed) not in there]
    return findings_of(
        sequence.name,
        cells,
        about=sequence.about,
        command=command or command_of(sequence),
        left_out=_by_strategy(others),
        not_run=_by_strategy(missing),
    )


def _by_strategy(cells: Sequence[tuple[str, int]]) -> list[str]:
    seeds: dict[str, list[str]] = {}
    for label, seed in cells:
        seeds.setdefault(label, []).append(str(seed))
    return [f"{label} (seed{'s' * (len(own) > 1)} {', '.join(own)})" for label, own in seeds.items()]


def facts_of(findings: SequenceFindings, sequence: BenchSequence) -> list[tuple[str, str]]:
    """Returns what the head of a page says was run, name and Markdown text."""
    steps = [step_name(sequence.filled(step)) for step in sequence.steps]
    base = "nothing" if sequence.base is None else step_name(sequence.filled(sequence.base))
    gallery = "grows with the steps" if sequence.gallery == "growing" else "all pictures from the start"
    facts = [
        ("encoder", sequence.encoder + (", weights drawn anew by each seed" if sequence.scratch else "")),
        ("known before", base),
        ("steps", f"{len(steps)}: {', '.join(steps)}"),
        ("seeds", ", ".join(map(str, findings.seeds)) or "none yet"),
        ("orders, seed by seed", ", ".join(sequence.orders)),
        ("gallery", gallery),
        ("epochs", str(sequence.epochs) if sequence.epochs else "each strategy its own"),
    ]
    given = [
        f"{label}: {', '.join(f'{name}={value}' for name, value in own[0].options.items())}"
        for label, own in findings.cells.items()
        if own[0].options
    ]
    if given:
        facts.append(("options given", "; ".join(given)))
    return [*facts, ("made", findings.made_on), ("command", f"`{findings.command}`")]


def terminal_table(findings: SequenceFindings) -> Any:
    """Returns the figures that fit a terminal: recall, forgetting and cost of each strategy."""
    header = (
        "strategy",
        "trained R@1",
        "not told",
        "held-out R@1",
        "forgetting",
        "processor, s",
        "stored, MB",
    )
    names = (MAIN, "trained/searched/r1", "held-out/told/r1", "trained/told/forgetting")
    main = Criterion(*MAIN.split("/"))
    rows = []
    for label, figures in findings.figures.items():
        cost = [figure(figures[name], *form) for name, *form in (COSTS[column] for column in header[-2:])]
        told = [figure(figures.get(name)) for name in names]
        rows.append((label, *told, *cost, change(findings.differences.get(label, {}).get(main))))
    title = f"{findings.sequence}: average at the end, percent; mean over {len(findings.seeds)} seeds"
    return messages.table((*header, f"R@1 less {findings.reference}"), rows, title=title)
