"""Releases that are damaged, gone back to and made again, a thousand, twenty and five times."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from soak_kills import GATE, commanded, upload
from speed_server import server
from speed_timing import Measured, environment, require

from app.desk.jobs import UpdateRequest
from app.home.folder import Home
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import job_runner, worker
from app.learning import adding, going_live
from app.learning.beginning import initialise
from app.learning.training import CHECKPOINTS
from ingest.intake import IntakeOptions
from ingest.records import FINAL_STATES
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.checkpoint import FILE
from model_updates.strategies import strategy_named
from tests.app.doctor.test_damage_at_start import flips, make_other_release
from tests.model_updates.tiny import quick

STEPS_DOWN_SECONDS, BACK_SECONDS, COLD_SECONDS = 10.0, 5.0, 60.0
COLD_STARTS = 3
# Tables; both towers, with a memory, held weights, and adapters of low rank; adapters of a domain.
STRATEGIES = ("language-tables", "er", "ewc", "c-clip", "domain-adapters")
KILLED = "er"
_SCENES, _PICTURES = 30, 50


def flipped(work: Path, *, count: int) -> Measured:
    """Flips bytes of what is served, one by one: the release before answers, or what was damaged is made again."""
    settings = load_settings(home=work / "flipped")
    initialise(settings)
    with Workspace.open(settings) as workspace:
        adding.add_chunk(
            workspace, upload(work / "flipped-pictures", *range(40))[0], IntakeOptions(), by="soak"
        )
    make_other_release(settings)
    began = time.monotonic()
    found = list(flips(settings, count))
    bad, slowest = [wrong for wrong, _ in found if wrong], max(seconds for _, seconds in found)
    return Measured(
        f"P4: {count:,} flipped bytes of what is served",
        f"{count - len(bad):,} found; an answer after at most {slowest:.1f} s",
        f"{count:,}; <= {STEPS_DOWN_SECONDS:.0f} s",
        not bad and slowest <= STEPS_DOWN_SECONDS,
        "files of the live version, its index, its release and its commit by turns, at a random byte, every second "
        "one with the time of before; each is found by who opens the home, and the release before answers, or a graph "
        f"is made again to the byte; `perennial-tiny`, {time.monotonic() - began:.0f} s"
        f"{'; ' + '; '.join(bad[:5]) if bad else ''}",
    )


def rolled_back(work: Path, *, times: int, model: str) -> Measured:
    """Goes back through a running server, and forward again; then starts servers from the older release."""
    home = work / "rolled-back"
    settings = load_settings(home=home)
    initialise(settings, model=model)
    with Workspace.open(settings) as workspace:
        pictures = upload(work / "rolled-back-pictures", *range(_PICTURES))[0]
        adding.add_chunk(workspace, pictures, IntakeOptions(), by="soak")
        older = going_live.live_release(workspace)[1].id
    make_other_release(settings)
    with Workspace.open(settings) as workspace:
        newer = going_live.live_release(workspace)[1].id
    warm = []
    with server(Path(sys.executable), home, environment()) as (_, client):
        for _ in range(times):
            warm.append(_seconds_to(client, "/v1/rollback", older))
            _seconds_to(client, f"/v1/releases/{newer}/promote", newer)
        _seconds_to(client, "/v1/rollback", older)
    cold = []
    for _ in range(COLD_STARTS):
        began = time.monotonic()
        with server(Path(sys.executable), home, environment()) as (_, client):
            require(_answering(client) == older, "a server starts from another release")
            cold.append(time.monotonic() - began)
    in_time = sum(seconds <= BACK_SECONDS for seconds in warm)
    return Measured(
        f"P9: {times} rollbacks through a running server",
        f"{in_time} of {times} within {BACK_SECONDS:.0f} s, the slowest {max(warm):.2f} s; a server starts from the "
        f"older release in at most {max(cold):.1f} s",
        f"{times}; <= {COLD_SECONDS:.0f} s",
        in_time == times and max(cold) <= COLD_SECONDS,
        f"from the request to an answer of a search by the older release, whose encoder has other weights; "
        f"`{model}`, {_PICTURES} pictures; started {COLD_STARTS} times",
    )


def _seconds_to(client: httpx.Client, path: str, release: str) -> float:
    began = time.monotonic()
    client.post(
        path, json={"why": "soak", **({"force": True} if "promote" in path else {})}
    ).raise_for_status()
    require(_answering(client) == release, f"another release answers than {release}")
    return time.monotonic() - began


def _answering(client: httpx.Client) -> str:
    answer = client.post("/v1/search", json={"text": "a red boat", "language": "en", "k": 5})
    return str(answer.raise_for_status().json()["release"])


def replayed(work: Path) -> Measured:
    """Replays what several strategies made, one of them by an update that was killed and resumed."""
    settings = load_settings(home=work / "replayed", gate=GATE)
    initialise(settings)
    said = {strategy: _replay(settings, release) for strategy, release in _taught(settings, work)}
    same = sum(bool(found["is_identical"]) for found in said.values())
    others = [
        f"{name}: {found['differing'][:3]}" for name, found in said.items() if not found["is_identical"]
    ]
    return Measured(
        f"P10: {len(said)} releases replayed",
        f"{same} of {len(said)} the same to the bit",
        f"{len(said)}",
        same == len(said),
        f"`perennial replay` in a process of its own, on the same machine: {', '.join(said)}; the update of {KILLED} "
        f"was killed after a checkpoint and resumed{'; ' + '; '.join(others) if others else ''}",
    )


def _taught(settings: Settings, work: Path) -> Iterator[tuple[str, str]]:
    every = list(all_scenes())
    for number, strategy in enumerate(STRATEGIES):
        source = work / f"replayed-{number}.zip"
        drawn = [(scene, "flat", n) for n, scene in enumerate(every[number::100][:_SCENES])]
        write_chunk(source, scenes=drawn, languages=["en", "de"])
        with Workspace.open(settings) as workspace:
            chunk = adding.add_chunk(workspace, source, IntakeOptions(), by="soak").report.chunk_id
        options = quick(strategy_named(strategy)) | ({"epochs": 4} if strategy == KILLED else {})
        request = UpdateRequest(chunk, strategy, options, seed=number, promote=False, by="soak")
        job = worker.submit(settings, "update", request.to_json()).id
        if strategy == KILLED:
            _killed_after_a_checkpoint(settings, job)
        job_runner.run_job(settings, job)
        with Workspace.open(settings) as workspace:
            done = workspace.catalog.job(job)
            require(
                done.state in FINAL_STATES and done.result.get("release"),
                (done.state, done.error, done.result),
            )
            release = str(done.result["release"])
            going_live.promote(workspace, release, why="soak", by="soak", force=True)
        yield strategy, release


def _killed_after_a_checkpoint(settings: Settings, job: str) -> None:
    """Kills the job's worker once an epoch is written, and has the job wait to be resumed."""
    worker.spawn(settings, job)
    checkpoint = settings.home / "staging" / job / CHECKPOINTS / FILE
    while not checkpoint.exists():
        require(
            worker.is_alive(Home.open(settings.home), job), "the worker ended before its first checkpoint"
        )
        time.sleep(0.002)
    worker._signal(Home.open(settings.home), job, signal.SIGKILL)
    while worker.is_alive(Home.open(settings.home), job):
        time.sleep(0.01)
    require([one.id for one in worker.recover(settings)] == [job], "it was not killed at work")
    worker.resume(settings, job)


def _replay(settings: Settings, release: str) -> dict[str, Any]:
    done = commanded(settings.home, "replay", release, "--json")
    require(done.stdout, done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    require("is_identical" in found, found)
    return found
