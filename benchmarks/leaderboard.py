"""Writes docs/results/leaderboard.md: whoever ran a protocol's sequence, here or elsewhere, in one table a sequence.

    python benchmarks/leaderboard.py

What somebody sends in is the file of cells that `bench` writes, `<sequence>.jsonl.xz`, in a folder of their name under
benchmarks/contributed/. A cell counts if it is of the sequence as it is now and was asked the very captions that our
own cells were asked with that seed; a row, if three seeds count. The strategy may be of any package
(CONTRIBUTING.md): the cell says of which, with versions and commit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from protocols import CELLS, HERE, SEQUENCES, with_seeds
from strategies_plot import recall_with_interval

from app.bench.comparison import FEWEST_SEEDS
from app.bench.figures import by_strategy, over_seeds
from app.bench.results import Cell, read_cells
from app.bench.sequence import BenchSequence, StrategyRun, read_sequence
from app.bench.tables import change, figure
from model_updates.errors import UnknownStrategy

CONTRIBUTED = HERE / "contributed"
REPORT = HERE.parent / "docs" / "results" / "leaderboard.md"
RANKED = ("languages", "languages-36", "domains", "stream-4-classes", "growing", "second-dataset")
HEADER = (
    "strategy",
    "by",
    "R@1 taught",
    "R@1 held-out",
    "moved",
    "processor, s",
    "seeds",
    "made by",
)
HEAD = f"""# Leaderboard

Written by `python benchmarks/leaderboard.py`; do not edit. A row is a strategy with at least {FEWEST_SEEDS} seeds, the
best at what was taught first; text to image, percent; intervals are of 95 %, over seeds and things; ± is half of the
range over seeds. *Moved*: of what was taught, since it was taught. Processor time is of the machine named.

**Your own row**: run a sequence of `benchmarks/sequences/` on the home that `benchmarks/protocols.py` makes, with your
strategy from any installed package, and send in the one file that it writes:

```
python benchmarks/protocols.py --data ../shared/data --work WORK --only domains --strategy zero-shot --seeds 1
perennial bench benchmarks/sequences/domains.toml --home WORK/homes/tiny --strategy my-strategy --out ME
mkdir -p benchmarks/contributed/ME && cp ME/domains.jsonl.xz benchmarks/contributed/ME/
```
"""


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=Path, default=CELLS)
    parser.add_argument("--contributed", type=Path, default=CONTRIBUTED)
    parser.add_argument("--report", type=Path, default=REPORT)
    asked = parser.parse_args()
    asked.report.write_text(page(asked.cells, asked.contributed, SEQUENCES, RANKED), encoding="utf-8")
    sys.stdout.write(f"{asked.report}\n")
    return 0


def page(cells: Path, contributed: Path, sequences: Path, ranked: Sequence[str]) -> str:
    """Returns the whole page."""
    folders = {"Perennial": cells} | {folder.name: folder for folder in sorted(contributed.glob("*/"))}
    parts = [HEAD]
    for name in ranked:
        sequence = with_seeds(read_sequence(sequences / f"{name}.toml"))
        found = {by: list(read_cells(folder, name).values()) for by, folder in folders.items()}
        parts.append(_section(sequence, found))
    return "\n".join(parts)


def _section(sequence: BenchSequence, found: Mapping[str, Sequence[Cell]]) -> str:
    asked = {cell.seed: captions(cell) for cell in found["Perennial"] if not refused(cell, sequence, {})}
    rows, left_out = [], []
    for by, cells in found.items():
        reasons = {id(cell): refused(cell, sequence, asked) for cell in cells}
        counted = by_strategy(cell for cell in cells if not reasons[id(cell)])
        rows += [(by, label, own) for label, own in counted.items() if len(own) >= FEWEST_SEEDS]
        if by != "Perennial":
            left_out += [
                f"{by}: {cell.strategy}, seed {cell.seed}: {reasons[id(cell)]}"
                for cell in cells
                if reasons[id(cell)]
            ]
    rows.sort(key=lambda row: -over_seeds(row[2])["trained/told/r1"].mean)
    lines = [HEADER, ["---"] * len(HEADER), *(_row(*row) for row in rows)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    refusals = "".join(f"\n- not counted: {line}" for line in left_out)
    return f"## {sequence.name}\n\n{sequence.about}\n\n{table}\n{refusals}"


def captions(cell: Cell) -> frozenset[str]:
    """Returns the digests of what a cell was asked."""
    return frozenset(run.digest for run in cell.slices)


def refused(cell: Cell, sequence: BenchSequence, asked: Mapping[int, frozenset[str]]) -> str:
    """Says why a cell does not count; "" where it does."""
    try:
        name = cell.strategy.partition(",")[0]
        if cell.digest != sequence.digest(StrategyRun(name=name, options=cell.options)):
            return "it is of another version of the sequence"
    except UnknownStrategy:
        pass  # of a package that is not installed here; what it was asked is checked all the same
    if cell.seed in asked and captions(cell) != asked[cell.seed]:
        return "it was asked other captions"
    return ""


def _row(by: str, label: str, cells: Sequence[Cell]) -> list[str]:
    figures, made = over_seeds(cells), cells[-1].made
    recall, moved = (recall_with_interval(cells, name) for name in ("r1", "bwt"))
    said = [
        made.get("package"),
        made["date"],
        f"{made['machine']}, torch {made['torch']}",
        made.get("commit", "")[:8],
    ]
    return [
        label.replace("|", "\\|"),
        by,
        change(recall, words=False).replace("+", ""),
        figure(figures.get("held-out/told/r1")),
        change(moved, words=False),
        figure(figures.get("cpu_seconds"), digits=0),
        str(len(cells)),
        ", ".join(part for part in said if part),
    ]


if __name__ == "__main__":
    sys.exit(main())
