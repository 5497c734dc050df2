"""Measures telling a query's language and writes docs/results/languages.md.

    python benchmarks/languages.py --data ../shared/data

Three parts: (a) the product after seven languages (the homes of `real_input.py`, taught here when missing): what it
costs when the language is not told; (b) the same after all 36 languages, in one home that is kept and taught what it
does not know yet (`--only product-36`, about half an hour); (c) detection alone on the names of 36 languages, profiles
from the training names. Each finished part leaves a JSON file in the work folder; the report is written from those
there are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import torch
from languages_detection import (
    detection_alone,
    footprint,
    print_footprint,
    shared_letters,
    shared_table,
    unlearned_scripts,
)
from languages_many import many_run
from languages_product import product_rules, product_run
from languages_report import write_report
from real_input import machine, say
from real_input_runs import Bench, Values

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "languages.md"


def main() -> None:
    """Runs what is not finished yet and writes the report."""
    arguments = _arguments()
    if arguments.footprint:
        print_footprint(arguments.footprint)
        return
    torch.set_num_threads(arguments.threads)
    results = arguments.work / "languages"
    results.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.data, arguments.work, None, 0, say)
    runs: dict[str, Callable[[], Values]] = {
        "detection-8": lambda: detection_alone(arguments.data, few=True),
        "detection-36": lambda: detection_alone(arguments.data, few=False),
        "unlearned": lambda: unlearned_scripts(arguments.data),
        "shared-letters": lambda: shared_letters(arguments.data),
        "shared-table": lambda: shared_table(arguments.data),
        "footprint": lambda: footprint(arguments.data, results),
    }
    for seed in range(arguments.seeds):
        runs[f"product-{seed}"] = lambda s=seed: product_run(bench, s)  # type: ignore[misc]
    runs["product-36"] = lambda: many_run(bench, 0)
    runs["rules-0"] = lambda: product_rules(bench, 0)
    for name, run in runs.items():
        path = results / f"{name}.json"
        if path.exists() or (arguments.only and name not in arguments.only):
            continue
        say(f"start {name}")
        started = time.monotonic()
        values = run() | {
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "machine": machine(arguments.threads),
        }
        path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
        say(f"done {name} in {time.monotonic() - started:.0f} s")
    write_report(results, arguments.report)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--data", type=Path, help="the evaluation data")
    parser.add_argument("--only", action="append", help="one run, such as detection-36; may be given again")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("real-input-work"), help="homes and finished runs")
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--footprint", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
