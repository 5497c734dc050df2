"""Claims about the updater's lock, and about removing what nobody needs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from app.desk.errors import (
    UpdateRunning,
)
from app.home import lock
from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.publishing import (
    UnsyncedFileSystem,
    damage,
    promote,
    publish,
    stage,
)


def test_a_second_updater_is_told_who_is_at_it(home: Home, store: ReleaseStore) -> None:
    with (
        store.updater_lock("teaching German"),
        pytest.raises(UpdateRunning, match=rf"Process {os.getpid()} .* \(teaching German\)") as refusal,
        ReleaseStore(home).updater_lock(),
    ):
        pass

    assert refusal.value.exit_code == 5


def test_the_lock_is_free_after_its_block_and_after_an_error_in_it(home: Home, store: ReleaseStore) -> None:
    with pytest.raises(ZeroDivisionError), store.updater_lock():
        raise ZeroDivisionError

    assert store.lock_holder() is None
    with store.updater_lock("again"):
        holder = ReleaseStore(home).lock_holder()
    assert holder is not None
    assert (holder.pid, holder.what) == (os.getpid(), "again")


def test_an_orphan_of_a_dead_updater_does_not_keep_the_lock(home: Home, store: ReleaseStore) -> None:
    code = (
        "import os, subprocess, sys; from pathlib import Path; from app.home import lock\n"
        f"with lock.hold(Path({str(home.lock)!r}), 'dying'):\n"
        "    quiet = subprocess.DEVNULL\n"
        "    orphan = subprocess.Popen(['sleep', '30'], close_fds=False, stdout=quiet, stderr=quiet)\n"
        "    print(orphan.pid, flush=True)\n"
        "    os._exit(137)\n"
    )
    dead = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, text=True, timeout=20
    )
    orphan = int(dead.stdout)
    try:
        with store.updater_lock("next"):
            os.kill(orphan, 0)  # still alive, so it could have kept the lock
            holder = store.lock_holder()
    finally:
        os.kill(orphan, 9)
    assert holder is not None
    assert holder.what == "next"


def test_cleaning_removes_leftovers_but_not_what_will_be_resumed(home: Home, store: ReleaseStore) -> None:
    for name in ("dead-job", "resumable-job"):
        stage_folder = home.staging / name
        stage_folder.mkdir()
        (stage_folder / "checkpoint").write_bytes(b"x")
    (home.commits / ".tmp-dead").write_bytes(b"half a commit")
    promoted = publish(home, "kept")

    assert store.clean_staging() == [], "it may belong to somebody who is at work"
    removed = store.clean_staging(resumable=["resumable-job"], grace_seconds=0)

    assert removed == ["dead-job", ".tmp-dead"]
    assert [path.name for path in home.staging.iterdir()] == ["resumable-job"]
    assert store.release(promoted)


def test_nobody_else_cleans_while_an_updater_works(home: Home, store: ReleaseStore) -> None:
    (home.staging / "working").mkdir()
    refusals: list[UpdateRunning] = []

    def clean_in_another_thread() -> None:
        try:
            store.clean_staging(grace_seconds=0)
        except UpdateRunning as refusal:
            refusals.append(refusal)

    with store.updater_lock("working"):
        thread = threading.Thread(target=clean_in_another_thread)
        thread.start()
        thread.join()

    assert len(refusals) == 1
    assert (home.staging / "working").exists()


def test_garbage_is_what_no_release_names_once_it_is_old(home: Home, store: ReleaseStore) -> None:
    files = UnsyncedFileSystem()
    promote(home, "live")
    publish(home, "released but never live")
    rejected = store.publish_version(stage(home, "version", "rejected", files))
    wanted = store.publish_version(stage(home, "version", "wanted", files))

    assert store.collect_garbage() == []
    assert store.collect_garbage(keep=[wanted], grace_seconds=0) == [rejected]
    assert not (home.versions / rejected).exists()
    assert len(list(home.versions.iterdir())) == 3
    for record in store.releases():
        store.verify_release(record.id)


def test_what_is_published_again_is_young_again(home: Home, store: ReleaseStore) -> None:
    files = UnsyncedFileSystem()
    orphan = store.publish_version(stage(home, "version", "the same", files))
    an_hour_ago = time.time() - 3600
    os.utime(home.versions / orphan, (an_hour_ago, an_hour_ago))
    assert store.publish_version(stage(home, "version", "the same", files)) == orphan
    assert store.collect_garbage() == [], "somebody is about to name it in a release"


def test_an_updater_outwaits_a_server_that_tidies_up(home: Home) -> None:
    began = threading.Event()

    def tidy() -> None:
        with lock.hold(home.lock, lock.TIDYING):
            began.set()
            time.sleep(0.5)

    thread = threading.Thread(target=tidy)
    thread.start()
    began.wait(timeout=10)
    with ReleaseStore(home).updater_lock("teaching"):
        holder = ReleaseStore(home).lock_holder()
    thread.join(timeout=10)
    assert holder is not None
    assert holder.what == "teaching"


def test_no_garbage_is_collected_while_a_release_cannot_be_read(home: Home, store: ReleaseStore) -> None:
    release = publish(home, "damaged")
    rejected = store.publish_version(stage(home, "version", "rejected", UnsyncedFileSystem()))
    damage(home.releases / release / "manifest.json")

    assert store.collect_garbage(grace_seconds=0) == []
    assert (home.versions / rejected).exists()
