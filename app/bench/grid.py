"""The grid: every strategy of a sequence with every seed, cell by cell, in processes of their own.

A cell that is finished for the same sequence is not run again, so a stopped benchmark goes on where it was, here or on
another machine that has the files. Each cell has a process to itself: its peak memory is its own, and one that fails
takes no other with it.
"""

import logging
import multiprocessing
import os
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from app.bench.sequence import BenchSequence, StrategyRun
from app.desk.errors import AppError
from app.home.settings import Settings

logger = logging.getLogger(__name__)

Say = Callable[[str], None]


@dataclass(frozen=True)
class CellTask:
    """One cell to run."""

    settings: Settings  # of the home whose chunks are taught
    sequence: BenchSequence  # what is taught and measured
    compared: StrategyRun  # the strategy
    seed: int  # of the run
    folder: Path  # where finished cells are kept
    threads: int = 1  # of torch

    @property
    def name(self) -> str:
        """What progress calls it."""
        return f"{self.sequence.name}: {self.compared.label}, seed {self.seed}"


@dataclass(frozen=True)
class Failed:
    """A cell that could not be run, and why."""

    name: str
    reason: str


def missing(tasks: Sequence[CellTask]) -> list[CellTask]:
    """Returns the cells that are not finished for their sequence as it is now, those of the first seed first."""
    from app.bench.results import read_cells

    kept = {
        (folder, name): read_cells(folder, name)
        for folder, name in {(task.folder, task.sequence.name) for task in tasks}
    }

    def is_finished(task: CellTask) -> bool:
        cell = kept[task.folder, task.sequence.name].get((task.compared.label, task.seed))
        return cell is not None and cell.digest == task.sequence.digest(task.compared)

    left = [task for task in tasks if not is_finished(task)]
    return sorted(left, key=lambda task: task.sequence.seeds.index(task.seed))


def run_grid(tasks: Sequence[CellTask], *, processes: int, say: Say, fresh: bool = True) -> list[Failed]:
    """Runs cells, so many at once; returns those that failed.

    `tasks` are what is `missing`. With `fresh`, each cell has a process of its own, so that its peak memory is its own;
    else processes are used again.
    """
    failed = []
    for done, (task, reason) in enumerate(_finished(tasks, processes, fresh), start=1):
        if reason:
            failed.append(Failed(task.name, reason))
            say(f"{done} of {len(tasks)}  {task.name}: failed: {reason}")
        else:
            say(f"{done} of {len(tasks)}  {task.name}")
    return failed


def _finished(tasks: Sequence[CellTask], processes: int, fresh: bool) -> Iterator[tuple[CellTask, str]]:
    with _pool(processes, fresh) as pool:
        waiting: dict[Future[str], CellTask] = {}
        queue = list(tasks)
        while queue or waiting:
            while queue and len(waiting) < processes:
                task = queue.pop(0)
                waiting[pool.submit(_run, task)] = task
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                yield waiting.pop(future), future.result()


def _pool(processes: int, fresh: bool) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max(1, processes),
        mp_context=multiprocessing.get_context("spawn"),  # not fork: torch's threads do not survive one
        initializer=_end_with_parent,
        max_tasks_per_child=1 if fresh else None,
    )


def _end_with_parent() -> None:
    """Ends this process as soon as the one that started it is gone: a benchmark that was killed computes no further."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _run(task: CellTask) -> str:
    """Runs one cell in its own process; returns why it failed, "" when it did not."""
    os.environ.setdefault("OMP_NUM_THREADS", str(task.threads))
    from app.bench.cell import run_cell
    from app.bench.results import write_cell
    from app.home.workspace import Workspace
    from model_updates.errors import ModelUpdateError

    try:
        with Workspace.open(task.settings, read_only=True) as workspace:
            cell = run_cell(workspace, task.sequence, task.compared, task.seed, threads=task.threads)
        write_cell(task.folder, cell)
    except (AppError, ModelUpdateError) as error:
        return str(error)
    except Exception as error:
        logger.exception("a cell failed")
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
    return ""
