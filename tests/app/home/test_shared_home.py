"""Claims about a home that several machines share: each answers, takes in and promotes, and any of them may die."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.desk.errors import NoHome, UpdateRunning, UsageProblem
from app.desk.jobs import UpdateRequest
from app.home import engines, holding
from app.home.catalog_move import HERE, move_catalog
from app.home.folder import Home
from app.home.joining import join
from app.home.objects_move import move_objects
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.learning import going_live
from app.query.snapshot import Snapshot
from ingest.errors import CatalogError
from ingest.leases import Holder
from tests.app.server.served import sample_upload, search, served
from tests.app.small_home import copy_of, small_home
from tests.bucket import bucket
from tests.postgres_server import schema_for, server

pytestmark = pytest.mark.postgres
NAME = "shared-home"  # of what is connected to the database
GATE: dict[str, Any] = {"samples": 200, "minimum_images": 2, "cross_fit": False}
LEARNING = {"epochs": 15, "batch_size": 32}


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.fixture
def machines(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Home, Home]]:
    """Two machines of one home; the second has nothing of its own yet."""
    with bucket("s3", tmp_path, monkeypatch) as address:
        database = f"{schema_for(tmp_path)}&application_name={NAME}"
        move_catalog(home, database)
        move_objects(home, address)
        assert join(tmp_path / "second", database, address).release.startswith("r2")
        yield home, Home.open(tmp_path / "second")


@contextmanager
def serving(home: Home, port: int, *more: str) -> Iterator[httpx.Client]:
    """Runs a server of a machine, in a group of processes that can be killed as the machine would be."""
    command = [
        sys.executable,
        "-m",
        "perennial",
        "serve",
        "--home",
        str(home.root),
        "--port",
        str(port),
        *more,
    ]
    settings = {"PERENNIAL_POLL_SECONDS": "0.2", "PERENNIAL_GATE__CROSS_FIT": "false"}
    with (home.root / "served.txt").open("wb") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env={**os.environ, **settings}
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            until(lambda: is_ready(client), 60)
            yield client
    finally:
        kill(server.pid)
        server.wait()


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def kill(group: int) -> None:
    """Kills a server and its workers, which have groups of their own, as the end of their machine would."""
    import psutil

    try:
        every = [psutil.Process(group), *psutil.Process(group).children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for one in every:
        one.kill()


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.1)


def take_in(client: httpx.Client, upload: Path) -> str:
    with upload.open("rb") as file:
        told = client.post("/v1/chunks", files={"file": file})
    return str(told.raise_for_status().json()["job"]["id"])


def hits(client: httpx.Client, release: str = "") -> list[str]:
    asked = {"text": "a red boat"} | ({"release": release} if release else {})
    found = client.post("/v1/search", json=asked).raise_for_status().json()
    return [found["release"], *(hit["id"] for hit in found["hits"])]


def test_two_servers_of_one_home_answer_alike_whatever_either_of_them_is_told(
    machines: tuple[Home, Home], tmp_path: Path
) -> None:
    one, two = machines
    with serving(one, 7941) as first, serving(two, 7942) as second:
        before = hits(first)
        assert hits(second) == before
        job = take_in(second, sample_upload(tmp_path / "more.zip", first=70, count=6))
        until(lambda: first.get(f"/v1/jobs/{job}").json()["state"] == "succeeded")
        until(lambda: hits(first)[0] != before[0], 5)
        until(lambda: hits(second) == hits(first), 5)
        image = second.post("/v1/search", json={"text": "a red boat"}).json()["hits"][0]["id"]
        pictures = [
            one.get(f"/v1/images/{image}/thumbnail").raise_for_status().content for one in (first, second)
        ]
        assert pictures[0] == pictures[1]
        told = second.post(f"/v1/releases/{before[0]}/promote", json={"why": "tried"})
        assert told.status_code in (200, 202), told.text
        until(lambda: hits(first)[0] == before[0], 3)


class Asker:
    """Asks whichever server answers, twenty times a second, and carries along the commit that it has seen."""

    def __init__(self, *ports: int) -> None:
        self._ports = ports
        self.answered: list[tuple[int, str, tuple[str, ...]]] = []  # commit, release, pictures
        self.refused: list[int] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Asker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _ask(self) -> None:
        seen = 0
        for port in cycle(self._ports):
            if self._stopping.wait(0.05):
                return
            try:
                told = httpx.post(
                    f"http://127.0.0.1:{port}/v1/search",
                    json={"text": "a red boat"},
                    headers={"X-Perennial-Commit": str(seen)},
                    timeout=30,
                )
            except httpx.HTTPError:  # the server was killed
                self.refused.append(0)
                continue
            if told.status_code != 200:
                self.refused.append(told.status_code)
                continue
            found, reached = told.json(), int(told.headers["X-Perennial-Commit"])
            assert reached >= seen
            seen = reached
            self.answered.append((reached, found["release"], tuple(hit["id"] for hit in found["hits"])))


def test_whoever_asks_two_servers_sees_no_torn_and_no_older_answer_whatever_dies(
    machines: tuple[Home, Home], tmp_path: Path
) -> None:
    one, two = machines
    acknowledged = []
    with serving(one, 7945) as first, ExitStack() as stack:
        second = stack.enter_context(serving(two, 7946))
        with Asker(7945, 7946) as asking:
            live = hits(first)[0]
            for number in range(3):
                upload = sample_upload(tmp_path / f"{number}.zip", first=70 + 10 * number, count=5)
                acknowledged.append(take_in((first, second)[number % 2], upload))
                until(lambda: first.get(f"/v1/jobs/{acknowledged[-1]}").json()["state"] == "succeeded")
            second.post(f"/v1/releases/{live}/promote", json={"why": "tried"}).raise_for_status()
            cut_off()
            second.post("/v1/rollback", json={"why": "tried"})
            acknowledged.append(take_in(second, sample_upload(tmp_path / "last.zip", first=120, count=5)))
            stack.close()  # the second machine dies, maybe with its worker at it
            second = stack.enter_context(serving(two, 7946))
            until(lambda: first.get(f"/v1/jobs/{acknowledged[-1]}").json()["state"] == "succeeded", 120)
            until(lambda: hits(first) == hits(second), 10)
        releases = {release for _, release, _ in asking.answered}
        expected = {
            release: {tuple(hits(client, release)[1:]) for client in (first, second)} for release in releases
        }
    assert len(asking.answered) > 100
    assert len(releases) >= 4
    assert [commit for commit, _, _ in asking.answered] == sorted(commit for commit, _, _ in asking.answered)
    for _, release, found in asking.answered:
        assert {found} == expected[release], release
    assert set(asking.refused) <= {0, 503}
    with Workspace.open(load_settings(home=one.root)) as workspace:
        for job in acknowledged:
            assert workspace.catalog.job(job).result["report"]["new_pairs"] > 0
        gallery = workspace.catalog.gallery_ids()
        assert all(workspace.blobs.contains(gallery))


def cut_off() -> None:
    """Ends every connection to the database, as its restart does."""
    import psycopg

    with psycopg.connect(server(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [NAME]
        )


def test_a_machine_that_dies_leaves_its_job_to_another(machines: tuple[Home, Home], tmp_path: Path) -> None:
    one, two = machines
    with serving(one, 7943) as first:
        upload = sample_upload(tmp_path / "more.zip", first=70, count=40)
        with serving(two, 7944) as second:
            job = take_in(second, upload)
            until(lambda: holding.holder(two, job) is not None)
        # The second machine has gone with its worker; the first takes the upload from the bucket.
        until(lambda: first.get(f"/v1/jobs/{job}").json()["state"] == "succeeded", 120)
        chunks = [one for one in first.get("/v1/chunks").json()["chunks"] if one["name"] == "more.zip"]
        assert len(chunks) == 1
        assert not list(one.root.glob("inbox/*"))


def test_one_of_all_machines_updates_and_an_update_can_be_cancelled_from_another(
    machines: tuple[Home, Home],
) -> None:
    one, two = (load_settings(home=machine.root, gate=GATE, poll_seconds=0.2) for machine in machines)
    with Workspace.open(one) as workspace:
        chunk = workspace.catalog.chunks()[-1].id
        request = UpdateRequest(chunk=chunk, strategy="finetune", options=LEARNING, by="test")
        job = requests.update_job(workspace, request)
    worker.spawn(one, job.id)
    with Workspace.open(two) as workspace:
        until(lambda: workspace.releases.lock_holder() is not None)
        with pytest.raises(UpdateRunning, match="is running"):
            worker.submit(two, "update", request.to_json())
        with pytest.raises(UpdateRunning, match="is updating this home"), workspace.releases.updater_lock():
            pytest.fail("two update")
        assert worker.recover(two) == []  # it is alive
        assert worker.cancel(two, job.id).state == "cancelled"
        until(lambda: holding.holder(machines[0], job.id) is None)
        assert workspace.catalog.job(job.id).state == "cancelled"


def test_a_worker_that_was_paused_comes_back_and_changes_nothing(
    machines: tuple[Home, Home], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (load_settings(home=machine.root, gate=GATE, poll_seconds=0.2) for machine in machines)
    with Workspace.open(one) as workspace:
        chunk = workspace.catalog.chunks()[-1].id
        request = UpdateRequest(chunk=chunk, strategy="finetune", options=LEARNING, by="test")
        job = requests.update_job(workspace, request)
    worker.spawn(one, job.id)
    until(lambda: holding.holder(machines[1], holding.UPDATER) is not None)
    pid = holding.holder(machines[1], job.id)
    assert pid is not None
    os.kill(pid.pid, signal.SIGSTOP)
    try:
        until(lambda: not worker.is_alive(machines[1], job.id), 60)
        assert [one.id for one in worker.left(two, [])] == [job.id]
        ended = worker.follow(two, job.id)
    finally:
        os.kill(pid.pid, signal.SIGCONT)
    assert ended.state in ("succeeded", "rejected", "review"), ended.error
    with Workspace.open(two) as workspace:
        releases = [record.id for record in workspace.releases.releases()]
        until(lambda: not is_running(pid.pid))
        assert [record.id for record in workspace.releases.releases()] == releases
        assert workspace.catalog.job(job.id) == ended
        commits = [commit.number for commit in workspace.releases.history()]
        assert commits == sorted(set(commits))


def is_running(pid: int) -> bool:
    import psutil

    return bool(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)


def test_a_server_that_was_there_before_goes_on_writing_when_everything_has_moved(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        bucket("s3", tmp_path, monkeypatch) as address,
        served(load_settings(home=home.root, poll_seconds=0.1, jobs="elsewhere")) as server,
        server.client() as client,
    ):
        image = search(client)["hits"][0]["id"]
        said = {
            "query": "boat",
            "language": "en",
            "release": hits(client)[0],
            "image": image,
            "verdict": "up",
        }
        move_catalog(home, schema_for(tmp_path))
        move_objects(home, address)
        for _ in range(2):
            assert client.post("/v1/feedback", json=said).status_code == 201
            with home.open_catalog() as catalog:  # another program
                catalog.add_job("gallery")
        with pytest.raises(UsageProblem, match="already"):
            move_catalog(home, schema_for(tmp_path))
        told = client.post(f"/v1/releases/{hits(client)[0]}/promote", json={"why": "tried"})
        assert told.status_code < 500, told.text
        say_that_another_serves(home)
        with pytest.raises(UpdateRunning, match="other.example.org"):
            move_catalog(home, HERE)


def say_that_another_serves(home: Home) -> None:
    other = Holder("another", "other.example.org", 7, "serving", "2026-11-28T10:00:00+00:00", 0.0)
    with home.open_catalog() as catalog:
        catalog.leases.say(f"{engines.read(home.root).home[:16]}:machine-another", other)


def test_of_two_machines_that_promote_at_once_one_does(machines: tuple[Home, Home]) -> None:
    one, two = (load_settings(home=machine.root) for machine in machines)
    with Workspace.open(one) as here, Workspace.open(two) as there:
        live = going_live.live_release(here)[0]
        first = here.releases.commit(live.release, parent=live.number, reason="promote", why="a", by="one")
        with pytest.raises(Exception, match="commit"):
            there.releases.commit(live.release, parent=live.number, reason="promote", why="b", by="two")
        assert there.releases.current() == first


def test_what_cannot_be_joined_is_refused_and_leaves_nothing(
    machines: tuple[Home, Home], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, _ = machines
    database, address = str(one.catalog_place), str(one.objects_address)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "photo.jpg").touch()
    with pytest.raises(UsageProblem, match=r"holds something already \(photo.jpg\)"):
        join(tmp_path / "full", database, address)
    assert (tmp_path / "full" / "photo.jpg").exists()
    with pytest.raises(UsageProblem, match="No home's pictures lie in"):
        join(tmp_path / "third", database, f"{address}/elsewhere")
    other = Home.open(copy_of(small_home(tmp_path_factory), tmp_path, "other"))
    move_catalog(other, schema_for(tmp_path / "other"))
    with pytest.raises(CatalogError, match="not that of the home whose pictures lie in"):
        join(tmp_path / "third", str(other.catalog_place), address)
    assert not (tmp_path / "third").exists()
    (tmp_path / "third").mkdir()  # as a container brings it
    with pytest.raises(CatalogError, match="not that of the home whose pictures lie in"):
        join(tmp_path / "third", str(other.catalog_place), address)
    assert list((tmp_path / "third").iterdir()) == []


def test_a_machine_that_lost_its_folders_or_was_cut_off_as_it_joined_fills_itself_again(
    machines: tuple[Home, Home], tmp_path: Path
) -> None:
    one, two = machines
    database, address = str(one.catalog_place), str(one.objects_address)
    for name in ("versions", "generations", "releases", "commits", "inbox"):
        shutil.rmtree(two.root / name)
    with Workspace.open(load_settings(home=two.root)) as workspace:
        assert Snapshot.load(workspace).pictures == 40
    third = tmp_path / "third"
    third.mkdir()
    shutil.copy(two.root / engines.FILE, third)
    with pytest.raises(NoHome, match="perennial home join"):
        Home.open(third)
    assert join(third, database, address).release == join(third, database, f"{address}/").release


def test_a_release_is_loaded_from_the_bucket_alone(machines: tuple[Home, Home]) -> None:
    one, two = machines
    with Workspace.open(load_settings(home=two.root), read_only=True) as workspace:
        snapshot = Snapshot.load(workspace)
        with Workspace.open(load_settings(home=one.root), read_only=True) as original:
            assert snapshot.release.id == Snapshot.load(original).release.id
            assert workspace.catalog.gallery_ids() == original.catalog.gallery_ids()
        first = workspace.releases.releases()[0]
        assert Snapshot.load(workspace, first.id).release == first
