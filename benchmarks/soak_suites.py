"""Tests of `make test` that are a promise by themselves: how many cases there are, and whether each holds."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

from speed_timing import ROOT, Measured, environment


def suite(what: str, *paths: str, told: Mapping[str, str] = MappingProxyType({})) -> Measured:
    """Runs the tests of some files, slow ones too, and counts them; `told` is added to their environment."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not gpu", *paths],
        cwd=ROOT,
        env=environment() | {"OMP_NUM_THREADS": "1"} | dict(told),
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {
        word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)
    }
    bad = counts.get("failed", 0) + counts.get("error", 0)
    return Measured(
        what,
        f"{counts.get('passed', 0)} cases hold, {bad} do not",
        "0 do not",
        done.returncode == 0 and bad == 0,
        f"`pytest {' '.join(paths)}`, {counts.get('skipped', 0)} skipped",
    )
