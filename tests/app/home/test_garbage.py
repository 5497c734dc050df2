"""Claims about removing what nobody needs."""

from __future__ import annotations

import os
import threading
import time

from app.desk.errors import UpdateRunning
from app.home import garbage
from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.publishing import (
    UnsyncedFileSystem,
    damage,
    promote,
    publish,
    stage,
)


def test_cleaning_removes_leftovers_but_not_what_will_be_resumed(home: Home, store: ReleaseStore) -> None:
    for name in ("dead-job", "resumable-job"):
        stage_folder = home.staging / name
        stage_folder.mkdir()
        (stage_folder / "checkpoint").write_bytes(b"x")
    (home.commits / ".tmp-dead").write_bytes(b"half a commit")
    promoted = publish(home, "kept")

    assert garbage.clean_staging(store) == [], "it may belong to somebody who is at work"
    removed = garbage.clean_staging(store, keep=["resumable-job"], grace_seconds=0)

    assert removed == ["dead-job", ".tmp-dead"]
    assert [path.name for path in home.staging.iterdir()] == ["resumable-job"]
    assert store.release(promoted)


def test_nobody_else_cleans_while_an_updater_works(home: Home, store: ReleaseStore) -> None:
    (home.staging / "working").mkdir()
    refusals: list[UpdateRunning] = []

    def clean_in_another_thread() -> None:
        try:
            garbage.clean_staging(store, grace_seconds=0)
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

    assert garbage.collect(store) == []
    assert garbage.collect(store, keep=[wanted], grace_seconds=0) == [rejected]
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
    assert garbage.collect(store) == [], "somebody is about to name it in a release"


def test_no_garbage_is_collected_while_a_release_cannot_be_read(home: Home, store: ReleaseStore) -> None:
    release = publish(home, "damaged")
    rejected = store.publish_version(stage(home, "version", "rejected", UnsyncedFileSystem()))
    damage(home.releases / release / "manifest.json")

    assert garbage.collect(store, grace_seconds=0) == []
    assert (home.versions / rejected).exists()
