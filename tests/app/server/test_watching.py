"""Claims about a server that watches folders: search follows them by itself."""

from __future__ import annotations

import errno
import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text

from app.home.settings import Settings
from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.jobs.job_runner import run_job
from app.learning import adding
from app.server.served import Served
from app.server.watching import FolderWatch
from app.server.work import Work
from ingest import watching
from ingest.errors import UNREADABLE, BadImage, BadUpload, NoValidPair
from ingest.intake import ingest_source
from ingest.records import FINAL_STATES, JobRecord
from tests.app.server.served import make_home, served
from tests.ingest.material import folder_of, picture


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_QUIET_MILLISECONDS", 50)
    monkeypatch.setattr(watching, "_LOOK_MILLISECONDS", 300)


def _cannot_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> Iterator[set[object]]:
        raise PermissionError("Permission denied")

    monkeypatch.setattr(watching, "watch", refused)
    monkeypatch.setattr(watching, "_AGAIN_SECONDS", 0.1)


@pytest.fixture(params=["followed", "by turns"])
def _in_both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by turns":
        _cannot_follow(monkeypatch)


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


def _has_ended(job: JobRecord) -> bool:
    return job.state in FINAL_STATES


def _read_in(workspace: Workspace, folder: Path) -> str:
    """Takes a folder in as a job does that dies before its pictures are searchable; returns the chunk."""
    catalog, blobs = workspace.catalog, workspace.blobs
    return ingest_source(folder, catalog=catalog, blobs=blobs, options=requests.FOLLOWED).chunk_id


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
        watch = FolderWatch(workspace, followed.append, lambda job: False)
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

        watch = FolderWatch(workspace, lambda job: worker.spawn(settings, job.id), _has_ended)
        watch.start()
        _until(lambda: job_states()[:2] == ["failed", "failed"])
        commits.rmdir()
        (tmp_path / "away").rename(commits)
        _until(lambda: job_states()[0] == "succeeded")
        count = len(job_states())
        time.sleep(1.5)
        watch.stop()
        assert len(job_states()) == count
    assert f"watched folder {folder} is looked at again in 0 s: job " in caplog.text


@pytest.mark.parametrize(("pause", "count"), [(0.4, 3), (30.0, 1)])
def test_the_pauses_hold_where_changes_cannot_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float, count: int
) -> None:
    _cannot_follow(monkeypatch)
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", pause)
    monkeypatch.setattr(watching, "_LONGEST_PAUSE_SECONDS", pause)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    begun: list[float] = []
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:

        def fail(job: JobRecord) -> None:
            begun.append(time.monotonic())
            workspace.catalog.update_job(job.id, state="failed", error="The disk is full.")

        watch = FolderWatch(workspace, fail, _has_ended)
        watch.start()
        _until(lambda: len(begun) >= count)
        time.sleep(0.3)
        watch.stop()
    assert len(begun) == count or pause < 1  # on a busy machine a short one is over once more
    assert all(later - one >= pause for one, later in itertools.pairwise(begun))


def test_a_job_that_died_too_often_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", 0.2)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:

        def die(job: JobRecord) -> None:
            workspace.catalog.update_job(job.id, state="interrupted", error="Its process ended.")

        watch = FolderWatch(workspace, die, Work(workspace, on_ended=lambda: None).is_over)
        watch.start()
        _until(lambda: len(workspace.catalog.jobs()) >= 2)
        watch.stop()
        assert {job.state for job in workspace.catalog.jobs()} == {"interrupted"}


@pytest.mark.usefixtures("_in_both_ways")
def test_a_folder_of_which_nothing_can_be_made_is_said_once_and_gets_no_job(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": b"nothing", "b.mp4": b"a film"})
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:
        watch = FolderWatch(workspace, lambda job: None, _has_ended)
        watch.start()
        said = f"watched folder {folder}: Nothing in the upload can be used."
        _until(lambda: said in caplog.text)
        time.sleep(1)
        watch.stop()
        assert workspace.catalog.jobs() == []
    assert caplog.text.count(said) == 1


@pytest.mark.usefixtures("_in_both_ways")
def test_a_job_that_failed_for_what_lies_in_the_folder_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", 0.1)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    settings = make_home(tmp_path, watch=[folder])
    with Workspace.open(settings) as workspace:
        chunk = _read_in(workspace, folder_of(tmp_path / "before", {"a.png": picture(1)}))
        workspace.catalog.withheld.take_out(workspace.catalog.ids_where(chunks=[chunk]), by="x", why="y")
        watch = FolderWatch(workspace, lambda job: worker.spawn(settings, job.id), _has_ended)
        watch.start()
        _until(lambda: [job.result.get("code") for job in workspace.catalog.jobs()] == ["withheld"])
        time.sleep(1)
        watch.stop()
        assert len(workspace.catalog.jobs()) == 1


@pytest.mark.usefixtures("_in_both_ways")
def test_a_folder_with_a_caption_that_is_refused_gets_one_job(tmp_path: Path) -> None:
    table = f"image,caption,language\na.png,a boat,en\na.png,{'x' * 5_000},en\n"
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1), "captions.csv": table})
    settings = make_home(tmp_path, watch=[folder])
    with Workspace.open(settings) as workspace:
        watch = FolderWatch(workspace, lambda job: worker.spawn(settings, job.id), _has_ended)
        watch.start()
        _until(lambda: [job.state for job in workspace.catalog.jobs()] == ["succeeded"])
        time.sleep(1.5)
        watch.stop()
        assert workspace.catalog.jobs()[-1].result["report"]["rejected"] == 1
        assert len(workspace.catalog.jobs()) == 1


