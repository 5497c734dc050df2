from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.errors import (
    CommitUnconfirmed,
    NoRelease,
    NoSpace,
    ParentMoved,
    ReleaseDamaged,
    UnknownRelease,
    UpdateRunning,
    UsageProblem,
)
from app.releases import lock
from app.releases.commits import CommitRecord
from app.releases.home import Home
from app.releases.manifest import ReleaseManifest
from app.releases.store import ReleaseStore
from tests.app.releases.publishing import (
    FailingFileSystem,
    UnsyncedFileSystem,
    damage,
    full_disk,
    live_content,
    promote,
    publish,
    stage,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.create(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> ReleaseStore:
    return ReleaseStore(home, UnsyncedFileSystem())


def current(store: ReleaseStore) -> CommitRecord:
    commit = store.current()
    assert commit is not None
    return commit


def commit_file(home: Home, number: int) -> Path:
    return home.commits / f"{number:08d}.json"


def test_a_new_home_has_no_current_release(store: ReleaseStore) -> None:
    assert store.current() is None
    assert store.history() == []
    assert store.releases() == []


def test_a_promoted_release_is_current_and_says_where_it_comes_from(home: Home, store: ReleaseStore) -> None:
    first = promote(home, "english")
    second = promote(home, "german")

    assert current(store) == second
    assert (second.number, second.parent, second.reason, second.why) == (2, 1, "promote", "teach german")
    assert store.history() == [first, second]
    record = store.release(second.release)
    assert (record.version[:3], record.generation[:3], record.id[:3]) == ("v2-", "g2-", "r2-")
    assert record.manifest.strategy == "german"
    assert (record.folder / "report.html").read_bytes() == b"german"


def test_the_same_content_published_again_keeps_its_id(home: Home, store: ReleaseStore) -> None:
    files = UnsyncedFileSystem()
    first = store.publish_version(stage(home, "version", "same", files))
    again = store.publish_version(stage(home, "version", "same", files))
    other = store.publish_version(stage(home, "version", "other", files))

    assert first == again
    assert other.startswith("v2-")
    assert list(home.staging.iterdir()) == []


def test_a_rotten_published_folder_is_not_reused_for_the_same_content(
    home: Home, store: ReleaseStore
) -> None:
    files = UnsyncedFileSystem()
    first = store.publish_version(stage(home, "version", "same", files))
    damage(home.versions / first / "weights.bin")

    again = store.publish_version(stage(home, "version", "same", files))

    assert again.startswith("v2-")
    assert again[3:] == first[3:]


def test_an_unfinished_folder_is_not_published(home: Home, store: ReleaseStore) -> None:
    staged = home.staging / "job"
    staged.mkdir()
    (staged / "weights.bin").write_bytes(b"half")

    with pytest.raises(ReleaseDamaged, match=r"it has no manifest\.json"):
        store.publish_version(staged)

    assert list(home.versions.iterdir()) == []


def test_a_release_can_only_name_what_is_published(home: Home, store: ReleaseStore) -> None:
    version = store.publish_version(stage(home, "version", "a", UnsyncedFileSystem()))

    with pytest.raises(UnknownRelease, match=r"names generation 'g1-00000000', which is not published"):
        store.publish_release(ReleaseManifest(version, "g1-00000000"))

    assert list(home.staging.iterdir()) == []


def test_a_number_finds_its_release_and_never_a_longer_number(home: Home, store: ReleaseStore) -> None:
    ids = [publish(home, f"content {number}") for number in range(11)]

    assert store.release("r1").id == ids[0]
    assert store.release("r11").id == ids[10]
    assert store.release(ids[4]).id == store.release(ids[4][:-3]).id == ids[4]


@pytest.mark.parametrize("asked", ["r9", "", "r", "r1-zzzz", "../commits", "v1"])
def test_an_unknown_release_is_refused_with_the_known_ones(
    home: Home, store: ReleaseStore, asked: str
) -> None:
    known = publish(home, "one")

    with pytest.raises(UnknownRelease, match=known):
        store.release(asked)


def test_a_commit_checked_against_an_older_release_is_refused(home: Home, store: ReleaseStore) -> None:
    promote(home, "english")
    late = publish(home, "late")
    promote(home, "german")

    with pytest.raises(ParentMoved, match=r"checked against commit 1, but commit 2 is current") as refusal:
        store.commit(late, parent=1, reason="promote", why="", by="")

    assert refusal.value.exit_code == 5
    assert live_content(home) == "german"


def test_a_commit_that_loses_the_last_moment_is_refused_and_leaves_nothing(home: Home) -> None:
    promote(home, "english")
    mine, theirs = publish(home, "mine"), publish(home, "theirs")
    rival = ReleaseStore(home, UnsyncedFileSystem())

    class OvertakenFileSystem(UnsyncedFileSystem):
        def link(self, source: Path, target: Path) -> None:
            if not target.exists():
                rival.commit(theirs, parent=1, reason="promote", why="faster", by="rival")
            super().link(source, target)

    with pytest.raises(ParentMoved, match="at the same moment"):
        ReleaseStore(home, OvertakenFileSystem()).commit(
            mine, parent=1, reason="promote", why="slower", by="me"
        )

    assert live_content(home) == "theirs"
    assert sorted(path.name for path in home.commits.iterdir()) == ["00000001.json", "00000002.json"]


def test_of_processes_that_commit_on_the_same_parent_exactly_one_wins(home: Home) -> None:
    release = promote(home, "english").release
    rounds = 30
    racers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.app.releases.publishing",
                "race",
                str(home.root),
                release,
                str(rounds),
            ],
            stdout=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    (home.root / "go").touch()
    won = [json.loads(racer.communicate()[0]) for racer in racers]

    assert sorted(number for numbers in won for number in numbers) == list(range(2, rounds + 2))
    assert [commit.parent for commit in ReleaseStore(home).history()] == [None, *range(1, rounds + 1)]


def test_rollback_is_a_new_higher_commit_of_an_older_release(home: Home, store: ReleaseStore) -> None:
    first = promote(home, "english")
    promote(home, "german")

    back = store.commit(first.release, parent=2, reason="rollback", why="German was better before", by="me")
    forward = store.commit(store.history()[1].release, parent=3, reason="promote", why="again", by="me")

    assert (back.number, back.release, forward.number) == (3, first.release, 4)
    assert live_content(home) == "german"
    assert [commit.reason for commit in store.history()] == ["promote", "promote", "rollback", "promote"]


def test_a_commit_needs_one_of_the_four_reasons(home: Home, store: ReleaseStore) -> None:
    with pytest.raises(UsageProblem, match="init, promote, rollback, ingest"):
        store.commit(publish(home, "a"), parent=None, reason="because", why="", by="")


def test_every_damaged_byte_of_the_newest_commit_falls_back_to_the_one_before(
    home: Home, store: ReleaseStore
) -> None:
    promote(home, "english")
    promote(home, "german")
    newest = commit_file(home, 2)
    intact = newest.read_bytes()

    for position in range(len(intact)):
        newest.write_bytes(intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :])
        commit = current(store)
        assert (commit.number, [skipped.number for skipped in commit.skipped]) == (1, [2]), position


