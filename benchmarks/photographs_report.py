"""docs/results/photographs.md from the finished cells."""

from __future__ import annotations

import json
from pathlib import Path


def write_report(results: Path, report: Path) -> None:
    """Writes the report anew."""
    cells = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))
    }
    report.write_text(json.dumps(sorted(cells)), encoding="utf-8")
