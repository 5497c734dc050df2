"""Asks the gate about homes whose truth is known, and writes docs/results/gate.md.

    python benchmarks/gate_power.py

Every verdict is the real gate's (`model_updates.gate.rules.judge`) on made-up ranks (`gate_worlds.py`). Each finished
part leaves a JSON file in the work folder; the report is written from those there are (`--report-only`).
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gate_report import write_report
from gate_worlds import Levels, Size, World, after, french, least_protected, worst_stand

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "gate.md"
SLICES, THINGS, DEVIATIONS, PROMOTIONS = (1, 2, 4, 8, 20, 60), (100, 150, 300), (0.1, 0.15, 0.2), (0, 8)
STEPS = 20
MANY = 20  # slices; from here on a home takes minutes
Values = dict[str, Any]


def main() -> None:
    """Runs what is not finished yet and writes the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--work", type=Path, default=Path("gate-power-work"), help="finished parts")
    parser.add_argument("--runs", type=int, default=40, help="of each home")
    parser.add_argument("--only", help="parts whose name begins so")
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.work.mkdir(parents=True, exist_ok=True)
    for name, part in () if arguments.report_only else _parts(arguments.runs):
        path = arguments.work / f"{name}.json"
        if path.exists() or (arguments.only and not name.startswith(arguments.only)):
            continue
        started = time.monotonic()
        values = part() | {"date": time.strftime("%Y-%m-%d", time.gmtime()), "runs": arguments.runs}
        path.write_text(json.dumps(values), encoding="utf-8")
        print(f"{name}: {values} in {time.monotonic() - started:.0f} s", flush=True)
    write_report(arguments.work, arguments.report)


def _parts(runs: int) -> Iterator[tuple[str, Callable[[], Values]]]:
    for attack in ("french", "least"):
        for size in (Size(4), Size(8), Size(20), Size(2), Size(1), Size(8, memory=0)):
            name = f"drift-{attack}-{size.slices}-{size.things}-{size.deviation}-{size.memory}"
            yield name, lambda a=attack, s=size: _drift(s, a, runs)  # type: ignore[misc]
    for drop in (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0):
        yield f"slice-drop-{drop}", lambda d=drop: _asked(Size(8), 0, _one_slice(d), runs)  # type: ignore[misc]
        yield f"pool-drop-{drop}", lambda d=drop: _asked(Size(8), 0, _all_slices(d), runs)  # type: ignore[misc]
    for gain, things in product((0.0, 1.0, 2.0, 3.0, 5.0, 7.0, 10.0), THINGS):
        size = Size(8, things)
        yield f"gain-{gain}-{things}", lambda g=gain, s=size: _asked(s, 0, _all_slices(0.0), runs, g)  # type: ignore[misc]
    for size, promotions in _homes():
        name = f"home-{size.slices}-{size.things}-{size.deviation}-{promotions}"
        yield name, lambda s=size, p=promotions: _home(s, p, runs)  # type: ignore[misc]


def _homes() -> list[tuple[Size, int]]:
    """The homes that are asked about, those that the bars name first; with many slices not every size."""
    homes = [
        (Size(slices, things, deviation), promotions)
        for slices, things, deviation, promotions in product(SLICES, THINGS, DEVIATIONS, PROMOTIONS)
        if slices < MANY or things == 150 or deviation == 0.15
    ]
    return sorted(homes, key=lambda home: (home[0].things != 150 or home[0].deviation > 0.15, home[0].slices))


def _home(size: Size, promotions: int, runs: int) -> Values:
    """Counts verdicts on three candidates for one home: harmless, one slice -8, all slices -3."""
    candidates = {"benign": _all_slices(0.0), "slice": _one_slice(8.0), "pool": _all_slices(3.0)}
    verdicts: dict[str, Counter[str]] = {kind: Counter() for kind in candidates}
    for seed in range(runs):
        world = after(size, promotions, np.random.default_rng((seed, size.slices, promotions)))
        for kind, losses in candidates.items():
            report = world.judge(world.measure(losses(size.slices)))
            verdicts[kind][str(report.verdict)] += 1
    return {kind: {"verdicts": counts} for kind, counts in verdicts.items()}


def _one_slice(points: float) -> Callable[[int], Levels]:
    return lambda slices: points * (np.arange(slices) == 0)


def _all_slices(points: float) -> Callable[[int], Levels]:
    return lambda slices: np.full(slices, points)


def _asked(
    size: Size, promotions: int, losses: Callable[[int], Levels], runs: int, gain: float = 30.0
) -> Values:
    """Counts verdicts on candidates that truly lose so much, and the rules that stood in the way."""
    verdicts: Counter[str] = Counter()
    stopped: Counter[str] = Counter()
    for seed in range(runs):
        world = after(size, promotions, np.random.default_rng((seed, size.slices, promotions)))
        report = world.judge(world.measure(losses(size.slices)), gain=gain)
        verdicts[str(report.verdict)] += 1
        stopped.update(rule.rule for rule in report.rules if rule.verdict != "promote")
    return {"verdicts": verdicts, "stopped": stopped}


def _drift(size: Size, attack: str, runs: int) -> Values:
    """Lets an attack try twenty candidates in a row, and says how far below their high water things ever stood."""
    move = {"french": french, "least": least_protected}[attack]
    slices, pools, promoted = [], [], []
    for seed in range(runs):
        world = World(size, np.random.default_rng((seed, size.slices, 7)))
        attempts = 1
        for _ in range(STEPS):
            losses = move(world.losses[-1])
            measured = world.measure(losses)
            if world.judge(measured, attempts=attempts).verdict == "promote":
                world.go_live(losses, measured)
                attempts = 1
            else:
                attempts += 1
        stand = worst_stand(world.losses)
        slices.append(stand[0])
        pools.append(stand[1])
        promoted.append(len(world.losses) - 1)
    return {"slices": slices, "pools": pools, "promoted": promoted}


if __name__ == "__main__":
    main()
