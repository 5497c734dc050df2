from __future__ import annotations

from pathlib import Path

import pytest

from app.desk.errors import UnknownRelease
from app.home.workspace import Workspace
from app.learning.difference import difference_between
from app.words.difference import difference_sentences, slice_rows
from tests.app.server.served import make_home


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(make_home(tmp_path), read_only=True)


def test_what_the_second_knows_more_and_what_it_reads_differently(workspace: Workspace) -> None:
    with workspace:
        found = difference_between(workspace, "r1", "r2")
    assert (found.a[:2], found.b[:2], found.same_version) == ("r1", "r2", False)
    assert (found.languages.added, found.languages.gone) == (("de",), ())
    # The text tower was changed, the image tower was not.
    assert (found.texts_changed, found.texts_same, found.pictures_changed) == (("en",), (), ())
    assert found.pictures == (10, 10, 10)
    said = " ".join(difference_sentences(found))
    assert "B alone has the languages de." in said
    assert "Read differently: en." in said
    assert "Every picture is seen the same to the bit." in said


def test_the_other_way_round_is_the_opposite(workspace: Workspace) -> None:
    with workspace:
        there, back = difference_between(workspace, "r1", "r2"), difference_between(workspace, "r2", "r1")
    assert (there.languages.added, there.languages.gone) == (back.languages.gone, back.languages.added)
    assert [(one.a, one.b) for one in there.slices] == [(one.b, one.a) for one in back.slices]


def test_recall_stands_beside_recall_and_a_dash_where_nobody_measured(workspace: Workspace) -> None:
    with workspace:
        rows = slice_rows(difference_between(workspace, "r1", "r2"))
    mean = sum((1, 5, 10)) / 3
    assert ("de/scenes", "own", "–", f"{60 + mean:.1f}", "–") in rows
    assert ("en/scenes", "own", f"{40 + mean:.1f}", f"{60 + mean:.1f}", "+20.0") in rows


def test_a_release_and_itself_do_not_differ(workspace: Workspace) -> None:
    with workspace:
        found = difference_between(workspace, "r2", "r2")
    assert found.same_version
    assert (found.texts_changed, found.pictures_changed, found.languages.added) == ((), (), ())
    assert "the same encoder" in difference_sentences(found)[0]


def test_an_unknown_release_is_named(workspace: Workspace) -> None:
    with workspace, pytest.raises(UnknownRelease, match="r9"):
        difference_between(workspace, "r1", "r9")
