"""What is forked does what a cold process does, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.forked_starts import COLD

pytestmark = pytest.mark.usefixtures("starts_at_once")
_SHOW = (
    "import os, sys; print(sys.argv, sys.path[0], os.environ['X'], sys.stdin.read(), os.getcwd(), flush=True)"
)
# A shell has its background jobs ignore Ctrl-C, and so do all that those start.
_WAIT = (
    "import os, signal, time; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "print(os.getpid(), flush=True); time.sleep(60)"
)


@pytest.mark.parametrize("flags", [[], ["-P"]])
def test_it_has_its_own_arguments_environment_folder_and_files(tmp_path: Path, flags: list[str]) -> None:
    shown = [
        subprocess.run(
            [python, *flags, "-c", _SHOW, "a", "b c"],
            input="read",
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={"X": "y", "PYTHONPATH": "/somewhere"},
        )
        for python in (sys.executable, COLD)
    ]
    assert (shown[0].stdout, shown[0].stderr) == (shown[1].stdout, shown[1].stderr)


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("pass", 0),
        ("raise SystemExit(7)", 7),
        ("raise SystemExit('a reason')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("raise KeyboardInterrupt", -signal.SIGINT),
    ],
)
def test_it_ends_as_a_cold_one_does(code: str, ends: int) -> None:
    forked, cold = (
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        for python in (sys.executable, COLD)
    )
    assert (forked.returncode, cold.returncode) == (ends, ends)
    assert forked.stderr.splitlines()[-1:] == cold.stderr.splitlines()[-1:]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_by_a_signal_to_what_stands_for_it(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", _WAIT], stdout=subprocess.PIPE, text=True) as standing:
        assert standing.stdout is not None
        forked = psutil.Process(int(standing.stdout.readline()))
        standing.send_signal(how)
        assert standing.wait(timeout=60) == -how
        forked.wait(timeout=60)


def test_it_has_the_open_files_that_are_passed_on() -> None:
    ours, theirs = os.pipe()
    code = f"import os; os.write({theirs}, b'said')"
    subprocess.run([sys.executable, "-c", code], pass_fds=[theirs], check=True)
    assert os.read(ours, 4) == b"said"
    for one in (ours, theirs):
        os.close(one)
