"""Claims about what a job needs where several machines share a home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from app.desk.errors import AppError
from app.home import engines, holding
from app.home.folder import Home
from app.home.objects_move import move_objects
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.jobs import sharing, worker
from app.jobs.job_runner import run_job
from app.jobs.requests import intake_job
from ingest.catalog import Catalog
from ingest.intake import IntakeOptions
from ingest.leases import Holder
from ingest.objects import Objects
from tests.app.server.served import make_home, sample_upload
from tests.bucket import blockable, made


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made(f"file://{tmp_path}/bucket")
    home = Home.create(tmp_path / "home")
    said = engines.read(home.root)  # where its catalog lies
    engines.write(home.root, replace(said, objects=f"file://{tmp_path}/bucket", home="a"))
    return home


def in_bucket(home: Home, below: str) -> list[str]:
    return [name for name, _ in Objects(str(home.objects_address)).written(below)]


def test_an_upload_that_came_to_another_machine_is_fetched_and_goes_when_it_was_taken_in(home: Home) -> None:
    source = home.inbox / "a.zip"
    source.write_bytes(b"pictures")
    kept = sharing.keep(home, source)
    source.unlink()
    assert sharing.bring(home, home.staging / "j1" / "a.zip", kept).read_bytes() == b"pictures"
    assert in_bucket(home, sharing.FOLDER) == [kept]
    sharing.drop(home, home.staging / "j1" / "a.zip", kept)
    assert in_bucket(home, sharing.FOLDER) == []
    with pytest.raises(AppError, match="Upload it again"):
        sharing.bring(home, home.staging / "j1" / "a.zip", kept)


def test_a_home_of_one_machine_keeps_its_uploads_to_itself(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    source = home.inbox / "a.zip"
    source.write_bytes(b"pictures")
    assert sharing.keep(home, source) == ""
    assert sharing.bring(home, source, "") == source
    checkpoint = sharing.Checkpoint(home, "j1", source)
    checkpoint.bring()
    checkpoint.push()
    checkpoint.drop()
    with Catalog.open(home.catalog) as catalog:
        assert sharing.tidy(home, catalog) == []


def test_another_machine_goes_on_from_the_checkpoint_that_was_reached(home: Home) -> None:
    here, there = home.staging / "here" / "checkpoint", home.staging / "there" / "checkpoint"
    first, second = sharing.Checkpoint(home, "j1", here), sharing.Checkpoint(home, "j1", there)
    first.push()
    second.bring()
    assert not there.exists()
    here.parent.mkdir()
    here.write_bytes(b"epoch 1")
    first.push()
    here.write_bytes(b"epoch 2")
    first.push()  # not so soon after the last
    second.bring()
    assert there.read_bytes() == b"epoch 1"
    there.write_bytes(b"epoch 3")
    second.bring()  # it has more of its own
    assert there.read_bytes() == b"epoch 3"
    first.drop()
    assert in_bucket(home, sharing.CHECKPOINTS) == []


def test_a_checkpoint_that_cannot_be_kept_stops_nobody(home: Home, tmp_path: Path) -> None:
    file = home.staging / "checkpoint"
    file.write_bytes(b"epoch 1")
    (tmp_path / "bucket").rename(tmp_path / "away")
    checkpoint = sharing.Checkpoint(home, "j1", file)
    checkpoint.push()
    (tmp_path / "away").rename(tmp_path / "bucket")
    assert in_bucket(home, sharing.CHECKPOINTS) == []
    assert file.read_bytes() == b"epoch 1"


def test_what_waits_for_no_job_any_more_is_removed_after_some_days(home: Home, tmp_path: Path) -> None:
    source = home.inbox / "a.zip"
    source.write_bytes(b"pictures")
    kept = [sharing.keep(home, source) for _ in range(2)]
    old = time.time() - 9 * 86_400
    os.utime(tmp_path / "bucket" / kept[0], (old, old))
    with Catalog.open(home.catalog) as catalog:
        job = catalog.add_job("ingest", {"kept": kept[0]})
        assert sharing.tidy(home, catalog) == []  # it waits for as long as its job does
        catalog.update_job(job.id, state="succeeded")
        assert sharing.tidy(home, catalog) == [kept[0]]
    assert in_bucket(home, sharing.FOLDER) == [kept[1]]


def test_a_job_takes_in_what_lies_in_the_bucket_alone(tmp_path: Path) -> None:
    from app.home.objects_move import move_objects

    settings: Settings = make_home(tmp_path)
    home = Home.open(settings.home)
    move_objects(home, f"file://{tmp_path}/bucket")
    job = intake_job(settings, sample_upload(home.inbox / "more.zip", first=60), IntakeOptions(), by="test")
    shutil.rmtree(home.staging / job.id)  # as on another machine
    assert run_job(settings, job.id) == 0
    with Workspace.open(settings) as workspace:
        ended = workspace.catalog.job(job.id)
        assert (ended.state, ended.result["report"]["new_images"]) == ("succeeded", 10)
        assert not worker.is_alive(home, job.id)
    assert in_bucket(home, sharing.FOLDER) == []


def test_what_only_another_machine_can_do_waits_for_it_and_what_it_left_is_taken_over(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=home.root)
    with home.open_catalog() as catalog:
        asked: list[dict[str, str]] = [{}, {"machine": "another"}, {"machine": holding.place(home)}]
        jobs = [catalog.add_job("folder", {"folder": "/data", **told}).id for told in asked]
        monkeypatch.setattr(worker, "_START_SECONDS", 0.0)
        assert [job.id for job in worker.left(settings, [])] == [jobs[0], jobs[2]]
        other = Holder("another", "other.example.org", 7, "job", "2026-11-28T10:00:00+00:00", 0.0)
        died, ended, hers = (catalog.add_job(kind, {}).id for kind in ("ingest", "ingest", "update"))
        for job in (died, ended, hers):
            with catalog.leases.held(f"a:{job}", other):
                pass
            catalog.update_job(job, state="interrupted" if job != died else "running")
        # What trains and was stopped in order waits for a person.
        assert [job.id for job in worker.left(settings, jobs)] == [died, ended]
        assert worker.left(settings, [*jobs, died, ended]) == []


@pytest.mark.postgres
def test_a_job_waits_longer_for_a_bucket_that_hangs_than_somebody_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_home(tmp_path)
    home = Home.open(settings.home)
    with blockable(tmp_path, monkeypatch) as (address, proxy), home.open_catalog() as catalog:
        move_objects(home, address)
        job = catalog.add_job("doctor", {"every_byte": False, "by": "test"})
        before = proxy.accepted
        proxy.hang()
        command = [sys.executable, "-m", "app.jobs.job_runner", "--home", str(home.root), job.id]
        with subprocess.Popen(command) as process:
            while proxy.accepted == before:
                assert process.poll() is None
                time.sleep(0.1)
            time.sleep(9)  # somebody would be told after five
            proxy.restore()
            assert process.wait(60) == 0
        found = {one["check"]: one["level"] for one in catalog.job(job.id).result["found"]}
        assert found["bucket"] == "ok"
