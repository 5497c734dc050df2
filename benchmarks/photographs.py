"""Measures `perennial-photo` on real photographs and writes docs/results/photographs.md.

    python benchmarks/photographs.py --data ../shared/data

Everything goes through the product: `initialise`, `add_chunk`, `update` with the default strategy and the default gate.
First the encoder as installed; then English captions of photographs, a second picture domain, and three languages that
the text tower does not know, one after another on one home. Each finished cell leaves a JSON file in the work folder
and is not run again, so the benchmark can be stopped at any time; the report is written anew after each cell.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path

import torch
from photographs_report import write_report
from photographs_runs import STEPS, Photographs, Work, teach, template
from real_input import machine, say
from real_input_runs import Bench, Values

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "photographs.md"


def main() -> None:
    """Runs the cells that are not finished yet and writes the report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    results = arguments.work / "results"
    results.mkdir(parents=True, exist_ok=True)
    if not arguments.report_only:
        bench = Bench(arguments.data, arguments.work, None, 0, say)
        _run(Photographs(bench, arguments.photos), results, arguments)
    write_report(results, arguments.report)


def _run(cell: Photographs, results: Path, arguments: argparse.Namespace) -> None:
    first = results / "template.json"
    if not first.exists():
        _write(first, _timed(arguments, lambda: template(cell)))
    write_report(results, arguments.report)
    start = json.loads(first.read_text(encoding="utf-8"))
    for seed in range(arguments.first_seed, arguments.seeds):
        for step in STEPS:
            path = results / f"seed-{seed}.{step}.json"
            if not path.exists():
                chunk = start["chunks"][step]
                _write(path, _timed(arguments, partial(teach, cell, step, seed, chunk)))
                write_report(results, arguments.report)


def _timed(arguments: argparse.Namespace, work: Work) -> Values:
    started = time.monotonic()
    facts = {"machine": machine(arguments.threads), "date": time.strftime("%Y-%m-%d", time.gmtime())}
    return work() | facts | {"cell_seconds": round(time.monotonic() - started, 1)}


def _write(path: Path, values: Values) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(values, ensure_ascii=False, indent=1), encoding="utf-8")
    temporary.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--data", type=Path, required="--report-only" not in sys.argv, help="the evaluation data"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="for sharing the seeds between processes")
    parser.add_argument(
        "--work", type=Path, default=Path("photographs-work"), help="homes and finished cells"
    )
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    parser.add_argument("--photos", type=int, help="only so many training photographs, to try things out")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--report-only", action="store_true", help="write the report from the finished cells")
    return parser.parse_args()


if __name__ == "__main__":
    main()
