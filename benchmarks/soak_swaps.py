"""Swaps of the live release of a real server, under load and while an update trains: none may fail or mix releases."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
from speed_server import server
from speed_timing import Measured, environment, require

from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live, update_cycle
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.gate.report import Policy

SLOWER, _IDLE_SECONDS, _TAKES_OVER_SECONDS = 1.5, 30.0, 10.0
_TEXTS = [scenes.caption(scene, "en") for scene in list(scenes.all_scenes())[::97]]


@dataclass(frozen=True)
class Answered:
    """One query: how long it took from when it was due, and which release gave which pictures; none where it failed."""

    seconds: float
    text: str
    release: str = ""
    pictures: tuple[str, ...] = ()


def swaps_under_load(work: Path, *, swaps: int, rate: float, pause: float) -> Measured:
    """Swaps two releases with different towers and galleries every `pause` seconds while a third one is trained."""
    home, releases, chunk = _prepared(work)
    # The update stands back for the server as it does for everybody.
    free = ("OMP_NUM_THREADS", "PERENNIAL_NICENESS")
    env = {name: value for name, value in environment().items() if name not in free}
    with server(Path(sys.executable), home, env) as (process, client):
        right = {(one, text): _asked(client, text, one)[1] for one in releases for text in _TEXTS}
        idle = asyncio.run(_load(client.base_url, rate, _IDLE_SECONDS))
        job = _begun(client, home, chunk)
        before = _job_seconds(process.pid)
        told, made = asyncio.run(_swapped(client.base_url, releases, swaps, rate, pause))
        trained = _job_seconds(process.pid) - before
        still = client.get(f"/v1/jobs/{job}").raise_for_status().json()
        client.post(f"/v1/jobs/{job}/cancel").raise_for_status()
    return _judged(idle, told, right, made, trained, still["state"])


def _judged(
    idle: Sequence[Answered],
    told: Sequence[Answered],
    right: Mapping[tuple[str, str], tuple[str, ...]],
    made: int,
    trained: float,
    state: str,
) -> Measured:
    failed = sum(not one.release for one in told)
    torn = sum(bool(one.release) and right[one.release, one.text] != one.pictures for one in told)
    usual, busy = (statistics.quantiles([one.seconds for one in some], n=20)[-1] for some in (idle, told))
    answered = {one.release for one in told} - {""}
    return Measured(
        f"P5: {made} swaps under load while an update trains",
        f"{failed} failed, {torn} torn of {len(told):,} queries; p95 {busy / usual:.2f}x that of a server at rest",
        f"0 failed, 0 torn; <= {SLOWER}x",
        not failed and not torn and len(answered) == 2 and busy <= SLOWER * usual and state == "running",
        f"over HTTP, each asked when it was due; the two releases differ in both towers and in their vectors; an "
        f"answer is torn when it is not the one that its own release gives; p95 {1000 * usual:.0f} and "
        f"{1000 * busy:.0f} ms, the slowest {max(one.seconds for one in told):.2f} s; the update was {state} at the "
        f"end and took {trained:.0f} s of processor time meanwhile; whoever asks is on the same machine",
    )


async def _swapped(
    url: httpx.URL, releases: Sequence[str], swaps: int, rate: float, pause: float
) -> tuple[list[Answered], int]:
    """Returns what became of the queries, and how many swaps a server made of those that it was asked for."""
    load = asyncio.create_task(_load(url, rate, swaps * pause))
    made = 0
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        for n in range(swaps):
            due = time.perf_counter() + pause
            other = releases[(n + 1) % 2]  # the first is live
            said = await client.post(f"/v1/releases/{other}/promote", json={"why": "soak", "force": True})
            require(said.status_code == 200, said.text)
            while (await client.get("/readyz")).json()["release"] != other:
                require(time.perf_counter() < due + _TAKES_OVER_SECONDS, f"{other} does not take over")
                await asyncio.sleep(0.02)
            made += 1
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
    return await load, made


async def _load(url: httpx.URL, rate: float, seconds: float) -> list[Answered]:
    """Asks so many a second, however long the answers take."""
    start, asked = time.perf_counter(), []
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        for n in range(int(rate * seconds)):
            due = start + n / rate
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            asked.append(asyncio.create_task(_answered(client, _TEXTS[n % len(_TEXTS)], due)))
        return list(await asyncio.gather(*asked))


async def _answered(client: httpx.AsyncClient, text: str, due: float) -> Answered:
    try:
        said = await client.post("/v1/search", json={"text": text, "language": "en"})
        release, pictures = _read(said)
    except httpx.HTTPError:
        return Answered(time.perf_counter() - due, text)
    return Answered(time.perf_counter() - due, text, release, pictures)


def _asked(client: httpx.Client, text: str, release: str) -> tuple[str, tuple[str, ...]]:
    return _read(client.post("/v1/search", json={"text": text, "language": "en", "release": release}))


def _read(said: httpx.Response) -> tuple[str, tuple[str, ...]]:
    answer: dict[str, Any] = said.raise_for_status().json()
    return answer["release"], tuple(hit["id"] for hit in answer["hits"])


def _begun(client: httpx.Client, home: Path, chunk: str) -> str:
    """Starts an update that outlasts the swaps, and returns its job once it trains."""
    asked = {"chunk": chunk, "strategy": "finetune", "options": {"epochs": 1000}, "promote": False}
    job: str = client.post("/v1/updates", json=asked).raise_for_status().json()["id"]
    for _ in range(600):
        known = client.get(f"/v1/jobs/{job}").raise_for_status().json()
        if known["state"] == "running" and known["progress"].get("name") == "train":
            return job
        require(known["state"] in {"queued", "running"}, known)
        time.sleep(0.2)
    log = (home / "perennial.log").read_text(encoding="utf-8").splitlines()[-40:]
    raise RuntimeError("\n".join([f"the update does not begin to train: {known}", *log]))


def _job_seconds(server_id: int) -> float:
    """Returns the processor seconds of what the server has started and what still runs."""
    children = psutil.Process(server_id).children(recursive=True)
    return float(sum(sum(one.cpu_times()[:2]) for one in children))


def _prepared(work: Path) -> tuple[Path, tuple[str, str], str]:
    """Makes a home with two releases, the first of them live; returns it, them, and a chunk that waits to be taught."""
    gate = Policy(minimum_images=10**6, cross_fit=False, pooled_drop=100.0, slice_drop=100.0, samples=100)
    settings = Settings(home=work / "swap-home", device="cpu", gate=gate)
    beginning.initialise(settings)
    with Workspace.open(settings) as workspace:
        added = [
            _added(workspace, work / f"swap-{language}.zip", language, count)
            for language, count in (("en", 200), ("de", 600))
        ]
        first = going_live.live_release(workspace)[1].id
        request = UpdateRequest(added[0], strategy="finetune", options={"epochs": 1}, by="benchmark")
        scratch = workspace.home.staging / "soak"
        outcome = update_cycle.update(workspace, request, scratch=scratch, progress=_nobody_watches)
    if outcome.release is None:
        raise RuntimeError(f"the second release was not made: {outcome.sentence}")
    return settings.home, (first, outcome.release), added[1]


def _added(workspace: Workspace, source: Path, language: str, count: int) -> str:
    drawn = [(scene, "flat", n) for n, scene in enumerate(list(scenes.all_scenes())[:count])]
    write_chunk(source, scenes=drawn, languages=[language])
    return adding.add_chunk(workspace, source, IntakeOptions(), by="benchmark").report.chunk_id


def _nobody_watches(_: Stage) -> None:
    """Takes no notice."""
