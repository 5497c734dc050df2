from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.desk.errors import NoHome, UpdateRunning, UsageProblem
from app.desk.jobs import UpdateRequest
from app.home import durable, garbage, lock
from app.home.folder import Home
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import job_runner, requests, worker
from app.learning import adding, going_live
from ingest.catalog import Catalog
from ingest.errors import UnknownJob
from ingest.intake import IntakeOptions, ingest_source
from ingest.records import JobRecord
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from tests.app import small_home
from tests.forked_starts import COLD

pytestmark = pytest.mark.usefixtures("starts_at_once")

PATIENCE_SECONDS = 120.0


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home without releases: enough for everything about processes."""
    Home.create(tmp_path / "home")
    Catalog.open(tmp_path / "home" / "catalog.sqlite").close()
    return load_settings(home=tmp_path / "home", poll_seconds=0.05)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_home.small_home(tmp_path_factory)


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers load torch and all else before they begin."""
    monkeypatch.setattr(sys, "executable", COLD)


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every worker dies, as if killed, as soon as it has taken its job."""
    monkeypatch.setenv(durable.FAULT_VARIABLE, job_runner.TAKEN)


def update_job(settings: Settings, chunk: str = "none", **options: str | float | int | bool) -> JobRecord:
    request = UpdateRequest(chunk=chunk, strategy="language-tables", options=options, by="test")
    return worker.submit(settings, "update", request.to_json())


def job_of(settings: Settings, job_id: str) -> JobRecord:
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        return catalog.job(job_id)


def log_of(settings: Settings, job_id: str) -> str:
    return worker.log_file(settings, job_id).read_text(encoding="utf-8")


def wait_until(is_so: object, what: str) -> None:
    assert callable(is_so)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


def test_an_unknown_kind_is_refused_and_nothing_is_queued(settings: Settings) -> None:
    with pytest.raises(UsageProblem, match="no job kind 'dance'; there are update, ingest"):
        worker.submit(settings, "dance", {})
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        assert catalog.jobs() == []


def test_without_a_home_there_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(NoHome):
        worker.submit(load_settings(home=tmp_path / "none"), "update", {})


def test_a_second_update_is_refused_at_once(settings: Settings) -> None:
    first = update_job(settings)
    with pytest.raises(UpdateRunning, match=f"Update {first.id} is queued") as caught:
        update_job(settings)
    assert caught.value.exit_code == 5
    worker.submit(settings, "ingest", {})  # taking pictures in is no update


def test_a_worker_that_keeps_dying_is_replaced_and_then_given_up(settings: Settings, dying: None) -> None:
    job = update_job(settings)
    states: list[str] = []
    ended = worker.follow(settings, job.id, lambda row: states.append(row.state), restarts=2)
    assert ended.state == "interrupted"
    assert ended.error is not None
    assert f"--resume {job.id}" in ended.error
    assert log_of(settings, job.id).count("started") == 3
    assert states[0] == "queued"


def test_a_job_whose_worker_died_does_not_block_the_next_update(settings: Settings, dying: None) -> None:
    job = update_job(settings)
    worker.spawn(settings, job.id)
    wait_until(lambda: not worker.is_alive(Home(settings.home), job.id), "the worker's death")
    assert update_job(settings).id != job.id


def test_recover_marks_the_jobs_of_dead_workers(settings: Settings, dying: None) -> None:
    job = update_job(settings)
    worker.spawn(settings, job.id)
    wait_until(lambda: not worker.is_alive(Home(settings.home), job.id), "the worker's death")
    assert job_of(settings, job.id).state == "running"
    assert [found.id for found in worker.recover(settings)] == [job.id]
    assert job_of(settings, job.id).state == "interrupted"
    assert worker.recover(settings) == []


def test_recover_marks_an_update_that_never_began_and_leaves_an_upload_that_waits(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_START_SECONDS", 0.0)  # as if both were queued long ago
    update = update_job(settings)
    upload = worker.submit(settings, "ingest", {})
    assert [found.id for found in worker.recover(settings)] == [update.id]
    assert job_of(settings, upload.id).state == "queued"


def test_a_job_is_left_that_waits_for_long_and_for_no_work_of_another(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, waiting = (worker.submit(settings, "ingest", {}) for _ in range(3))
    assert worker.left(settings, ()) == [], "its worker may be starting"
    monkeypatch.setattr(worker, "_START_SECONDS", 0.0)
    assert worker.left(settings, {second.id}) == [first, waiting]
    path = worker.lock_file(Home(settings.home), first.id)
    path.parent.mkdir()
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        catalog.update_job(first.id, state="running", pid=os.getpid())
    assert worker.left(settings, ()) == [second, waiting], "who was at work has died"
    with lock.hold(path, "pretending"):
        assert worker.left(settings, ()) == [], "a server beside this one works through them"
        assert worker.left(settings, {first.id}) == [second, waiting]


def test_a_job_that_somebody_else_runs_is_waited_for_until_nobody_begins_it_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_START_SECONDS", 0.1)
    job, stopping = update_job(settings), threading.Event()
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        catalog.update_job(job.id, state="interrupted")
    giving_up = threading.Timer(20, stopping.set)
    giving_up.start()
    assert worker.wait(settings, job.id, stopping).state == "interrupted"
    giving_up.cancel()
    assert not stopping.is_set()


def test_recover_leaves_a_living_worker_alone(settings: Settings) -> None:
    job = update_job(settings)
    path = worker.lock_file(Home(settings.home), job.id)
    path.parent.mkdir()
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        catalog.update_job(job.id, state="running", pid=os.getpid())
    with lock.hold(path, "pretending"):
        assert worker.recover(settings) == []
        with pytest.raises(UpdateRunning, match="is running since"):
            update_job(settings)
    assert [found.id for found in worker.recover(settings)] == [job.id]


def test_a_job_has_one_worker_however_often_it_is_started(settings: Settings) -> None:
    job = update_job(settings)
    path = worker.lock_file(Home(settings.home), job.id)
    path.parent.mkdir()
    with lock.hold(path, "the first worker"):
        assert job_runner.run_job(settings, job.id) == UpdateRunning.default_exit_code
    assert job_of(settings, job.id).state == "queued"


def test_a_lock_whose_file_its_last_holder_removed_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, path = lock._take, tmp_path / "j1.lock"
    removed: list[Path] = []

    def taken_late(descriptor: int, path: Path) -> bool:
        if not removed:  # after it was opened, and before it was locked
            path.unlink()
            removed.append(path)
        return take(descriptor, path)

    monkeypatch.setattr(lock, "_take", taken_late)
    with lock.hold(path, "the second worker"):
        assert lock.holder(path) is not None


def test_a_worker_that_cannot_be_looked_at_is_waited_for_all_the_same(settings: Settings) -> None:
    """Else it stays a zombie of the server as long as that lives."""
    job = update_job(settings)
    locked = worker.lock_file(Home.open(settings.home), job.id)
    locked.parent.mkdir(exist_ok=True)
    locked.symlink_to(locked.name)

    with pytest.raises(OSError, match="symbolic links"):
        worker.spawn(settings, job.id)

    waiting = [thread for thread in threading.enumerate() if thread.name == f"worker-{job.id}"]
    assert waiting or "symbolic links" in log_of(settings, job.id)
    for thread in waiting:
        thread.join(timeout=PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_resume_refuses_what_has_ended_well(settings: Settings) -> None:
    job = update_job(settings)
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        catalog.update_job(job.id, state="succeeded")
    with pytest.raises(UsageProblem, match="has ended"):
        worker.resume(settings, job.id)
    with pytest.raises(UsageProblem, match="ended already"):
        worker.cancel(settings, job.id)
    with pytest.raises(UnknownJob):
        worker.resume(settings, "j99")


def test_a_job_that_has_ended_is_resumed_or_refused_while_its_worker_lives_on_for_a_moment(
    settings: Settings,
) -> None:
    job = update_job(settings)
    home = Home(settings.home)
    held = worker.lock_file(home, job.id)
    held.parent.mkdir(exist_ok=True)
    with Catalog.open(home.catalog) as catalog, lock.hold(held, "its worker"):
        catalog.update_job(job.id, state="succeeded")
        with pytest.raises(UsageProblem, match="has ended"):
            worker.resume(settings, job.id)
        catalog.update_job(job.id, state="failed", error="It was unlucky.")
        again = worker.resume(settings, job.id)
        assert (again.state, again.error) == ("queued", None)
        assert worker.resume(settings, job.id) == again
        catalog.update_job(job.id, state="running")
        assert worker.resume(settings, job.id).state == "running"


def test_cancel_ends_the_worker_and_resume_queues_the_job_again(settings: Settings, cold: None) -> None:
    job = update_job(settings)
    worker.spawn(settings, job.id)
    assert worker.is_alive(Home(settings.home), job.id)
    assert worker.cancel(settings, job.id).state == "cancelled"
    assert not worker.is_alive(Home(settings.home), job.id)
    assert worker.follow(settings, job.id).state == "cancelled"  # nobody takes it up again
    again = worker.resume(settings, job.id)
    assert (again.state, again.error, again.finished) == ("queued", None, None)


def test_a_job_that_ends_while_it_is_cancelled_is_not_called_cancelled(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, read = update_job(settings), Catalog.job

    def ends_then(self: Catalog, job_id: str) -> JobRecord:
        found = read(self, job_id)
        if found.state == "queued":
            self.update_job(job_id, state="succeeded")
        return found

    monkeypatch.setattr(Catalog, "job", ends_then)
    with pytest.raises(UsageProblem, match="ended already"):
        worker.cancel(settings, job.id)
    assert job_of(settings, job.id).state == "succeeded"


def test_a_worker_stands_back_as_far_as_the_settings_say(settings: Settings) -> None:
    settings = settings.model_copy(update={"niceness": 7})
    job = update_job(settings)
    worker.spawn(settings, job.id)
    wait_until(lambda: job_of(settings, job.id).state == "running", "the job to run")
    pid = job_of(settings, job.id).pid
    assert pid is not None
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, mine + 7)
    worker.cancel(settings, job.id)


def test_a_machine_that_shuts_down_interrupts_and_does_not_cancel(settings: Settings, cold: None) -> None:
    job = update_job(settings)
    worker.spawn(settings, job.id)
    wait_until(lambda: job_of(settings, job.id).state == "running", "the job to run")
    pid = job_of(settings, job.id).pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not worker.is_alive(Home(settings.home), job.id), "the worker's end")
    assert job_of(settings, job.id).state == "interrupted"


def test_a_mistake_of_the_user_fails_the_job_with_a_sentence_and_a_code(
    template: Path, tmp_path: Path
) -> None:
    settings = load_settings(home=small_home.copy_of(template, tmp_path))
    job = update_job(settings, chunk="ffffffffffff")
    assert job_runner.run_job(settings, job.id) == 1
    ended = job_of(settings, job.id)
    assert ended.state == "failed"
    assert ended.error is not None
    assert "no chunk" in ended.error
    assert ended.result == {"code": "unknown_chunk", "status": 404, "exit_code": 1}


def test_a_workers_threads_sleep_while_they_wait(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cold: None
) -> None:
    monkeypatch.setenv("OMP_DISPLAY_ENV", "TRUE")  # OpenMP says what it goes by when torch loads it
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    settings = load_settings(home=small_home.copy_of(template, tmp_path), threads=2)
    ended = worker.follow(settings, update_job(settings, chunk="ffffffffffff").id)
    assert ended.state == "failed"
    said = log_of(settings, ended.id)
    assert re.search(r"OMP_WAIT_POLICY\s*=\s*'PASSIVE'", said), said
    assert re.search(r"OMP_NUM_THREADS\s*=\s*'2'", said)


def test_an_ingest_job_takes_a_chunk_in(template: Path, tmp_path: Path) -> None:
    settings = load_settings(home=small_home.copy_of(template, tmp_path))
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
    job = requests.intake_job(settings, source, IntakeOptions(name="more"), by="test")
    assert job_runner.run_job(settings, job.id) == 0
    ended = job_of(settings, job.id)
    assert (ended.state, ended.error) == ("succeeded", None)
    assert ended.result["report"]["name"] == "more"
    assert ended.result["images_embedded"] == ended.result["report"]["new_images"] == 5


def test_an_update_after_an_upload_is_not_queued_when_its_strategy_does_not_fit(
    template: Path, tmp_path: Path
) -> None:
    settings = load_settings(home=small_home.copy_of(template, tmp_path))
    drawn = [(scene, "flat", n) for n, scene in enumerate(list(scenes.all_scenes())[3:200:50])]
    write_chunk(tmp_path / "english.zip", scenes=drawn, languages=["en"])
    then = UpdateRequest(chunk="", strategy="language-tables", by="test")
    job = requests.intake_job(settings, tmp_path / "english.zip", IntakeOptions(), by="test", then=then)
    assert job_runner.run_job(settings, job.id) == 0
    ended = job_of(settings, job.id)
    assert (ended.state, ended.result["report"]["new_images"]) == ("succeeded", 4)
    assert ended.result["update"] is None
    assert "captions in en alone" in ended.result["update_refused"]
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        assert catalog.jobs(state="queued") == []


def test_an_ingest_job_whose_worker_died_after_the_chunk_was_kept_makes_its_pictures_searchable(
    template: Path, tmp_path: Path
) -> None:
    settings = load_settings(home=small_home.copy_of(template, tmp_path))
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
    with Workspace.open(settings) as workspace:
        kept = ingest_source(source, catalog=workspace.catalog, blobs=workspace.blobs)
        job = requests.intake_job(settings, source, IntakeOptions(), by="test")
        died = {"name": "embed", "details": {"chunk": kept.chunk_id}}
        workspace.catalog.update_job(job.id, state="interrupted", progress=died)
    assert job_runner.run_job(settings, job.id) == 0
    ended = job_of(settings, job.id)
    assert (ended.state, ended.result["images_embedded"]) == ("succeeded", 5)
    assert ended.result["report"]["new_images"] == 5, "what was new when it was read, and not afterwards"


def test_a_gallery_job_adds_what_a_release_does_not_hold(template: Path, tmp_path: Path) -> None:
    settings = load_settings(home=small_home.copy_of(template, tmp_path))
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
    with Workspace.open(settings) as workspace:
        old = going_live.live_release(workspace)[1].id
        adding.add_chunk(workspace, source, IntakeOptions(), by="test")
        back = going_live.rollback(workspace, old, why="", by="test")
        left_out, job = requests.gallery_job(workspace, back)
    assert left_out == 5
    assert job is not None
    assert job_runner.run_job(settings, job.id) == 0
    with Workspace.open(settings) as workspace:
        assert going_live.left_out(workspace, going_live.live_release(workspace)[1].id) == 0


def test_an_update_killed_in_the_middle_is_finished_by_a_second_worker(
    template: Path, tmp_path: Path
) -> None:
    settings = load_settings(
        home=small_home.copy_of(template, tmp_path), gate={"samples": 200, "cross_fit": False}
    )
    home = Home(settings.home)
    before = len(list(home.versions.iterdir()))
    job = update_job(settings, small_home.taught_chunk(settings.home), epochs=30, batch_size=16)
    epochs: dict[int, list[int]] = {}
    killed = threading.Event()

    def watch(row: JobRecord) -> None:
        if row.progress.get("name") != "train" or row.pid is None:
            return
        epochs.setdefault(row.pid, []).append(row.progress["details"]["epoch"])
        if not killed.is_set() and row.progress["details"]["epoch"] > 2:
            killed.set()
            os.kill(row.pid, signal.SIGKILL)

    ended = worker.follow(settings, job.id, watch)
    assert ended.error is None
    # Few held-out pictures decide nothing for sure; that there is a verdict is what matters here.
    assert ended.state in {"succeeded", "review", "rejected"}
    assert len(epochs) == 2, "the update was not killed, or nobody went on"
    first, second = epochs.values()
    # The row may be older than the kill by a second of work, never newer.
    assert second[0] >= first[-1] > 2
    assert len(list(home.versions.iterdir())) == before + 1
    assert (home.versions / ended.result["version"]).is_dir()


def test_what_failed_can_be_resumed_for_a_week(settings: Settings) -> None:
    now, long_ago = (datetime.now(UTC) - timedelta(days=days) for days in (0, 8))
    with Catalog.open(settings.home / "catalog.sqlite") as catalog:
        jobs = {}
        for name, state, finished in (
            ("running", "running", None),
            ("failed today", "failed", now),
            ("failed long ago", "failed", long_ago),
            ("ended well", "succeeded", now),
        ):
            jobs[name] = catalog.add_job("update", {}).id
            done = None if finished is None else finished.isoformat()
            catalog.update_job(jobs[name], state=state, finished=done)
        assert garbage.resumable(catalog.jobs()) == {jobs["running"], jobs["failed today"]}
