"""Claims about commits: one at a time, on what was live, and never half."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.desk.errors import (
    CommitUnconfirmed,
    NoSpace,
    ParentMoved,
    UsageProblem,
)
from app.home import garbage
from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.publishing import (
    FailingFileSystem,
    UnsyncedFileSystem,
    current,
    full_disk,
    live_content,
    promote,
    publish,
)


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
    race = [
        sys.executable,
        "-m",
        "tests.app.home.publishing",
        "race",
        str(home.root),
        release,
        str(rounds),
    ]
    with ExitStack() as ended:
        racers = [ended.enter_context(subprocess.Popen(race, stdout=subprocess.PIPE)) for _ in range(3)]
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


def test_a_full_disk_at_any_step_before_the_link_leaves_the_old_release_live(tmp_path: Path) -> None:
    live, errors = [], []
    for step in range(100):
        home = Home.create(tmp_path / str(step))  # each step meets the same disk
        promote(home, "english")
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
        garbage.clean_staging(ReleaseStore(home), grace_seconds=0)
        assert list(home.staging.iterdir()) == []

    assert len(live) > 20
    assert live == ["english"] * (len(live) - 1) + ["german"]
    assert errors[-1] == "CommitUnconfirmed"
    assert errors.count("NoSpace") >= 10
    assert promote(home, "french").number == 3
    assert live_content(home) == "french"
