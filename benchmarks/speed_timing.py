"""How the measurements of benchmarks/speed.py take times, and what each says."""

from __future__ import annotations

import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
# A process starts with the peak of the one that it was forked from, so that a small one stands between.
_WEIGHED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    file.write(f"{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1000}")
sys.exit(code)
"""


@dataclass(frozen=True)
class Measured:
    """One line of the report: what was measured, what came out, and whether the bar holds."""

    what: str
    figure: str
    bar: str
    holds: bool
    details: str
    steps: tuple[tuple[str, ...], ...] = ()  # of something with several, the rows of a table of its own


@dataclass(frozen=True)
class Took:
    """What a process took, with all that it started and waited for, in seconds; the largest one's memory in MB."""

    wall: float
    cpu: float
    peak: float = 0.0


def timed(call: Callable[[], object]) -> float:
    """Returns the seconds of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def perennial(*words: object) -> tuple[Took, Any]:
    """Runs the command in a new process; returns what it took, and the JSON it wrote."""
    took, said = run([sys.executable, "-m", "perennial", *words], env=environment())
    return took, json.loads(said)


def run(command: Sequence[object], **how: Any) -> tuple[Took, bytes]:
    """Runs a command in a new process; returns what it took, and what it wrote."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
        words = [sys.executable, "-S", "-c", _WEIGHED, file.name, *map(str, command)]
        started = time.perf_counter()
        said = subprocess.run(words, stdout=subprocess.PIPE, **how)
        wall = time.perf_counter() - started
        require(said.returncode == 0, f"{command} ended with {said.returncode}: {said.stdout[-1000:]!r}")
        cpu, peak = map(float, file.read().split())
    return Took(wall, cpu, peak), said.stdout


def require(holds: object, said: object) -> None:
    """Ends a measurement of something that did not happen."""
    if not holds:
        raise RuntimeError(f"this is not what was to be measured: {said}")


def environment() -> dict[str, str]:
    """Returns the environment in which the command is that of this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def spread(seconds: Sequence[float]) -> str:
    """Says the minimum, the median and the maximum of several runs."""
    return f"{min(seconds):.2f} / {statistics.median(seconds):.2f} / {max(seconds):.2f} s"


def in_turn(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Returns the median seconds of each call, after one to warm up, taken in turn."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            kept.append(timed(call))
    return [statistics.median(kept) for kept in times]


def photo(seed: int) -> bytes:
    """Returns a JPEG of the size that photographs on the web have, smooth enough to compress like one."""
    noise = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((500, 375), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()
