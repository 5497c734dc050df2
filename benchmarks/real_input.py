"""Runs Perennial on real input and writes docs/results/real-input.md.

    python benchmarks/real_input.py --data ../shared/data

Three parts: (a) seven languages on emoji, one after another, with four strategies; (b) a new drawing style on top of
them with three; (c) photographs and four languages, with the defaults. Seed 0 of everything comes first. Each
finished run leaves a JSON file in the work folder and is not run again, so the benchmark can be stopped at any time;
the report is written anew after each run, from all files there are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from evergreen_runs import run_evergreen, run_evergreen_photos, run_seven_languages
from real_input_report import write_report
from real_input_runs import CHAINS, STYLES, Bench, Values, run_languages, run_photos, run_style

PARTS = ("emoji-languages", "emoji-styles", "flickr", "evergreen", "evergreen-photos", "evergreen-languages")
REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "real-input.md"

Job = tuple[str, str, int, Callable[[], Values]]


def main() -> None:
    """Runs what is not finished yet and writes the report."""
    arguments = _arguments()
    torch.set_num_threads(arguments.threads)
    results = arguments.work / "results"
    results.mkdir(parents=True, exist_ok=True)
    bench = Bench(arguments.data, arguments.work, arguments.limit, arguments.photos, say)
    if not arguments.report_only:
        for part, run, seed, work in jobs(bench, range(arguments.first_seed, arguments.seeds)):
            path = results / f"{part}.{run}.{seed}.json"
            if path.exists() or (arguments.only and part not in arguments.only):
                continue
            say(f"start {part} {run} seed {seed}")
            started = time.monotonic()
            values = work() | {
                "part": part,
                "run": run,
                "seed": seed,
                "date": time.strftime("%Y-%m-%d", time.gmtime()),
                "machine": machine(arguments.threads),
                "run_seconds": round(time.monotonic() - started, 1),
                "limit": arguments.limit,
            }
            _write(path, values)
            say(f"done {part} {run} seed {seed} in {values['run_seconds']} s")
            write_report(results, arguments.report)
    write_report(results, arguments.report)


def jobs(bench: Bench, seeds: range) -> Iterator[Job]:
    """Yields every run, all of one seed before the next seed."""
    for seed in seeds:
        for chain in CHAINS:
            yield PARTS[0], chain.name, seed, lambda c=chain, s=seed: run_languages(bench, c, s)  # type: ignore[misc]
        for chain in STYLES:
            yield PARTS[1], chain.name, seed, lambda c=chain, s=seed: run_style(bench, c, s)  # type: ignore[misc]
        yield PARTS[2], "default", seed, lambda s=seed: run_photos(bench, s)  # type: ignore[misc]
        yield PARTS[3], "default", seed, lambda s=seed: run_evergreen(bench, s)  # type: ignore[misc]
        yield PARTS[5], "default", seed, lambda s=seed: run_seven_languages(bench, s)  # type: ignore[misc]
        if seed == 0:
            yield PARTS[4], "default", seed, lambda s=seed: run_evergreen_photos(bench, s)  # type: ignore[misc]


def say(line: str) -> None:
    """Prints a line with the time."""
    print(time.strftime("%H:%M:%S", time.gmtime()), line, flush=True)


def machine(threads: int) -> str:
    """Says what the figures were measured on."""
    return (
        f"{platform.machine()}, {os.cpu_count()} CPU cores, {threads} torch threads, "
        f"Python {platform.python_version()}, torch {torch.__version__.split('+')[0]}"
    )


def _write(path: Path, values: Values) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    temporary.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--data", type=Path, required="--report-only" not in sys.argv, help="the evaluation data"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be given again")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0, help="for sharing the seeds between processes")
    parser.add_argument("--work", type=Path, default=Path("real-input-work"), help="homes and finished runs")
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--photos", type=int, default=2000, help="training photos of the part flickr")
    parser.add_argument("--limit", type=int, help="only so many concepts, to try things out")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--report-only", action="store_true", help="write the report from the finished runs")
    return parser.parse_args()


if __name__ == "__main__":
    main()
