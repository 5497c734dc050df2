"""Claims about releases over REST: read, judged, made live and taken back."""

from __future__ import annotations

import time
from pathlib import Path

import httpx

from tests.app.server.served import make_home, refusal, search, served


def test_releases_are_listed_newest_first_with_the_live_one_marked(client: httpx.Client) -> None:
    listed = client.get("/v1/releases").json()["releases"]
    assert [entry["id"][:2] for entry in listed] == ["r3", "r2", "r1"]
    assert [entry["live"] for entry in listed] == [False, False, True]
    assert [entry["verdict"] for entry in listed] == ["review", "promote", None]
    detail = client.get("/v1/releases/r2").json()
    assert detail["manifest"]["gate"]["verdict"] == "promote"
    assert detail["judged"]["gate"]["verdict"] == "promote"
    assert client.get("/v1/releases/r1").json()["judged"]["gate"] is None
    assert refusal(client.get("/v1/releases/r77")) == (404, "unknown_release")


def test_the_lineage_and_the_difference_of_two_releases_can_be_asked(client: httpx.Client) -> None:
    nodes = client.get("/v1/lineage").json()["releases"]
    assert [node["release"][:2] for node in nodes] == ["r3", "r2", "r1"]
    assert [node["is_live"] for node in nodes] == [False, False, True]
    assert nodes[-1]["periods"][0]["by"] == "tests"
    found = client.get("/v1/releases/r1/difference/r2").json()
    assert found["languages"] == {"added": ["de"], "gone": []}
    assert refusal(client.get("/v1/releases/r1/difference/r77")) == (404, "unknown_release")


def test_a_release_is_rejected_with_a_note_and_what_is_live_is_pinned(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        assert refusal(client.post("/v1/releases/r2/reject", json={"why": ""})) == (422, "bad_option")
        assert (
            client.post("/v1/releases/r2/reject", json={"why": "mixes boats up"}).json()["said"] == "rejected"
        )
        refused = client.post("/v1/releases/r2/promote", json={})
        assert refusal(refused) == (400, "usage_problem")
        assert "mixes boats up" in refused.json()["error"]
        assert client.post("/v1/releases/r2/keep", json={}).status_code == 200
        assert client.post("/v1/pin", json={"why": "exhibition"}).json()["release"][:3] == "r1-"
        assert refusal(client.post("/v1/releases/r2/promote", json={"force": True})) == (400, "usage_problem")
        said = client.get("/v1/release-words").json()
        assert said["pinned"]["why"] == "exhibition"
        assert [word["said"] for word in said["words"]] == ["pinned", "kept", "rejected"]
        assert client.post("/v1/unpin", json={}).status_code == 200
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200


def test_with_nothing_to_go_back_to_the_request_is_wrong_and_not_the_server(client: httpx.Client) -> None:
    assert refusal(client.post("/v1/rollback", json={})) == (409, "nothing_before")


def test_going_live_and_back_is_answered_by_the_new_release_at_once(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        promoted = client.post("/v1/releases/r2/promote", json={"why": "better"}).json()
        assert promoted["reason"] == "promote"
        assert search(client)["release"] == promoted["release"]
        assert refusal(client.post("/v1/releases/r2/promote", json={})) == (400, "usage_problem")
        assert refusal(client.post("/v1/releases/r9/promote", json={})) == (404, "unknown_release")
        # What the gate left to a person needs that person to say so.
        assert refusal(client.post("/v1/releases/r3/promote", json={})) == (400, "usage_problem")
        assert refusal(client.post("/v1/releases/r3/promote", json={"force": True})) == (400, "usage_problem")
        accepted = client.post("/v1/releases/r3/promote", json={"force": True, "why": "few pictures"})
        assert accepted.status_code == 200
        back = client.post("/v1/rollback", json={"release": "r1", "why": "worse"}).json()
        assert (back["reason"], back["release"][:2]) == ("rollback", "r1")
        assert search(client)["release"] == back["release"]
        assert refusal(client.post("/v1/rollback", json={"release": "r1"})) == (400, "usage_problem")


def test_a_commit_of_another_process_is_served_within_a_moment(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with served(settings) as running, running.client() as client:
        releases = running.serving.workspace.releases
        second = releases.release("r2").id
        releases.commit(second, parent=1, reason="promote", why="elsewhere", by="another")
        deadline = time.monotonic() + 20
        while client.get("/readyz").json()["release"] != second:
            assert time.monotonic() < deadline, "the server never noticed the commit"
            time.sleep(0.05)
        assert search(client)["release"] == second


def test_a_home_without_a_release_is_alive_but_not_ready(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    for commit in (settings.home / "commits").iterdir():
        commit.unlink()
    with served(settings, with_pages=True) as running, running.client() as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        away = client.get("/readyz")
        assert refusal(away) == (503, "no_release")
        assert "init" in away.json()["error"]
        assert refusal(client.post("/v1/search", json={"text": "boat"})) == (503, "no_release")
        assert client.get("/").status_code == 200
        releases = running.serving.workspace.releases
        releases.commit(releases.release("r1").id, parent=None, reason="init", why="later", by="tests")
        _wait_for(client, 200)


def _wait_for(client: httpx.Client, status: int) -> None:
    deadline = time.monotonic() + 20
    while client.get("/readyz").status_code != status:
        assert time.monotonic() < deadline, f"the server never answered {status}"
        time.sleep(0.05)
