"""The report of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.bench.results import read_cell
from app.bench.sequence import BenchSequence


@dataclass(frozen=True)
class Written:
    """Where a report is, and its table.

    Attributes:
        html: the page.
        document: the same as plain values.
        table: for a terminal.
    """

    html: Path
    document: dict[str, Any]
    table: str


def write_report(folder: Path, sequence: BenchSequence, paths: Sequence[Path]) -> Written:
    """Writes the report of the cells that are there."""
    cells = [cell for path in paths if (cell := read_cell(path)) is not None]
    lines = [f"{cell.strategy} {cell.seed} {len(cell.slices)}" for cell in cells]
    return Written(folder / f"{sequence.name}.html", {"cells": len(cells)}, "\n".join(lines))
