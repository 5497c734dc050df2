from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.home import cores

ROOT = Path(__file__).parents[3]
# What OpenMP itself says when it is loaded, whichever library it is.
SLEEPS = re.compile(r"OMP_WAIT_POLICY\s*=\s*'PASSIVE'")
TWO_THREADS = re.compile(r"OMP_NUM_THREADS\s*=\s*'2'")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_WAIT_POLICY", "KMP_BLOCKTIME", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_threads_that_wait_sleep_and_their_number_is_left_alone() -> None:
    found = cores.environment(None)
    assert found["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "OMP_NUM_THREADS" not in found
    assert cores.environment(3)["OMP_NUM_THREADS"] == "3"


def test_what_somebody_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert cores.environment(None)["OMP_WAIT_POLICY"] == "ACTIVE"
    assert cores.environment(None)["OMP_NUM_THREADS"] == "7"


def test_a_job_beside_a_server_leaves_it_a_core_unless_somebody_said_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for there, taken in ((8, 7), (2, 1), (1, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda there=there: there)
        assert cores.but_one(None) == taken
    assert cores.but_one(6) == 6
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert cores.but_one(None) is None


def test_a_verb_settles_this_before_it_loads_torch(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from app.commands.terminal import settings_for; "
        f"settings_for(Path({str(tmp_path)!r}), threads=2); import torch; print(torch.get_num_threads())"
    )
    told = os.environ | {"OMP_DISPLAY_ENV": "TRUE", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True)
    assert SLEEPS.search(ran.stderr), ran.stderr
    assert TWO_THREADS.search(ran.stderr)
    assert ran.stdout.strip() == "2"
