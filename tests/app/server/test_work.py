"""Uploads are jobs: they can be watched, stopped and taken up again, and what goes live is made whole by one."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.learning import going_live
from app.server.work import Work
from ingest.intake import IntakeOptions
from ingest.records import FINAL_STATES
from tests.app.server.served import PICTURES, make_home, refusal, sample_upload, served
from tests.ingest.web import OPENED, web_server

pytestmark = pytest.mark.usefixtures("starts_at_once")

ROOT = Path(__file__).parents[3]
SECONDS = 180.0  # a new process loads the encoder; on a busy machine that takes long


def ended(client: httpx.Client, job: dict[str, Any]) -> dict[str, Any]:
    """Waits for a job as a caller of REST does."""
    deadline = time.monotonic() + SECONDS
    while True:
        found: dict[str, Any] = client.get(f"/v1/jobs/{job['id']}").json()
        if found["state"] in FINAL_STATES:
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def hits(client: httpx.Client) -> int:
    return len(client.post("/v1/search", json={"text": "a red boat", "k": 100}).json()["hits"])


def hits_after_a_moment(client: httpx.Client, wanted: int) -> int:
    """What is found once the server has noticed a commit."""
    deadline = time.monotonic() + 20
    while hits(client) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return hits(client)


def test_an_upload_becomes_a_job_that_reports_and_makes_its_pictures_searchable(tmp_path: Path) -> None:
    upload = sample_upload(tmp_path / "more.zip", first=100, count=3).read_bytes()
    with served(make_home(tmp_path, jobs="here")) as running, running.client() as client:
        answer = client.post("/v1/chunks", files={"file": ("more.zip", upload)})
        assert answer.status_code == 202, answer.text
        job = ended(client, answer.json()["job"])
        assert (job["state"], job["error"]) == ("succeeded", None)
        report = job["result"]["report"]
        assert (report["name"], report["new_images"], report["rejected"]) == ("more.zip", 3, 0)
        assert job["result"]["images_embedded"] == 3
        assert hits_after_a_moment(client, PICTURES + 3) == PICTURES + 3
        chunk = report["chunk_id"]
        assert client.get("/v1/chunks").json()["chunks"][0]["id"] == chunk
        assert client.get(f"/v1/chunks/{chunk[:6]}").json()["report"]["name"] == "more.zip"
        table = client.get(f"/v1/chunks/{chunk}/report.csv")
        assert table.text.startswith("\ufeffwhere,outcome,code,sentence")
        assert f"chunk-{chunk}.csv" in table.headers["content-disposition"]

        again = ended(client, client.post("/v1/chunks", files={"file": ("more.zip", upload)}).json()["job"])
        assert again["result"]["report"]["new_pairs"] == 0
        assert list(running.settings.home.joinpath("inbox").iterdir()) == []
        assert not [*running.settings.home.joinpath("staging").glob("*/*.zip")], "what was read is not kept"


def test_a_table_of_addresses_is_refused_unless_the_installation_fetches(tmp_path: Path) -> None:
    with web_server(pictures=2) as web:
        table = f"image,caption\n{web.url}/0.png,a\n{web.url}/1.png,b\n".encode()
        asked: dict[str, Any] = {
            "files": {"file": ("web.csv", table)},
            "data": {"fetch": "true", "language": "en"},
        }
        (tmp_path / "fetching").mkdir()
        settings = make_home(tmp_path / "fetching", allow_fetch=True)
        with served(make_home(tmp_path)) as running, running.client() as client:
            status, code = refusal(client.post("/v1/chunks", **asked))
            assert (status, code) == (400, "usage_problem")
            assert not [*running.settings.home.joinpath("inbox").iterdir()]
        with served(settings) as running, running.client() as client:
            job = ended(client, client.post("/v1/chunks", **asked).json()["job"])
            assert job["state"] == "failed"
            assert "public internet are asked" in job["error"]
        opened = settings.model_copy(update={"fetch_networks": [*OPENED]})
        with served(opened) as running, running.client() as client:
            assert web.asked == []
            job = ended(client, client.post("/v1/chunks", **asked).json()["job"])
            assert job["result"]["report"]["new_images"] == 2, job


def test_an_upload_that_turns_out_to_be_damaged_fails_and_says_why(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        before = client.get("/v1/chunks").json()
        content = b"PK\x03\x04 but no archive"
        job = ended(client, client.post("/v1/chunks", files={"file": ("a.zip", content)}).json()["job"])
        assert (job["state"], job["result"]["code"]) == ("failed", "archive_damaged")
        assert "damaged" in job["error"]
        assert client.get("/v1/chunks").json() == before
        assert not [*running.settings.home.joinpath("staging").glob("*/*.zip")]


def test_a_server_takes_up_the_uploads_that_one_before_it_left(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    received = sample_upload(settings.home / "inbox" / "left.zip", first=100, count=2)
    job = requests.intake_job(settings, received, IntakeOptions(name="left"), by="test")
    assert not received.exists()
    with served(settings) as running, running.client() as client:
        assert ended(client, {"id": job.id})["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES + 2) == PICTURES + 2


def test_an_interrupted_upload_is_taken_up_however_many_jobs_came_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        upload = workspace.catalog.add_job("ingest")
        workspace.catalog.update_job(upload.id, state="interrupted")
        for _ in range(60):
            workspace.catalog.update_job(workspace.catalog.add_job("gallery").id, state="succeeded")
        waiting = workspace.catalog.add_job("gallery")
        work, taken = Work(workspace, on_ended=lambda: None), list[str]()
        monkeypatch.setattr(work, "follow", lambda job: taken.append(job.id))
        work.take_up()
    assert taken == [upload.id, waiting.id]


def test_an_upload_is_refused_while_very_many_jobs_wait(tmp_path: Path) -> None:
    with served(make_home(tmp_path), with_jobs=False) as running, running.client() as client:
        running.serving.work.followed |= {f"j{n}" for n in range(1000, 1200)}
        answer = client.post("/v1/chunks", files={"file": ("more.csv", b"image,caption\n")})
        assert (answer.status_code, answer.json()["code"]) == (503, "too_busy")
        assert running.serving.workspace.catalog.jobs() == []


def test_a_server_begins_what_one_beside_it_queued_and_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_START_SECONDS", 0.0)  # as if it had waited for long
    settings = make_home(tmp_path, jobs="here")
    with served(settings) as running, running.client() as client:
        received = sample_upload(settings.home / "inbox" / "left.zip", first=100, count=2)
        job = requests.intake_job(settings, received, IntakeOptions(name="left"), by="test")
        assert ended(client, {"id": job.id})["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES + 2) == PICTURES + 2


def test_an_upload_that_waits_can_be_stopped(tmp_path: Path) -> None:
    settings = make_home(tmp_path, jobs="here")
    with served(settings) as running, running.client() as client:
        with running.serving.work.turn:  # somebody else's upload is being taken in
            upload = sample_upload(tmp_path / "more.zip", first=100, count=2).read_bytes()
            job = client.post("/v1/chunks", files={"file": ("more.zip", upload)}).json()["job"]
            assert client.post(f"/v1/jobs/{job['id']}/cancel").json()["state"] == "cancelled"
            assert client.post(f"/v1/jobs/{job['id']}/cancel").status_code == 400
        assert ended(client, job)["state"] == "cancelled"
        assert hits(client) == PICTURES
        with running.serving.work.turn:
            assert client.post(f"/v1/jobs/{job['id']}/resume").json()["state"] == "queued"
            assert client.post(f"/v1/jobs/{job['id']}/cancel").json()["state"] == "cancelled"


def test_an_update_that_was_asked_for_with_an_upload_is_queued_when_it_is_there(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    upload = sample_upload(tmp_path / "more.zip", first=100, count=2).read_bytes()
    with served(settings) as running, running.client() as client:
        fields = {"update": "true", "strategy": "language-tables"}
        job = ended(
            client, client.post("/v1/chunks", files={"file": ("m.zip", upload)}, data=fields).json()["job"]
        )
        update = client.get(f"/v1/jobs/{job['result']['update']}").json()
        assert update["kind"] == "update"
        assert update["arguments"]["chunk"] == job["result"]["report"]["chunk_id"]
        assert update["arguments"]["strategy"] == "language-tables"
        ended(client, update)


def test_going_back_makes_the_pictures_that_came_later_searchable(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with served(settings) as running, running.client() as client:
        upload = sample_upload(tmp_path / "more.zip", first=100, count=3).read_bytes()
        ended(client, client.post("/v1/chunks", files={"file": ("more.zip", upload)}).json()["job"])
        promoted = client.post("/v1/releases/r2/promote", json={}).json()
        assert promoted["left_out"] == 3
        assert ended(client, promoted["job"])["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES + 3) == PICTURES + 3
        workspace = running.serving.workspace
        version = workspace.releases.release("r2").version
        assert going_live.live_release(workspace)[1].version == version, "another gallery, the same encoder"


def test_a_release_that_holds_every_picture_needs_no_job(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with Workspace.open(settings) as workspace:
        commit = going_live.promote(workspace, "r2", why="", by="test")
        assert requests.gallery_job(workspace, commit) == (0, None)
        assert worker.recover(settings) == []


def test_a_withdrawn_chunk_leaves_search_and_an_accepted_one_says_so(tmp_path: Path) -> None:
    upload = sample_upload(tmp_path / "more.zip", first=100, count=3).read_bytes()
    with served(make_home(tmp_path)) as running, running.client() as client:
        job = ended(client, client.post("/v1/chunks", files={"file": ("more.zip", upload)}).json()["job"])
        chunk = job["result"]["report"]["chunk_id"]
        assert hits_after_a_moment(client, PICTURES + 3) == PICTURES + 3

        assert client.post(f"/v1/chunks/{chunk}/accept", json={"why": ""}).status_code == 422
        accepted = client.post(f"/v1/chunks/{chunk[:8]}/accept", json={"why": "I looked", "measure": True})
        assert accepted.json()["standing"] == "accepted", accepted.text

        useless = client.post(f"/v1/chunks/{chunk}/remove", json={"why": "not ours"})
        assert (useless.status_code, "nothing to rebuild" in useless.json()["error"]) == (400, True)
        assert client.get(f"/v1/chunks/{chunk}").json()["standing"] == "accepted"
        gone = client.post(f"/v1/chunks/{chunk}/withdraw", json={"why": "not ours"}).json()
        assert (gone["pictures"], gone["learned"]) == (3, [])
        assert ended(client, gone["job"])["state"] == "succeeded"
        assert hits_after_a_moment(client, PICTURES) == PICTURES
        assert client.get(f"/v1/chunks/{chunk}").json()["standing"] == "withdrawn"
        assert client.post(f"/v1/chunks/{chunk}/withdraw", json={"why": "again"}).status_code == 400
        refused = client.post("/v1/updates", json={"chunk": chunk})
        assert refused.json()["code"] == "chunk_held"


def test_a_server_may_leave_its_jobs_to_a_process_beside_it(tmp_path: Path) -> None:
    """As in compose.yaml: the server queues, `work` runs, and the server answers from what came of it."""
    settings = make_home(tmp_path)
    upload = sample_upload(tmp_path / "more.zip", first=100, count=3).read_bytes()
    with served(settings, with_jobs=False) as server, server.client() as client:
        job = client.post("/v1/chunks", files={"file": ("more.zip", upload)}).json()["job"]
        time.sleep(1)
        assert client.get(f"/v1/jobs/{job['id']}").json()["state"] == "queued"
        command = [sys.executable, "-m", "perennial", "work", "--home", str(settings.home)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as beside:
            try:
                done = ended(client, job)
                assert (done["state"], done["result"]["images_embedded"]) == ("succeeded", 3)
                assert hits_after_a_moment(client, PICTURES + 3) == PICTURES + 3
            finally:
                beside.terminate()
                said, _ = beside.communicate(timeout=60)
    assert beside.returncode == 0
    assert "Waiting for jobs" in said


def test_a_server_that_stops_does_not_wait_for_jobs_elsewhere(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with served(settings, with_jobs=False) as server:
        job = server.serving.workspace.catalog.add_job("gallery")
        server.serving.work.follow(job)
        following = [thread for thread in threading.enumerate() if thread.name == f"follow-{job.id}"]
    for thread in following:
        thread.join(timeout=10)
        assert not thread.is_alive()
