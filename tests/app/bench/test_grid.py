"""The grid's processes: none outlives the benchmark that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

GRID = """
import os, time
from app.bench import grid

if __name__ == "__main__":
    with grid._pool(1, fresh=False) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 60).result()
"""


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_killed_benchmark_leaves_no_process_behind(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(GRID)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        worker = int(benchmark.stdout.readline())
        assert _is_there(worker)
        benchmark.send_signal(signal.SIGKILL)
        benchmark.wait()
    for _ in range(100):
        if not _is_there(worker):
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    raise AssertionError("the worker goes on")
