"""Measures speed as ratios within one run and writes docs/results/speed.md.

    python benchmarks/speed.py [--only PART]

Absolute times say more about the machine than about the program; each ratio compares two things done by turns in the
same process. What takes a process of its own is given with its processor time, which other work on the machine moves
least. A part that was left out keeps its line from the last time (benchmarks/results/speed.json).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from speed_folders import changed_folder, photographs, unchanged_folder
from speed_language import taught_language
from speed_minute import first_minute, installing
from speed_parts import bulk_embedding, help_seconds, text_query
from speed_processes import large_gallery, more_processes
from speed_segments import fifty_more
from speed_server import searching
from speed_timing import ROOT, Measured
from speed_update import text_only_update

KEPT = ROOT / "benchmarks" / "results" / "speed.json"
REPORT = ROOT / "docs" / "results" / "speed.md"
INTRODUCTION = """# Speed

Written by `python benchmarks/speed.py`; do not edit. Ratios compare things done by turns in one run. Seconds
of processes are the median of several; other work on the machine moves their processor time least.
"""
PARTS = (
    "query",
    "bulk",
    "update",
    "language",
    "segments",
    "help",
    "rescan",
    "changes",
    "photographs",
    "install",
    "minute",
    "searching",
    "processes",
    "large",
)


def main() -> None:
    """Runs the parts that were asked for and writes the report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    kept = _known(arguments.work)
    with tempfile.TemporaryDirectory() as folder:
        for name, measure in parts(Path(folder), quick=arguments.quick).items():
            if arguments.only and name not in arguments.only:
                continue
            print(time.strftime("%H:%M:%S", time.gmtime()), name, flush=True)
            kept[name] = asdict(measure()) | {
                "date": time.strftime("%Y-%m-%d", time.gmtime()),
                "machine": machine(arguments.threads),
            }
            print(json.dumps(kept[name], indent=1), flush=True)
            if not arguments.quick:
                arguments.work.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    if not arguments.quick:
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
        arguments.report.write_text(report(kept), encoding="utf-8")


def parts(folder: Path, *, quick: bool) -> dict[str, Callable[[], Measured]]:
    """Returns each part by its name; quick ones only show that they work."""
    few = 10 if quick else 1
    slow = {} if quick else {"install": lambda: installing(folder), "searching": lambda: searching(folder)}
    return slow | {
        "processes": lambda: more_processes(
            folder, pictures=2000 // few, rounds=12 // few, seconds=1.5, patience=0.0 if quick else 720.0
        ),
        "large": lambda: large_gallery(folder, pictures=100_000 // few, seconds=10.0 / few),
        "query": lambda: text_query(folder, vectors=100_000 // few, rounds=200 // few),
        "bulk": lambda: bulk_embedding(pictures=256 // (4 if quick else 1), rounds=1 if quick else 3),
        "update": lambda: text_only_update(pairs=1024 // (4 if quick else 1)),
        "language": lambda: taught_language(pairs=1000 // few, rounds=1 if quick else 3),
        "segments": lambda: fifty_more(
            folder, vectors=(1_000,) if quick else (10_000, 100_000, 1_000_000), rounds=5 // few or 1
        ),
        "help": lambda: help_seconds(5),
        "rescan": lambda: unchanged_folder(folder, pictures=10_000 // few, rounds=15 // few),
        "changes": lambda: changed_folder(
            folder, pictures=10_000 // few, rounds=5 // few or 1, changes=100 // few
        ),
        "photographs": lambda: photographs(folder, pictures=100 // few, rounds=3 // few or 1),
        "minute": lambda: first_minute(folder, rounds=1 if quick else 3, few=20 if quick else None),
    }


def report(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Returns the report in Markdown."""
    return INTRODUCTION + measured_tables([kept[name] for name in PARTS if name in kept])


def measured_tables(shown: Sequence[Mapping[str, Any]]) -> str:
    """Returns what was measured as Markdown: a line each, how, and a table of the steps of what has several."""
    lines = ["", "| what | measured | bar | holds |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {m['what']} | {m['figure']} | {m['bar']} | {'yes' if m['holds'] else '**no**'} |" for m in shown
    ]
    lines += ["", *(f"- {m['what']}: {m['details']}. {m['machine']}, {m['date']}." for m in shown)]
    for m in shown:
        if m["steps"]:
            lines += [
                "",
                f"## {m['what'][0].upper()}{m['what'][1:]}",
                "",
                "| step | time | processor time | memory |",
            ]
            lines += [
                "| --- | --- | --- | --- |",
                *(f"| {' | '.join([*step, '–'][:4])} |" for step in m["steps"]),
            ]
    return "\n".join(lines) + "\n"


def machine(threads: int) -> str:
    """Says what the figures were measured on."""
    return (
        f"{platform.machine()}, {os.cpu_count()} CPU cores, load {os.getloadavg()[0]:.1f}, {threads} torch threads, "
        f"Python {platform.python_version()}, torch {torch.__version__.split('+')[0]}"
    )


def _known(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    known: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return known


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--quick", action="store_true", help="small sizes, no report")
    parser.add_argument("--work", type=Path, default=KEPT, help="keeps what was measured")
    parser.add_argument("--report", type=Path, default=REPORT)
    return parser.parse_args()


if __name__ == "__main__":
    main()
