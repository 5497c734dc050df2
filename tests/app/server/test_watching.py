"""Claims about a server that watches folders: search follows them by itself."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from app.home.workspace import Workspace
from app.jobs import worker
from app.server.served import Served
from app.server.watching import FolderWatch
from ingest import watching
from ingest.records import JobRecord
from tests.app.server.served import make_home, served
from tests.ingest.material import folder_of, picture


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_QUIET_MILLISECONDS", 50)
    monkeypatch.setattr(watching, "_LOOK_MILLISECONDS", 300)


def _paths(client: httpx.Client) -> set[str]:
    hits = client.post("/v1/search", json={"text": "a boat", "k": 100}).json()["hits"]
    return {
        Path(one["place"]).name
        for hit in hits
        for one in hit["sources"]
        if one["kind"] == "file" and not one["gone"]
    }


def _until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end, "search did not follow the folder"
        time.sleep(0.2)


def test_search_follows_a_watched_folder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1), "b.png": picture(2)})
    settings = make_home(tmp_path, watch=[folder, tmp_path / "not there"])
    with served(settings) as server, server.client() as client:
        _until(lambda: _paths(client) == {"a.png", "b.png"})
        (folder / "c.png").write_bytes(picture(3))
        (folder / "broken.png").write_bytes(b"nothing")
        _until(lambda: _paths(client) == {"a.png", "b.png", "c.png"})
        (folder / "a.png").rename(folder / "moved.png")
        (folder / "b.png").unlink()
        _until(lambda: _paths(client) == {"moved.png", "c.png"})
        jobs = [one for one in client.get("/v1/jobs").json()["jobs"] if one["kind"] == "folder"]
        assert {one["state"] for one in jobs} <= {"queued", "running", "succeeded"}


def test_only_who_may_see_places_is_told_of_the_folder_and_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path / "photos", {"inner/a.png": picture(1), "inner/broken.png": b"nothing"})
    for name in ("inner/other.bin", ".hidden"):
        (folder / name).write_bytes(b"nothing")
    settings = make_home(tmp_path, watch=[folder])

    def told(client: httpx.Client) -> str:
        routes = ["/v1/jobs", f"/v1/jobs/{job}", f"/v1/jobs/{job}/events", "/v1/status"]
        routes += [f"/v1/chunks/{chunk}", f"/v1/chunks/{chunk}/report.csv"]
        return "".join(client.get(route).raise_for_status().text for route in routes)

    with served(settings) as server, server.client() as client:
        _until(lambda: _paths(client) == {"a.png"})
        _until(lambda: client.get("/v1/jobs").json()["jobs"][0]["state"] == "succeeded")
        job = client.get("/v1/jobs").json()["jobs"][0]["id"]
        chunk = client.get("/v1/chunks").json()["chunks"][0]["id"]
        everything = told(client)
        named = (str(folder), "inner/broken.png", "inner/other.bin")
        assert all(name in everything for name in named)
        monkeypatch.setattr(Served, "may_see_places", lambda _: False)
        assert {str(folder) in told(client), "inner" in told(client)} == {False}
        report = client.get(f"/v1/chunks/{chunk}").json()["report"]
        assert report["rows_left_out"] == 2
        assert report["notes"] == ["1 hidden files or folders were ignored"]


def test_what_a_person_withdrew_stays_out_of_what_is_watched(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1), "b.png": picture(2)})
    settings = make_home(tmp_path, watch=[folder])
    with served(settings) as server, server.client() as client:
        _until(lambda: _paths(client) == {"a.png", "b.png"})
        chunk = client.get("/v1/chunks").json()["chunks"][0]["id"]
        assert client.post(f"/v1/chunks/{chunk}/withdraw", json={"why": "not these"}).status_code == 200
        (folder / "c.png").write_bytes(picture(3))
        _until(lambda: _paths(client) == {"c.png"})


def test_a_folder_is_looked_at_from_before_the_server_is_ready_and_once(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    followed: list[JobRecord] = []
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:
        watch = FolderWatch(workspace, followed.append)
        watch.start()
        watch.start()  # as the server does that has become ready
        _until(lambda: bool(followed))
        time.sleep(0.5)
        watch.stop()
        jobs = workspace.catalog.jobs()
    assert [job.arguments["folder"] for job in followed] == [str(folder)]
    assert [job.id for job in jobs] == [followed[0].id]


def test_a_folder_whose_job_failed_is_looked_at_again_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", 0.4)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    settings = make_home(tmp_path, watch=[folder])
    (commits := settings.home / "commits").rename(tmp_path / "away")
    commits.mkdir()
    with Workspace.open(settings) as workspace:

        def job_states() -> list[str]:
            return [job.state for job in workspace.catalog.jobs()]

        watch = FolderWatch(workspace, lambda job: worker.spawn(settings, job.id))
        watch.start()
        _until(lambda: job_states()[:2] == ["failed", "failed"])
        commits.rmdir()
        (tmp_path / "away").rename(commits)
        _until(lambda: job_states()[0] == "succeeded")
        count = len(job_states())
        time.sleep(1.5)
        watch.stop()
        assert len(job_states()) == count
    assert f"watched folder {folder}: " in caplog.text
    assert "it is looked at again in" in caplog.text
