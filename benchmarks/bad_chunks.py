"""Damages chunks in every way we know and says what their checks made of it; writes docs/results/bad-chunks.md.

    python benchmarks/bad_chunks.py --data ../shared/data
    python benchmarks/bad_chunks.py --data ../shared/data --train

The first runs the checks of a chunk (`app.learning.chunk_checks`) on features that are computed once, 20 seeds each.
The second drives the product: uploads, checks, and an update for what passes them; few seeds. Each finished part
leaves a JSON file in the work folder and is not run again; the report is written anew from all files there are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from bad_chunks_damages import COUNTED_DAMAGES, MATCH_DAMAGES, Damage
from bad_chunks_report import write_report
from bad_chunks_worlds import WORLDS, Collections, Material, Values, World
from numpy.typing import NDArray

from app.learning.chunk_checks import judge_languages, judge_match, judge_repetition
from app.learning.chunk_findings import MATCH, MIXTURE, match_findings
from ingest.findings import Finding, Outcome
from model_updates.trust.matching import FEWEST, Matching, matching

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "bad-chunks.md"
SIZES = (300, 1_000, 3_000)
LISTED = ("shuffled 5 %", "shuffled 15 %")  # damages whose doubtful pairs are compared with the truth
# How many of the seeds the larger sizes get: a chunk of 3,000 takes ten times as long as one of 300.
SEEDS_SHARE = {300: 1.0, 1_000: 0.4, 3_000: 0.15}


def main() -> None:
    """Runs what is not finished yet and writes the report."""
    arguments = _arguments()
    torch.set_num_threads(1)
    results = arguments.work / "results"
    results.mkdir(parents=True, exist_ok=True)
    if not arguments.report_only:
        if arguments.train:
            from bad_chunks_product import run_product

            run_product(arguments.data, arguments.work, arguments.encoder, arguments.seeds, say)
        else:
            _run_checks(arguments, results)
    write_report(results, arguments.report)


def _run_checks(arguments: argparse.Namespace, results: Path) -> None:
    collections: dict[str, Collections] = {}
    for world, size, seed in jobs(arguments.seeds, arguments.sizes, arguments.encoder):
        path = results / f"{world.name}.{size}.{seed}.json"
        if path.exists():
            continue
        known = collections.setdefault(
            world.encoder, Collections(arguments.data, arguments.work, world.encoder, say)
        )
        started = time.monotonic()
        material = known.material(world, size, seed)
        values: Values = {
            "world": world.name,
            "encoder": world.encoder,
            "collection": world.collection,
            "kind": world.kind,
            "language": "" if material is None else material.language,
            "size": size,
            "seed": seed,
            "runs": [] if material is None else judged(material, known, seed),
        }
        _write(path, values | {"seconds": round(time.monotonic() - started, 1)})
        say(f"{world.name} {size} seed {seed}: {time.monotonic() - started:.0f} s")


def jobs(seeds: int, sizes: list[int], encoder: str | None) -> Iterator[tuple[World, int, int]]:
    """Yields every world, size and seed, small chunks and first seeds first."""
    for size in sizes:
        for seed in range(max(1, round(seeds * SEEDS_SHARE.get(size, 1.0)))):
            for world in WORLDS:
                if encoder in (None, world.encoder):
                    yield world, size, seed


def judged(material: Material, known: Collections, seed: int) -> list[Values]:
    """Damages one chunk in every way and returns what its checks said each time."""
    runs = [
        _run(name, damage, material, known, seed, counted=False) for name, damage in MATCH_DAMAGES.items()
    ]
    runs += [
        _run(name, damage, material, known, seed, counted=True) for name, damage in COUNTED_DAMAGES.items()
    ]
    return [run for run in runs if run]


def _run(
    name: str, damage: Damage, material: Material, known: Collections, seed: int, *, counted: bool
) -> Values:
    done = damage(material, np.random.default_rng((seed, 7)))
    if done is None:
        return {}
    started, listed = time.monotonic(), Values()
    found = judge_repetition(done.chunk)
    if counted or name == "clean":  # the other damages keep every caption, so the language is as it was
        found += judge_languages(done.chunk, known.encoder.profiles)
    if name in LISTED:
        seen = matching(done.chunk.pairs, done.chunk.parts, reference=done.chunk.reference)
        listed = _listed(seen, done.wrong)
        found += match_findings(done.chunk, seen)
    elif not counted or len(done.chunk.pairs) < FEWEST:
        found += judge_match(done.chunk)
    held = [f.check for f in found if f.outcome in (Outcome.HOLD, Outcome.REJECT)]
    named = set(held) | {
        f.check for f in found if f.check == MIXTURE
    }  # which lists rows without holding a chunk
    values: Values = {
        "damage": name,
        "held": held,
        "right": bool(done.right & named),
        "expected": sorted(done.right),
        "sentences": [f.sentence for f in found if f.check in held][:2],
        "seconds": round(time.monotonic() - started, 2),
    }
    by_check: dict[str, Finding] = {finding.check: finding for finding in found}
    if MATCH in by_check:
        values |= {"match": by_check[MATCH].outcome.value, "figures": dict(by_check[MATCH].figures)}
    return values | listed


def _listed(seen: Matching, wrong: NDArray[np.bool_]) -> Values:
    """Returns how well the doubtful pairs are found: AUC of their scores, precision and length of the list."""
    if seen.scores is None or seen.mismatch is None or not wrong.any():
        return {}
    below = seen.scores[wrong][:, None] < seen.scores[~wrong][None]
    even = seen.scores[wrong][:, None] == seen.scores[~wrong][None]
    listed = seen.mismatch.doubtful
    return {
        "auc": float(np.mean(below + 0.5 * even)),
        "listed": len(listed),
        "precision": float(wrong[listed].mean()) if len(listed) else None,
    }


def say(line: str) -> None:
    """Prints a line with the time."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def _write(path: Path, values: Values) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(values, indent=1), encoding="utf-8")
    draft.replace(path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument(
        "--work", type=Path, default=Path("work/bad-chunks"), help="features, homes and results"
    )
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--encoder", choices=sorted({world.encoder for world in WORLDS}))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--train", action="store_true", help="drive the product, updates included")
    parser.add_argument("--report-only", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    main()
