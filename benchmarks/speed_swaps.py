"""Swaps of the live release under load: no query may fail, none may mix two releases."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from speed_timing import Measured

from app.desk.hits import SearchRequest
from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, update_cycle
from app.query.grammar import parse
from app.query.question import Question
from app.server.security import ANYONE
from app.server.served import Served
from app.server.serving import Serving
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.gate.report import Policy

# Between swaps, so that several queries meet each release at 20 a second.
SWAP_PAUSE_SECONDS = 0.25


def swaps_under_load(work: Path, *, swaps: int, rate: float) -> Measured:
    """Swaps between two releases with different towers and galleries while queries come in at a steady rate."""
    gate = Policy(minimum_images=10**6, cross_fit=False, pooled_drop=100.0, slice_drop=100.0, samples=100)
    settings = Settings(home=work / "swap-home", device="cpu", poll_seconds=0.05, gate=gate)
    update_cycle.initialise(settings)
    with Workspace.open(settings) as workspace:
        releases = _two_releases(workspace, work)
        serving = Serving(workspace)
        serving.start()
        queries = [scenes.caption(scene, "en") for scene in list(scenes.all_scenes())[::97]]
        expected = {
            (release, query): _found(serving, query, release)[1] for release in releases for query in queries
        }
        load = _Load(serving, queries, expected, rate)
        load.start()
        seen: list[str] = [serving.snapshot().release.id]
        for n in range(swaps):
            other = releases[n % 2] if seen[-1] != releases[n % 2] else releases[(n + 1) % 2]
            going_live.promote(workspace, other, why="benchmark", by="benchmark", force=True)
            while serving.snapshot().release.id != other:
                time.sleep(0.005)
            seen.append(other)
            time.sleep(SWAP_PAUSE_SECONDS)
        load.stop()
        serving.stop()
    made = len(seen) - 1
    return Measured(
        f"{made} swaps under {rate:.0f} queries a second",
        f"{load.failed} failed, {load.torn} torn of {load.asked} queries",
        "0 failed, 0 torn",
        load.failed == 0 and load.torn == 0 and made == swaps,
        f"the two releases differ in both towers and in their vectors; an answer is torn when it is not the one that "
        f"its own release gives; answers came from {len(load.releases)} releases; slowest "
        f"query {1000 * load.slowest:.0f} ms",
    )


def _two_releases(workspace: Workspace, work: Path) -> tuple[str, str]:
    source = work / "swap.zip"
    drawn = [(scene, "flat", n) for n, scene in enumerate(list(scenes.all_scenes())[:200])]
    write_chunk(source, scenes=drawn, languages=["en"])
    added = adding.add_chunk(workspace, source, IntakeOptions(), by="benchmark")
    first = going_live.live_release(workspace)[1].id
    request = UpdateRequest(
        chunk=added.report.chunk_id, strategy="finetune", options={"epochs": 1}, by="benchmark"
    )

    def ignore(_: Stage) -> None:
        """Nobody watches."""

    outcome = update_cycle.update(
        workspace, request, scratch=workspace.home.staging / "speed", progress=ignore
    )
    if outcome.release is None:
        raise RuntimeError(f"the second release was not made: {outcome.sentence}")
    return first, outcome.release


class _Load:
    """Asks at a steady rate from several threads and keeps count."""

    threads = 4

    def __init__(
        self,
        serving: Serving,
        queries: Sequence[str],
        expected: dict[tuple[str, str], list[str]],
        rate: float,
    ) -> None:
        self._serving, self._queries, self._expected = serving, queries, expected
        self._pause = self.threads / rate
        self._done = threading.Event()
        self._lock = threading.Lock()
        self.asked = self.failed = self.torn = 0
        self.slowest = 0.0
        self.releases: set[str] = set()
        self._workers = [threading.Thread(target=self._ask, args=(n,)) for n in range(self.threads)]

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        self._done.set()
        for worker in self._workers:
            worker.join()

    def _ask(self, number: int) -> None:
        turn = number
        due = time.monotonic() + number * self._pause / self.threads
        while not self._done.wait(max(0.0, due - time.monotonic())):
            due += self._pause
            turn += 1
            query = self._queries[turn % len(self._queries)]
            started = time.monotonic()
            try:
                release, found = _found(self._serving, query)
            except Exception:  # noqa: BLE001  whatever it is, the query failed, and that is the count
                with self._lock:
                    self.asked, self.failed = self.asked + 1, self.failed + 1
                continue
            torn = found != self._expected[release, query]
            with self._lock:
                self.asked += 1
                self.torn += torn
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.releases.add(release)


def _found(serving: Serving, query: str, release: str | None = None) -> tuple[str, list[str]]:
    asked = SearchRequest(language="en", release=release)
    answer = Served(serving, ANYONE).find(Question(parse(query), asked=asked))
    return answer.release, [hit.id for hit in answer.hits]