@pytest.mark.usefixtures("_in_both_ways")
@pytest.mark.parametrize("is_listed", [True, False])
def test_what_could_not_be_read_for_a_moment_is_read_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_listed: bool
) -> None:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", 0.2)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    followed: list[JobRecord] = []
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:
        broken = folder / "a.png" if is_listed else folder
        with monkeypatch.context() as disk:
            _answer_nothing_of([broken], disk)
            watch = FolderWatch(workspace, followed.append, lambda job: False)
            watch.start()
            _until(lambda: caplog.text.count("is looked at again in") >= 2)
            assert followed == []
        _until(lambda: bool(followed))
        watch.stop()


def test_a_file_that_could_not_be_read_for_a_moment_is_read_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", 0.2)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1), "b.png": picture(2)})
    settings = make_home(tmp_path, watch=[folder])
    with Workspace.open(settings) as workspace:

        def new_images() -> list[int]:
            return [job.result.get("report", {}).get("new_images") for job in workspace.catalog.jobs()]

        with monkeypatch.context() as disk:
            _answer_nothing_of([folder / "b.png"], disk)
            watch = FolderWatch(workspace, lambda job: _run(settings, job), _has_ended)
            watch.start()
            _until(lambda: caplog.text.count("is looked at again in") >= 3)
            assert new_images() == [1]
        _until(lambda: new_images() == [1, 1])
        watch.stop()


def _run(settings: Settings, job: JobRecord) -> None:
    run_job(settings, job.id)


def _answer_nothing_of(paths: list[Path], disk: pytest.MonkeyPatch) -> None:
    """As a disk of the network that is away for a moment."""
    scandir, read_bytes = os.scandir, Path.read_bytes

    def list_none(path: object) -> object:
        if str(path) in map(str, paths):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return scandir(path)  # type: ignore[call-overload]

    def read_none(path: Path) -> bytes:
        if path in paths:
            raise OSError(errno.EIO, "Input/output error", str(path))
        return read_bytes(path)

    disk.setattr(os, "scandir", list_none)
    disk.setattr(Path, "read_bytes", read_none)


@pytest.mark.parametrize(
    ("error", "is_again"),
    [
        (BadUpload("folder_empty", "It holds no picture any more."), False),
        (NoValidPair("no_valid_pair", "Nothing in the upload can be used."), False),
        (NoValidPair(UNREADABLE, "Nothing in the upload can be used."), True),
        (BadImage("image_too_heavy", "Decoding the picture takes more memory than it may have."), True),
    ],
)
def test_a_job_that_failed_is_tried_again_unless_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, is_again: bool
) -> None:
    monkeypatch.setattr(watching, "_FIRST_PAUSE_SECONDS", 0.1)
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    settings = make_home(tmp_path, watch=[folder])

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(adding, "add_chunk", fail)
    with Workspace.open(settings) as workspace:
        watch = FolderWatch(workspace, lambda job: _run(settings, job), _has_ended)
        watch.start()
        _until(lambda: len(workspace.catalog.jobs()) > is_again)
        time.sleep(0.7)
        watch.stop()
        jobs = workspace.catalog.jobs()
        assert {job.result["status"] for job in jobs if job.result} == {422}
        assert (len(jobs) > 1) == is_again


def test_what_was_read_and_not_made_searchable_is_when_a_server_starts_again(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    followed: list[JobRecord] = []
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:
        _read_in(workspace, folder)
        watch = FolderWatch(workspace, followed.append, lambda job: False)
        watch.start()
        _until(lambda: bool(followed))
        watch.stop()
        assert [job.arguments["folder"] for job in followed] == [str(folder)]


def test_a_catalog_that_fails_does_not_end_the_watching(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1)})
    followed: list[JobRecord] = []
    with Workspace.open(make_home(tmp_path, watch=[folder])) as workspace:

        def rename(table: str, to: str) -> None:
            with workspace.catalog.engine.begin() as connection:
                connection.execute(text(f"ALTER TABLE {table} RENAME TO {to}"))

        watch = FolderWatch(workspace, followed.append, _has_ended)
        watch.start()
        _until(lambda: len(followed) == 1)
        rename("jobs", "away")
        time.sleep(1)
        rename("away", "jobs")
        (folder / "b.png").write_bytes(picture(2))
        _until(lambda: len(followed) >= 2)
        watch.stop()
        assert {job.kind for job in followed} == {"folder"}
