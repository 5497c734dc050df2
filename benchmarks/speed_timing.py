"""How the measurements of benchmarks/speed.py take times, and what each says."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """One line of the report: what was measured, what came out, and whether the bar holds."""

    what: str
    figure: str
    bar: str
    holds: bool
    details: str


def timed(call: Callable[[], object]) -> float:
    """Returns the seconds of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turn(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Returns the median seconds of each call, after one to warm up, taken in turn."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            kept.append(timed(call))
    return [statistics.median(kept) for kept in times]
