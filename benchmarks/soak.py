"""Tries Perennial's promises for hours, prints each with its figure, and writes docs/results/reliability.md.

    python benchmarks/soak.py [--only PART] [--minutes M] [--quick] [--resume]

`make soak` runs all of it. What fits into seconds runs in `make test` as well; here the same is done a thousand times,
or with the real processes. A part that was left out keeps its line from the last time, as
benchmarks/results/reliability.json has it. A run that was cut off goes on with --resume: parts that held for the same
code are not tried again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the simulators of tests/ are used here

from soak_guards import GUARDS, guards
from soak_kills import random_kills
from soak_load import overload
from soak_power import found, histories, power_cuts
from soak_releases import flipped, replayed, rolled_back
from soak_space import full_disk
from soak_suites import suite
from soak_swaps import swaps_under_load
from speed import machine, measured_tables
from speed_timing import ROOT, Measured

CODE = ("app", "index", "ingest", "model_updates", "tests")
KEPT = ROOT / "benchmarks" / "results" / "reliability.json"
REPORT = ROOT / "docs" / "results" / "reliability.md"
INTRODUCTION = """# Reliability

Written by `make soak`; do not edit. Each promise with its figure: what is promised in words stands in
SECURITY.md and [architecture.md](../architecture.md). What runs in seconds is in `make test`, too. A promise that is
not listed has not been tried so for long yet.
"""


def parts(folder: Path, *, quick: bool, minutes: float) -> dict[str, Callable[[], Measured]]:
    """Returns each part by its name; quick ones only show that they work."""
    few = 20 if quick else 1
    return {
        "kills": lambda: random_kills(folder, kills=1000 // few, minutes=minutes),
        "power": lambda: power_cuts(folder, states=5000 // few),
        "histories": lambda: histories(examples=1000 // few, steps=50),
        "found": lambda: found(folder, examples=200 // few, steps=30),
        "flips": lambda: flipped(folder, count=1000 // few),
        "space": lambda: full_disk(folder, alignments=max(20 // few, 3)),
        "swaps": lambda: swaps_under_load(folder, swaps=100 // few, rate=20.0, pause=3.0),
        "overload": lambda: overload(folder, pictures=2000 // few, times=5.0, seconds=20.0 / few + 3),
        "inputs": lambda: suite(
            "P7: bad files through the command line, REST and the page, hostile packages, bad questions",
            "tests/app/test_three_doors.py",
            "tests/ingest/readers",
            "tests/ingest/test_decoding.py",
            "tests/app/home/test_hostile_packages.py",
            "tests/app/server/test_bad_questions.py",
        ),
        "fuzzed": lambda: suite(
            f"P7: {10_000 // few:,} files of every format, changed at random: no process dies of one, none "
            "decodes in more than 2 GB, and nothing is written beside the home",
            "tests/ingest/readers/test_fuzzed_files.py",
            told={"PERENNIAL_FUZZED": str(10_000 // few)},
        ),
        "rollback": lambda: rolled_back(
            folder, times=max(20 // few, 2), model="perennial-tiny" if quick else "perennial-photo"
        ),
        "replay": lambda: replayed(folder),
        "attackers": lambda: suite(
            "P8: every route and function as everybody, secrets, sign-in, foreign pages, sockets",
            "tests/app/server/test_every_route.py",
            "tests/app/server/test_secrets.py",
            "tests/app/server/test_roles.py",
            "tests/app/server/test_security.py",
            "tests/app/server/test_connections.py",
            "tests/app/server/test_admission.py",
        ),
        "guards": lambda: guards(folder, most=3 if quick else len(GUARDS)),
    }


def main() -> int:
    """Runs the parts that were asked for, writes the report, and says of each promise whether it holds."""
    arguments = _arguments()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    commit = _commit()
    resumed = arguments.resume and "changes" not in commit
    with tempfile.TemporaryDirectory() as folder:
        todo = parts(Path(folder), quick=arguments.quick, minutes=arguments.minutes)
        for name, measure in todo.items():
            if arguments.only and name not in arguments.only:
                continue
            before = kept.get(name, {})
            if resumed and before.get("holds") and _is_same_code(before.get("commit", "")):
                continue
            print(time.strftime("%H:%M:%S", time.gmtime()), name, flush=True)
            kept[name] = asdict(measure()) | {
                "date": time.strftime("%Y-%m-%d", time.gmtime()),
                "machine": f"Commit {commit}, {machine(1)}",
                "commit": commit,
            }
            if not arguments.quick:
                KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
                REPORT.write_text(
                    INTRODUCTION + measured_tables([kept[one] for one in todo if one in kept]), "utf-8"
                )
    shown = {name: kept[name] for name in todo if name in kept}
    for one in shown.values():
        print(f"{'pass' if one['holds'] else 'FAIL'}  {one['what']}: {one['figure']} (bar: {one['bar']})")
    return 0 if all(one["holds"] for one in shown.values()) else 1


def _commit() -> str:
    """Names the code that is tried, and says whether it differs from its commit."""
    asked = ["git", "rev-parse", "--short=8", "HEAD"], ["git", "status", "--porcelain", "--", "*.py"]
    head, differs = (
        subprocess.run(one, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        for one in asked
    )
    return f"{head} with changes" if differs else head


def _is_same_code(commit: str) -> bool:
    """Says whether what a commit had under CODE is what is tried now."""
    asked = ["git", "diff", "--quiet", commit or "nothing", "HEAD", "--", *CODE]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, check=False).returncode == 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--only", action="append")
    parser.add_argument("--resume", action="store_true", help="what held for this code is not tried again")
    parser.add_argument("--quick", action="store_true", help="small sizes, no report")
    parser.add_argument(
        "--minutes",
        type=float,
        default=120.0,
        help="the longest that processes are killed; the next run goes on where this one stopped",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
