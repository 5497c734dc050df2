"""A server over time: swaps under load, and what it tidies up when it starts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.home.workspace import Workspace
from app.learning import going_live
from app.local.at_home import AtHome
from app.query.snapshot import Snapshot
from app.server.serving import Serving
from model_updates.versions import write_version
from tests.app.server.served import Served, make_home, served

QUESTION = {"text": "a red boat on the beach", "language": "en", "k": 5}
SWAPS = 12
ASKERS = 2
DAY = 86_400


class Asker(threading.Thread):
    """Asks the same question again and again and keeps every answer."""

    def __init__(self, server: Served) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.stopping = threading.Event()
        self.statuses: list[int] = []
        self.answers: set[tuple[str, tuple[tuple[str, float], ...]]] = set()

    def run(self) -> None:
        with self.server.client() as client:
            while not self.stopping.is_set():
                self.ask(client)

    def ask(self, client: httpx.Client) -> None:
        answer = client.post("/v1/search", json=QUESTION)
        self.statuses.append(answer.status_code)
        if answer.status_code == 200:
            self.answers.add(_told(answer))


def _told(answer: httpx.Response) -> tuple[str, tuple[tuple[str, float], ...]]:
    body = answer.json()
    return body["release"], tuple((hit["id"], hit["score"]) for hit in body["hits"])


def test_no_query_fails_and_none_mixes_two_releases_while_releases_swap(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as server, server.client() as client:
        workspace = server.serving.workspace
        ids = [workspace.releases.release(name).id for name in ("r1", "r2")]
        whole = {
            _told(client.post("/v1/search", json=QUESTION | {"release": release_id})) for release_id in ids
        }
        assert len({hits for _, hits in whole}) == 2, "the two releases must answer differently"
        askers = [Asker(server) for _ in range(ASKERS)]
        for asker in askers:
            asker.start()
        for n in range(SWAPS):
            wanted = ids[(n + 1) % 2]
            going_live.promote(workspace, wanted, why="swap", by="test", force=True)
            _wait_for(server, wanted)
        for asker in askers:
            asker.stopping.set()
        for asker in askers:
            asker.join(timeout=60)
    statuses = [status for asker in askers for status in asker.statuses]
    answers = set().union(*(asker.answers for asker in askers))
    assert set(statuses) == {200}
    assert len(statuses) > SWAPS, "too few queries to meet the swaps"
    assert answers == whole


def _wait_for(server: Served, release_id: str) -> None:
    deadline = time.monotonic() + 60
    while server.serving.snapshot().release.id != release_id:
        assert time.monotonic() < deadline, f"{release_id} never came"
        time.sleep(0.01)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(make_home(tmp_path))


def test_a_server_that_starts_removes_old_leftovers_and_nothing_else(workspace: Workspace) -> None:
    staging = workspace.home.staging
    job = workspace.catalog.add_job("update", {"chunk": "c"})
    workspace.catalog.update_job(job.id, state="failed", error="The power went.")
    for name in ("old", "new", job.id):
        (staging / name).mkdir()
        (staging / name / "checkpoint").write_bytes(b"x")
    yesterday = time.time() - DAY - 60
    for path in (staging / "old" / "checkpoint", staging / "old", staging / job.id):
        os.utime(path, (yesterday, yesterday))
    releases = [record.id for record in workspace.releases.releases()]
    orphans = [_orphan(workspace, name) for name in ("rejected today", "rejected long ago")]
    os.utime(workspace.home.versions / orphans[1], (time.time() - 8 * DAY,) * 2)

    serving = Serving(workspace)
    serving.start()
    serving.stop()

    assert sorted(path.name for path in staging.iterdir()) == sorted(["new", job.id])
    assert [(workspace.home.versions / orphan).exists() for orphan in orphans] == [True, False]
    assert [record.id for record in workspace.releases.releases()] == releases
    for release_id in releases:
        workspace.releases.verify_release(release_id)
    workspace.close()


def test_who_goes_back_does_not_wait_until_what_was_live_is_prepared(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = next(one.id for one in workspace.releases.releases() if one.id != live_id(workspace))
    serving, goes_on, prepared = Serving(workspace), threading.Event(), list[str]()

    def slowly(snapshot: Snapshot) -> None:
        prepared.append(snapshot.release.id)
        assert goes_on.wait(60)

    monkeypatch.setattr(serving.finder, "prepare", slowly)
    serving.start()
    try:
        _until(lambda: len(prepared) == 1)
        going_live.promote(workspace, other, why="swap", by="test", force=True)
        _until(lambda: serving.snapshot().release.id == other)
        assert other not in prepared, "it was still busy with the one before"
        goes_on.set()
        _until(lambda: prepared[-1] == other)
    finally:
        goes_on.set()
        serving.stop()
        workspace.close()


def live_id(workspace: Workspace) -> str:
    return going_live.live_release(workspace)[1].id


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def _orphan(workspace: Workspace, name: str) -> str:
    """Publishes a version that no release names, as a rejected update does."""
    encoder = workspace.open_encoder(workspace.releases.release("r1").version)
    write_version(workspace.home.staging / name, encoder, {"languages": ["en"], "name": name}, {})
    return workspace.releases.publish_version(workspace.home.staging / name)


def test_a_server_that_starts_leaves_everything_while_somebody_updates(workspace: Workspace) -> None:
    old = workspace.home.staging / "old"
    old.mkdir()
    os.utime(old, (time.time() - 2 * DAY,) * 2)
    serving = Serving(workspace)

    def start() -> None:
        serving.start()
        serving.stop()

    with workspace.releases.updater_lock("updating"):
        thread = threading.Thread(target=start)
        thread.start()
        thread.join(timeout=60)
    assert old.exists()
    workspace.close()


def test_a_server_that_goes_on_for_days_tidies_again(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.server.serving._DAY", 0.0)
    serving, until = Serving(workspace), time.monotonic() + 60
    serving.start()
    for name in ("at the start", "a day later"):
        left = workspace.home.staging / name
        left.mkdir()
        os.utime(left, (time.time() - 2 * DAY,) * 2)
        while left.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not left.exists()
    serving.stop()
    workspace.close()


def test_a_disk_that_is_away_at_the_first_load_is_looked_at_again(workspace: Workspace) -> None:
    commits = workspace.home.commits
    hidden = commits.rename(commits.with_name("hidden"))
    serving = Serving(workspace)
    assert serving.refresh() is False
    assert serving.problem
    hidden.rename(commits)
    assert serving.refresh() is True
    workspace.close()


def test_the_watch_outlives_whatever_a_step_of_it_meets(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    serving, met = Serving(workspace), threading.Event()

    def unforeseen(snapshot: object) -> None:
        met.set()
        raise ZeroDivisionError

    monkeypatch.setattr(serving.finder, "prepare", unforeseen)
    serving.start()
    assert met.wait(60)
    assert serving._poller is not None
    serving._poller.join(0.5)
    assert serving._poller.is_alive()
    serving.stop()
    workspace.close()


def test_what_one_process_took_out_of_the_gallery_no_other_shows(workspace: Workspace) -> None:
    catalog, (chunk,) = workspace.catalog, [one for one in workspace.catalog.chunks() if one.in_gallery]
    with Workspace.open(workspace.settings) as elsewhere, AtHome(workspace.settings, by="test") as desk:
        serving = Serving(elsewhere, is_first=False)
        serving.refresh()
        every = serving.snapshot().pictures
        assert desk.snapshot().pictures == every > 0

        catalog.set_standing(chunk.id, "withdrawn", by="test", why="wrong pictures")
        serving.hide(is_new=False)  # as the watch does each second
        assert serving.snapshot().pictures == desk.snapshot().pictures == every - chunk.images

        catalog.set_standing(chunk.id, "new", by="test", why="")
        serving.hide(is_new=False)
        assert serving.snapshot().pictures == desk.snapshot().pictures == every
    workspace.close()
