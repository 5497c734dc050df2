"""What further processes add to a server that is asked at once by several, and what a query costs among very many."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psutil
from interface_home import make_home
from peers_bare import HITS, asked, queries
from peers_programs import asker
from speed_server import server
from speed_timing import Measured, environment

GROWTH, QUERY_MS = 1.8, 12.0
CLIENTS = (1, 8)
_TRUNK = 1280  # what the image tower of perennial-photo gives
_CENTRES, _SPREAD = 2000, 0.5
_WARM_SECONDS, _PAUSE_SECONDS = 2.0, 0.1
_LOOK_SECONDS, _QUIET_PERCENT = 0.5, 15.0
Load = dict[str, float]
Ask = Callable[[str], None]


def more_processes(work: Path, *, pictures: int, rounds: int, seconds: float, patience: float) -> Measured:
    """Asks a server of one process and one of two by turns, each query after another from several clients.

    Other work on the machine takes cores from both, and most from the one that needs two. It never gives any, so that
    the best round of each is compared.

    Args:
        work: a folder.
        pictures: of the home.
        rounds: of all loads.
        seconds: of each load.
        patience: how many seconds are waited, in all rounds together, for other work to rest.
    """
    home = _home(work / "processes", pictures)
    loads: dict[tuple[int, int], list[Load]] = {(n, clients): [] for n in (1, 2) for clients in CLIENTS}
    with ExitStack() as stack:
        servers = {n: stack.enter_context(_running(home, n)) for n in (1, 2)}
        for port, _ in servers.values():
            asked(_ask(port), CLIENTS[-1], _WARM_SECONDS)
        end = time.monotonic() + patience
        for _ in range(rounds):
            _wait_for_quiet(end)
            for (n, clients), kept in loads.items():
                port, processes = servers[n]
                kept.append(asked(_ask(port), clients, seconds, lambda used=processes: _spent(used)))  # type: ignore[misc]
        memory = {
            n: sum(one.memory_full_info().pss for one in used) / 1e6 for n, (_, used) in servers.items()
        }
    one, two = (loads[n, CLIENTS[-1]] for n in (1, 2))
    best = {key: max(every, key=lambda load: load["rate"]) for key, every in loads.items()}
    ratio = best[2, CLIENTS[-1]]["rate"] / best[1, CLIENTS[-1]]["rate"]
    side_by_side = statistics.median(b["rate"] / a["rate"] for a, b in zip(one, two, strict=True))
    return Measured(
        f"queries a second of a server of two processes, {CLIENTS[-1]} clients",
        f"{ratio:.2f}x those of one",
        f">= {GROWTH}x",
        ratio >= GROWTH,
        f"`perennial-photo` with its first tower, {pictures:,} pictures, no text asked twice, the language detected; "
        f"the best of {rounds} rounds of {seconds:g} s by turns, beside other work; of each round the ratio is "
        f"{side_by_side:.2f} in the median; processor time is that of all processes of the server, and memory that "
        "they share is divided among them; the clients are threads of one process on the same machine",
        tuple(_row(*key, load, memory[key[0]]) for key, load in best.items()),
    )


def large_gallery(work: Path, *, pictures: int, seconds: float) -> Measured:
    """Asks a server about a gallery that is searched through lists, one query after another."""
    kind = f"IVF{1 << round(np.log2(np.sqrt(pictures)))},SQfp16"
    with patch.dict(os.environ, PERENNIAL_INDEX=kind):
        home = _home(work / "large", pictures)
    with _running(home, 1) as (port, processes):
        asked(_ask(port), 1, _WARM_SECONDS)
        load = asked(_ask(port), 1, seconds, lambda: _spent(processes))
    return Measured(
        f"a query over REST, {pictures:,} pictures, an approximate index",
        f"{load['cpu']:.1f} ms of the processor",
        f"<= {QUERY_MS:.0f} ms",
        load["cpu"] <= QUERY_MS,
        f"`perennial-photo` with its first tower, {kind} of 896 dimensions, as wide as 99 of 100 are found; "
        f"{load['asked']:.0f} texts one after another, none asked twice, the language detected; p50 "
        f"{load['p50']:.1f} ms",
    )


def _wait_for_quiet(end: float) -> None:
    """Waits, not beyond a moment, until no other work takes cores; what stands back for everything may go on."""
    while time.monotonic() < end:
        cores = psutil.cpu_times_percent(interval=_LOOK_SECONDS)
        if cores.user + cores.system < _QUIET_PERCENT:
            return


def _row(n: int, clients: int, load: Load, memory: float) -> tuple[str, ...]:
    processes = f"{n} process{'es' * (n > 1)}, {clients} client{'s' * (clients > 1)}"
    busy = load["rate"] * load["cpu"] / 1000
    return (
        f"{processes}: {load['rate']:.0f} queries a second, {busy:.2f} cores",
        f"{load['p50']:.1f} ms",
        f"{load['cpu']:.1f} ms",
        f"{memory:.0f} MB",
    )


def _home(folder: Path, pictures: int) -> Path:
    """Makes a home whose pictures lie in groups, as those of a library do."""
    dice = np.random.default_rng(0)
    rows = dice.standard_normal((_CENTRES, _TRUNK), dtype=np.float32)[dice.integers(_CENTRES, size=pictures)]
    rows += _SPREAD * dice.standard_normal(rows.shape, dtype=np.float32)
    return make_home(folder, pictures, rows, model="perennial-photo")


@contextmanager
def _running(home: Path, n: int) -> Iterator[tuple[int, list[psutil.Process]]]:
    """Yields the port of a server of so many processes, once each of them answers, and the processes."""
    env = environment() | {"PERENNIAL_SECOND_TOWER": "where-needed", "OMP_NUM_THREADS": "1"}
    with server(Path(sys.executable), home, env, "--processes", str(n)) as (first, client):
        port = client.base_url.port or 0
        held: list[Ask] = []
        while sum(_answers(one, port) for one in first.children()) < n - 1:
            time.sleep(_PAUSE_SECONDS)
            held.append(_ask(port))
            held[-1](next(queries()))
        held.clear()
        yield port, [first, *first.children()]


def _answers(process: psutil.Process, port: int) -> bool:
    return any(one.laddr.port == port for one in process.net_connections("tcp"))


def _ask(port: int) -> Ask:
    return asker(port, "/v1/search", lambda text: {"text": text, "k": HITS})


def _spent(processes: list[psutil.Process]) -> float:
    return float(sum(sum(one.cpu_times()[:2]) for one in processes))
