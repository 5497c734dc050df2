"""Processor cores: how many a process takes, and that its threads sleep while they wait.

torch and FAISS compute with OpenMP, whose threads spin by default until there is something to do again. Alone on a
machine that saves microseconds. Beside a server, or a second job, those that spin keep those that compute off the
cores (measured: `benchmarks/beside_server.py`, docs/log.md). OpenMP reads its environment when it is loaded, so this
comes before torch.
"""

import os
import sys
import threading
from pathlib import Path

# The first is the standard's; the second is that of LLVM's and Intel's OpenMP.
SLEEP = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}


def environment(threads: int | None) -> dict[str, str]:
    """Returns the environment for a process that computes; what is set there already stays, as do `threads` of None."""
    asked = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    return {**SLEEP, **os.environ, **asked}


def but_one(threads: int | None) -> int | None:
    """Returns how many threads a job beside a server computes with: where nobody said, one core is left to searches."""
    if threads is not None or "OMP_NUM_THREADS" in os.environ:
        return threads
    return max(1, (os.cpu_count() or 1) - 1)


def own_process(module: str, threads: int | None) -> tuple[list[str], dict[str, str]]:
    """Returns the command that runs a module of ours in a process of its own, and its environment."""
    root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    # -P: a folder named `app` in the working directory must not be taken for ours.
    return [sys.executable, "-P", "-m", module], environment(threads) | {"PYTHONPATH": search_path}


def settle(threads: int | None) -> None:
    """Makes that the environment of this process and of those it starts; without effect once torch is loaded."""
    os.environ.update(environment(threads))


def stand_back() -> None:
    """Has all other threads go before this one until it ends; nothing where a thread has no niceness of its own."""
    if sys.platform == "linux":  # where every thread has one: setpriority(2)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
