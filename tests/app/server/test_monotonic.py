"""Claims about monotonic reads: who has seen a commit is answered from there on by any server, or told to wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.client import connection
from app.client.connection import Connection
from app.client.errors import Refused
from app.home.workspace import Workspace
from app.learning import going_live
from app.server.monotonic import COMMIT
from tests.app.server.served import Served, make_home, refusal, search, served

NEVER = 10**6


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Served, Served]]:
    """Two servers of one home; the second looks for what is new only when it is told to."""
    settings = make_home(tmp_path)
    asleep = settings.model_copy(update={"poll_seconds": 1000.0})
    with served(settings) as first, served(asleep, with_jobs=False) as second:
        yield first, second


def _promote(server: Served, release: str) -> None:
    with server.client() as client:
        full = next(
            one["id"]
            for one in client.get("/v1/releases").json()["releases"]
            if one["id"].startswith(release)
        )
        said = {"why": "test", "force": True}
        client.post(f"/v1/releases/{full}/promote", json=said).raise_for_status()


def test_an_answer_says_up_to_which_commit_the_server_knows(two: tuple[Served, Served]) -> None:
    first, _ = two
    with first.client() as client:
        answer = client.post("/v1/search", json={"text": "a red boat"})
        assert answer.headers[COMMIT] == str(answer.json()["commit"]) == "1"
        _promote(first, "r2")
        again = client.post("/v1/search", json={"text": "a red boat"})
        assert again.headers[COMMIT] == str(again.json()["commit"]) == "2"
        assert client.get("/v1/choices", headers={COMMIT: "2"}).headers[COMMIT] == "2"


def test_who_has_seen_the_new_release_waits_for_it_or_is_refused(two: tuple[Served, Served]) -> None:
    first, second = two
    _promote(first, "r2")
    with second.client() as client:
        assert search(client)["commit"] == 1, "it has not looked yet"
        started = time.monotonic()
        told = client.post("/v1/search", json={"text": "a red boat"}, headers={COMMIT: "2"})
        assert refusal(told) == (503, "commit_not_reached")
        assert told.headers["retry-after"]
        assert told.headers[COMMIT] == "1"
        assert time.monotonic() - started < 4
        looks = threading.Timer(0.3, second.serving.refresh)
        looks.start()
        answer = client.post("/v1/search", json={"text": "a red boat"}, headers={COMMIT: "2"})
        looks.join()
        assert (answer.status_code, answer.json()["commit"]) == (200, 2)


def test_a_client_remembers_what_it_has_seen(two: tuple[Served, Served]) -> None:
    first, second = two
    with Connection(first.url) as asking:
        _promote(first, "r2")
        asking.ask("GET", "/v1/choices")
        asking._http.base_url = httpx.URL(second.url)  # as a balancer of load would send it
        with pytest.raises(Refused, match="seen commit 2"):
            asking.ask("GET", "/v1/choices")
        second.serving.refresh()
        assert asking.ask("GET", "/v1/choices").headers[COMMIT] == "2"


def test_a_client_forgets_what_no_answer_knows_any_more(
    two: tuple[Served, Served], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_FORGOTTEN_SECONDS", 1.0)
    first, second = two
    with Connection(first.url) as asking:
        _promote(first, "r2")
        asking.ask("GET", "/v1/choices")
        asking._http.base_url = httpx.URL(second.url)  # as if the home had been restored from before
        for _ in range(2):
            with pytest.raises(Refused, match="seen commit 2"):
                asking.ask("GET", "/v1/choices")
        assert asking.ask("GET", "/v1/choices").headers[COMMIT] == "1"


def test_health_is_said_to_everybody_at_once(two: tuple[Served, Served]) -> None:
    with two[0].client() as client:
        for path in ("/healthz", "/readyz", "/metrics", "/version"):
            assert client.get(path, headers={COMMIT: str(NEVER)}).status_code == 200


def test_many_who_wait_hold_up_nobody_else(two: tuple[Served, Served]) -> None:
    _, second = two
    statuses: list[int] = []

    def ask_too_early() -> None:
        with second.client() as client:
            statuses.append(client.get("/v1/choices", headers={COMMIT: str(NEVER)}).status_code)

    waiting = [threading.Thread(target=ask_too_early) for _ in range(40)]
    for one in waiting:
        one.start()
    with second.client() as client:
        for _ in range(5):
            assert search(client)["hits"]
        assert len(statuses) < len(waiting), "they no longer wait"
    for one in waiting:
        one.join()
    assert statuses == [503] * len(waiting)


@pytest.mark.parametrize("said", ["abc", "-1", "1.5", "", "²", "9" * 19])
def test_what_is_no_commit_is_refused(two: tuple[Served, Served], said: str) -> None:
    with two[0].client() as client:
        told = client.get("/v1/choices", headers={COMMIT.encode(): said.encode()})
        assert refusal(told) == (400, "bad_commit")


def test_whoever_has_seen_what_was_damaged_since_is_answered_all_the_same(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with Workspace.open(settings) as workspace:
        going_live.promote(workspace, "r2", by="tests", why="tests", force=True)
        record = workspace.releases.release("r2")
        weights = next((workspace.home.versions / record.version).glob("*.safetensors"))
    damaged = bytearray(weights.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    with served(settings) as server, server.client() as client:
        assert search(client)["commit"] == 2
        weights.unlink()  # a file that others link to would change, too
        weights.write_bytes(damaged)
        server.serving.workspace.releases.find_damage(record)
        server.serving.refresh()
        answer = client.post("/v1/search", json={"text": "a red boat"}, headers={COMMIT: "2"})
        assert answer.json()["commit"] == 1, answer.text
        assert answer.headers[COMMIT] == "2"


@pytest.mark.parametrize("said", ["²", "-1", "new", "", "9" * 5000])
def test_a_client_does_not_take_up_what_is_no_commit(said: str) -> None:
    with Connection("http://127.0.0.1:1") as asking:
        asking._note_commit(httpx.Response(200, headers={COMMIT.encode(): said.encode()}))
        assert asking._commit == 0
