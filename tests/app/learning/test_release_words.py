from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import UnknownRelease, UsageProblem
from app.home.workspace import Workspace
from app.learning import going_live, release_words
from ingest.errors import BadOption
from tests.app.server.served import make_home


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """r1 is live, r2 passed, r3 waits for a review and has the encoder of r2."""
    with Workspace.open(make_home(tmp_path)) as workspace:
        yield workspace


def promote(workspace: Workspace, release: str, *, force: bool = False) -> str:
    return going_live.promote(workspace, release, why="it is few pictures", by="grace", force=force).release[
        :2
    ]


def test_a_rejection_is_kept_with_its_reason_and_stands_against_promoting(workspace: Workspace) -> None:
    word = release_words.judge_release(workspace, "r2", "rejected", why="it mixes boats up", by="ada")
    assert release_words.judgement(workspace, word.release) == word
    with pytest.raises(UsageProblem, match="ada rejected r2-.*it mixes boats up.*--force"):
        promote(workspace, "r2")
    assert promote(workspace, "r2", force=True) == "r2"


def test_keeping_it_takes_the_rejection_back(workspace: Workspace) -> None:
    release_words.judge_release(workspace, "r2", "rejected", why="wrong", by="ada")
    release_words.judge_release(workspace, "r2", "kept", why="it is few pictures", by="grace")
    assert promote(workspace, "r2") == "r2"


@pytest.mark.parametrize(
    ("release", "said", "why", "error"),
    [
        ("r1", "rejected", "x", UsageProblem),
        ("r2", "rejected", "  ", BadOption),
        ("r2", "loved", "x", BadOption),
        ("r9", "kept", "x", UnknownRelease),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_kept(
    workspace: Workspace, release: str, said: str, why: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        release_words.judge_release(workspace, release, said, why=why, by="ada")
    assert workspace.catalog.release_words.all() == []


def test_a_pin_keeps_another_version_from_going_live_until_it_is_taken_away(workspace: Workspace) -> None:
    release_words.pin(workspace, why="the exhibition", by="ada")
    with pytest.raises(UsageProblem, match=r"r1-\w+ is pinned by ada.*the exhibition.*unpin"):
        promote(workspace, "r2", force=True)
    with pytest.raises(UsageProblem, match="pinned by ada"):
        release_words.pin(workspace, why="it is few pictures", by="grace")
    release_words.unpin(workspace, why="it is few pictures", by="grace")
    assert promote(workspace, "r2") == "r2"
    with pytest.raises(UsageProblem, match="Nothing is pinned"):
        release_words.unpin(workspace, why="it is few pictures", by="grace")


def test_a_pin_is_of_the_version_so_that_more_pictures_of_it_may_go_live(workspace: Workspace) -> None:
    promote(workspace, "r2")
    release_words.pin(workspace, why="", by="ada")
    manifest = workspace.releases.release("r2").manifest
    workspace.releases.publish_release(manifest.successor("r2", mode="delta", created="2026-02-03T00:00:00"))
    assert promote(workspace, "r4") == "r4"
    assert release_words.pinned(workspace) is not None


def test_going_back_is_possible_whatever_is_pinned_and_ends_the_pins_hold(workspace: Workspace) -> None:
    promote(workspace, "r2")
    release_words.pin(workspace, why="", by="ada")
    assert going_live.rollback(workspace, why="it is few pictures", by="grace").release[:2] == "r1"
    assert release_words.pinned(workspace) is None
    assert promote(workspace, "r3", force=True) == "r3"
