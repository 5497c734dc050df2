"""Load that asks when it is due, however long the answers take: what a server does with five times what it can.

Whoever waits for an answer before asking the next question hides every stall: the questions that would have met it are
never asked ("coordinated omission"). Here each has its moment, and its latency counts from then.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from peers_bare import queries
from speed_processes import _home as grouped_home
from speed_server import server
from speed_timing import Measured, environment

_CLIENTS, _IDLE_RATE, _WATCH_SECONDS = 4, 5.0, 0.5
_DEADLINE_SECONDS = 30.0
REFUSED_SECONDS, SLOWER, GROWTH, RECOVERS_SECONDS = 1.0, 2.0, 1.1, 10.0
_HEALTH = ("/healthz", "/readyz", "/v1/releases")


@dataclass(frozen=True)
class Asked:
    """What became of one request; `status` is a name where there was no answer."""

    due: float
    seconds: float
    status: int | str
    says_when: bool  # a refusal that says when to come again


def overload(work: Path, *, pictures: int, times: float, seconds: float) -> Measured:
    """Asks a server more than it can answer, and then as little as before."""
    home = grouped_home(work / "overload", pictures)
    env = environment() | {"PERENNIAL_SECOND_TOWER": "where-needed", "OMP_NUM_THREADS": "1"}
    with server(Path(sys.executable), home, env) as (process, client):
        port = client.base_url.port or 0
        asyncio.run(_closed(port, _CLIENTS, 3.0))
        idle = asyncio.run(_open(port, _IDLE_RATE, seconds))[0]
        answered = _answered(asyncio.run(_closed(port, _CLIENTS, 5.0)))
        rate = times * len(answered) / 5.0
        before = _memory(process)
        rush, health = asyncio.run(_open(port, rate, seconds, watched=True))
        grown = _memory(process) / before
        again = asyncio.run(_open(port, _IDLE_RATE, 2 * RECOVERS_SECONDS))[0]
    return _judged(times, idle, rush, health, again, grown, rate / times)


def _judged(
    times: float,
    idle: list[Asked],
    rush: list[Asked],
    health: list[Asked],
    again: list[Asked],
    grown: float,
    rate: float,
) -> Measured:
    usual = _percentile(_answered(idle), 95)
    taken, turned = _answered(rush), [one for one in rush if one.status == 503]
    others = Counter(str(one.status) for one in rush if one.status not in {200, 503})
    slower = _percentile(taken, 95) / usual
    told = max((one.seconds for one in turned), default=0.0)
    late = [one for one in again if one.due - again[0].due > RECOVERS_SECONDS]
    recovered = _percentile(_answered(late), 95) / usual
    wrong = sum(one.status != 200 for one in health)
    holds = (
        slower <= SLOWER
        and told <= REFUSED_SECONDS
        and grown <= GROWTH
        and recovered <= SLOWER
        and not others
        and not wrong
        and all(one.says_when for one in turned)
    )
    return Measured(
        f"P6: {times:.0f} times the queries that a server can answer",
        f"p95 of what is answered {slower:.1f}x that of a server at rest; the slowest refusal after {told:.2f} s; "
        f"memory {grown:.2f}x; ten seconds later p95 {recovered:.1f}x; {wrong} of {len(health)} health checks and "
        "lists failed",
        f"<= {SLOWER:.0f}x; <= {REFUSED_SECONDS:.0f} s; <= {GROWTH:.1f}x; <= {SLOWER:.0f}x; 0",
        holds,
        f"{rate:.0f} a second from {_CLIENTS} clients that wait for their answers; {len(rush)} asked when they were "
        f"due: {len(taken)} answered, p50 {1000 * statistics.median(_seconds(taken)):.0f} ms, {len(turned)} refused, "
        f"{sum(others.values())} neither ({dict(others)}); at rest p50 "
        f"{1000 * statistics.median(_seconds(_answered(idle))):.0f} ms; the slowest health check "
        f"{max(_seconds(health)):.2f} s; whoever asks is on the same machine",
    )


def _answered(every: Sequence[Asked]) -> list[Asked]:
    return [one for one in every if one.status == 200]


def _seconds(every: Sequence[Asked]) -> list[float]:
    return [one.seconds for one in every]


def _percentile(every: Sequence[Asked], share: float) -> float:
    ordered = sorted(_seconds(every))
    return ordered[min(len(ordered) - 1, int(share / 100 * len(ordered)))]


def _memory(process: psutil.Process) -> float:
    return float(sum(one.memory_info().rss for one in [process, *process.children(recursive=True)]))


async def _open(
    port: int, rate: float, seconds: float, *, watched: bool = False
) -> tuple[list[Asked], list[Asked]]:
    """Asks so many a second, whatever becomes of them; beside them the health checks twice a second if wanted."""
    texts = queries()
    tasks: list[asyncio.Task[Asked]] = []
    watching: list[asyncio.Task[Asked]] = []
    gc.disable()  # among ten thousand requests under way it would stop for .2 s, which would look like the server
    start = time.perf_counter()
    for n in itertools.count():
        due = start + n / rate
        if due - start >= seconds:
            break
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.ensure_future(_search(port, next(texts), due)))
        if watched and due - start > len(watching) / len(_HEALTH) * _WATCH_SECONDS:
            watching += [asyncio.ensure_future(_look(port, path)) for path in _HEALTH]
    told = await asyncio.gather(*tasks), await asyncio.gather(*watching)
    gc.enable()
    return told


async def _closed(port: int, clients: int, seconds: float) -> list[Asked]:
    """Asks from several clients, each of which waits for its answer."""
    texts, end = queries(), time.perf_counter() + seconds

    async def client() -> list[Asked]:
        done = []
        while time.perf_counter() < end:
            done.append(await _search(port, next(texts), time.perf_counter()))
        return done

    return [one for every in await asyncio.gather(*(client() for _ in range(clients))) for one in every]


def _search(port: int, text: str, due: float) -> Coroutine[Any, Any, Asked]:
    body = json.dumps({"text": text, "k": 24}).encode()
    return _request(port, "POST", "/v1/search", body, due)


def _look(port: int, path: str) -> Coroutine[Any, Any, Asked]:
    return _request(port, "GET", path, b"", time.perf_counter())


async def _request(port: int, method: str, path: str, body: bytes, due: float) -> Asked:
    """Sends one request over a connection of its own; a client of HTTP would take more than the server does."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    status: int | str = "nothing"
    said = b""
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode() + body)
            said = await reader.read()
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        status = int(said[9:12]) if said else "nothing"
    except (OSError, TimeoutError) as error:
        status = type(error).__name__
    return Asked(due, time.perf_counter() - due, status, b"retry-after" in said[:2000].lower())