def test_after_a_damaged_commit_the_next_number_is_above_it(home: Home, store: ReleaseStore) -> None:
    promote(home, "english")
    promote(home, "german")
    commit_file(home, 2).write_bytes(b"")

    commit = promote(home, "french")

    assert (commit.number, commit.parent) == (3, 1)
    assert live_content(home) == "french"


@pytest.mark.parametrize("shelf", ["versions", "generations", "releases"])
@pytest.mark.parametrize(
    "harm", ["manifest changed", "manifest lost", "folder lost", "file lost", "file cut"]
)
def test_a_live_release_that_is_damaged_is_skipped_with_the_reason(
    home: Home, store: ReleaseStore, shelf: str, harm: str
) -> None:
    promote(home, "english")
    promote(home, "german")
    folder = sorted((home.root / shelf).iterdir())[1]
    file = folder / ("report.html" if shelf == "releases" else "weights.bin")
    if harm == "manifest changed":
        damage(folder / "manifest.json", change=lambda data: data.replace(b"german", b"gherkin"))
    elif harm == "manifest lost":
        (folder / "manifest.json").unlink()
    elif harm == "folder lost":
        folder.rename(home.staging / "lost")
    elif harm == "file lost":
        file.unlink()
    else:
        damage(file, change=lambda data: data[:-1])

    commit = current(store)

    assert commit.number == 1
    assert [skipped.number for skipped in commit.skipped] == [2]
    assert commit.skipped[0].why


def test_a_changed_byte_in_a_large_file_is_found_by_full_verification(
    home: Home, store: ReleaseStore
) -> None:
    record = store.release(promote(home, "english").release)
    damage(home.versions / record.version / "state" / "memory.bin")

    with pytest.raises(ReleaseDamaged, match=r"state/memory\.bin of version v1-.* has changed"):
        store.verify_release(record.id)


def test_a_damaged_release_cannot_be_made_live(home: Home, store: ReleaseStore) -> None:
    promote(home, "english")
    release = publish(home, "german")
    (home.versions / store.release(release).version / "weights.bin").unlink()

    with pytest.raises(ReleaseDamaged, match=r"lost its file weights\.bin"):
        store.commit(release, parent=1, reason="promote", why="", by="")

    assert live_content(home) == "english"


def test_a_home_whose_commits_are_all_damaged_says_so_and_can_be_repaired(
    home: Home, store: ReleaseStore
) -> None:
    release = promote(home, "english").release
    commit_file(home, 1).write_bytes(b"rot")
    with pytest.raises(NoRelease, match="None of the 1 commits can be trusted"):
        store.current()

    store.commit(release, parent=None, reason="rollback", why="repair", by="me")

    assert current(store).number == 2


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
        "import os, subprocess, sys; from pathlib import Path; from app.releases import lock\n"
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


def test_a_full_disk_at_any_step_before_the_link_leaves_the_old_release_live(home: Home) -> None:
    promote(home, "english")
    live, errors = [], []
    for step in range(100):
        files = FailingFileSystem(step, full_disk())
        try:
            promote(home, "german", files)
        except OSError:
            errors.append("while staging")  # the caller writes its own files, in its own words
        except (NoSpace, CommitUnconfirmed) as error:
            errors.append(type(error).__name__)
        live.append(live_content(home))
        if live[-1] == "german":
            break
        ReleaseStore(home).clean_staging(grace_seconds=0)
        assert list(home.staging.iterdir()) == []

    assert len(live) > 20
    assert live == ["english"] * (len(live) - 1) + ["german"]
    assert errors[-1] == "CommitUnconfirmed"
    assert errors.count("NoSpace") >= 10
    assert promote(home, "french").number == 3
    assert live_content(home) == "french"
