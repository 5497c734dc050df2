"""Claims about pruning a store: killed anywhere, every kept release is whole, and what is pruned is still named."""

from __future__ import annotations

import errno
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.desk.errors import ReleaseDamaged, ReleasePruned, UsageProblem
from app.home import garbage
from app.home.durable import KILLED, PRUNE_POINTS
from app.home.folder import Home
from app.home.manifest import ReleaseManifest
from app.home.store import ReleaseStore
from tests.app.home.power_loss import Disk, RecordingFileSystem, materialise
from tests.app.home.publishing import UnsyncedFileSystem, current, damage, live_content, promote, publish

CONTENTS = ("english", "german", "french")


@pytest.fixture
def old(home: Home) -> str:
    """The oldest of three releases; the last one is live."""
    first = promote(home, CONTENTS[0]).release
    for content in CONTENTS[1:]:
        promote(home, content)
    return first


def _whole(home: Home) -> list[str]:
    """The releases that are kept, every byte of them verified."""
    store = ReleaseStore(home)
    kept = [record for record in store.releases() if record.pruned is None]
    return [str(store.verify_release(record.id).manifest.strategy) for record in kept]


def test_what_is_pruned_leaves_room_and_is_still_named(home: Home, old: str) -> None:
    store = ReleaseStore(home)
    record = store.release(old)
    folders = {path.name for path in garbage.given_up_by(store, [old])}
    assert folders == {record.version, record.generation}
    assert set(garbage.prune(store, [old], by="ada", why="room")) == folders
    assert _whole(home) == ["german", "french"]
    assert not (home.versions / record.version).exists()
    gone = store.release("r1")
    assert gone.pruned is not None
    assert (gone.pruned.by, gone.pruned.why) == ("ada", "room")
    assert gone.manifest.strategy == "english"
    assert [commit.release for commit in store.history()][0] == old
    with pytest.raises(ReleasePruned, match="was pruned"):
        store.commit(old, parent=current(store).number, reason="rollback", why="", by="")
    with pytest.raises(UsageProblem, match="is live"):
        garbage.prune(store, [current(store).release], by="", why="")


def test_a_disk_that_fills_between_two_marks_leaves_the_room_of_the_first(home: Home, old: str) -> None:
    class Filling(UnsyncedFileSystem):
        def write(self, path: Path, data: bytes) -> None:
            if path.parent == home.pruned and any(home.pruned.glob("*.json")):
                raise OSError(errno.ENOSPC, "No space left on device")
            super().write(path, data)

    store = ReleaseStore(home, Filling())
    first, second = (record.id for record in store.releases()[:2])
    with pytest.raises(OSError, match="No space left"):
        garbage.prune(store, [first, second], by="ada", why="room")
    assert _whole(home) == ["german", "french"]
    assert not (home.versions / store.release(old).version).exists()


@pytest.mark.parametrize("point", PRUNE_POINTS)
def test_a_kill_at_any_step_leaves_each_release_kept_whole_or_pruned(
    home: Home, old: str, point: str
) -> None:
    command = [sys.executable, "-m", "tests.app.home.publishing", "prune", str(home.root), old]
    killed = subprocess.run(command, env={**os.environ, "PERENNIAL_FAULT": point}, check=False, timeout=60)
    assert killed.returncode == KILLED
    assert live_content(home) == "french"
    is_pruned = ReleaseStore(home).release(old).pruned is not None
    assert is_pruned is (point != "prune:mark")
    assert _whole(home) == (["german", "french"] if is_pruned else list(CONTENTS))
    # Whoever prunes next finishes what was begun.
    store = ReleaseStore(home)
    garbage.prune(store, [old], by="a test", why="room")
    assert _whole(home) == ["german", "french"]
    assert [len(list(shelf.iterdir())) for shelf in (home.versions, home.generations)] == [2, 2]
    garbage.clean_staging(store, grace_seconds=0)
    assert list(home.staging.iterdir()) == []
    promote(home, "spanish")
    assert live_content(home) == "spanish"


def test_no_power_cut_takes_anything_from_what_is_kept(home: Home, old: str, tmp_path: Path) -> None:
    disk, files = Disk.of(home.root), RecordingFileSystem(home.root)
    garbage.prune(ReleaseStore(home, files), [old], by="a test", why="room")
    chance = random.Random(0)
    for number, operation in enumerate(files.operations):
        disk.apply(operation)
        for attempt in range(20):
            place = tmp_path / f"{number}-{attempt}"
            materialise(disk.after_power_cut(chance), place)
            after = Home(place)
            assert live_content(after) == "french"
            assert {"german", "french"} <= set(_whole(after)) <= set(CONTENTS)


def test_a_release_that_goes_live_meanwhile_is_not_pruned(home: Home, old: str) -> None:
    """Both look and act under one lock: whoever comes second is refused, and what is live is whole."""
    refused: list[Exception] = []

    def attempt(what: str) -> None:
        store = ReleaseStore(home, UnsyncedFileSystem())
        try:
            if what == "prune":
                garbage.prune(store, [old], by="", why="")
            else:
                store.commit(old, parent=current(store).number, reason="rollback", why="", by="")
        except (ReleasePruned, UsageProblem) as error:
            refused.append(error)

    threads = [threading.Thread(target=attempt, args=(what,)) for what in ("prune", "commit")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert live_content(home) == ("french" if isinstance(refused[0], ReleasePruned) else "english")


def test_nothing_goes_while_a_release_cannot_be_read(home: Home, old: str) -> None:
    store = ReleaseStore(home)
    damage(home.releases / store.release("r2").id / "manifest.json")
    with pytest.raises(ReleaseDamaged, match="cannot be read"):
        garbage.given_up_by(store, [old])
    assert garbage.prune(store, [old], by="", why="") == []
    assert len(list(home.versions.iterdir())) == 3


def test_a_version_that_a_kept_line_started_from_stays(home: Home) -> None:
    first = publish(home, "english")
    root = ReleaseStore(home).release(first).version
    staged = home.staging / "taught"
    staged.mkdir()
    (staged / "manifest.json").write_text(json.dumps({"root": root, "files": {}}), encoding="utf-8")
    store = ReleaseStore(home)
    taught = store.publish_version(staged)
    generation = store.release(first).generation
    kept = store.publish_release(ReleaseManifest(taught, generation))
    assert garbage.given_up_by(store, [first]) == []
    assert garbage.prune(store, [first], by="", why="") == []
    assert store.verify_release(kept)
    assert (home.versions / root).is_dir()
