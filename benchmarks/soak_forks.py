"""Real verbs in processes of their own that start at once: forked from one that has imported all and done nothing.

A cold start takes seconds, in which a kill meets nothing but imports. What runs in the fork is what `perennial` and a
worker run, from their first line of code on; the process that is forked opens no home, has no thread and computes
nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from speed_timing import ROOT

_IMPORTED = (
    "__main__",
    "soak_forks",
    "app.commands.beside",
    "app.jobs.job_runner",
    "app.learning.removal",
    "app.local.at_home",
    "app.web",
    "model_updates.strategies",
)
JOB = "job"
"""In the place of a verb: what a worker runs."""


class Verbs:
    """Starts verbs."""

    def __init__(self, environment: dict[str, str]) -> None:
        """Imports all that they may need, once, under variables of the environment."""
        os.environ.update(environment)
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
        self._context: Any = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(_IMPORTED))

    def start(self, words: Sequence[object], home: Path) -> BaseProcess:
        """Starts a verb on a home, and returns its process, the leader of a session of its own."""
        process: BaseProcess = self._context.Process(target=_run, args=([*map(str, words)], str(home)))
        process.start()
        return process


def _run(words: list[str], home: str) -> None:
    os.setsid()
    out = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(out, number)
    if words[0] == JOB:
        from app.jobs.job_runner import main as run_job

        raise SystemExit(run_job(["--home", home, *words[1:]]))
    from perennial import main

    sys.argv = ["perennial", *words, "--home", home]
    main()
