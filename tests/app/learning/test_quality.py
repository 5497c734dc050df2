"""Claims about slices by versions: what is held against what, and what there is to measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.desk.errors import UsageProblem
from app.home.workspace import Workspace
from app.learning.lost import slice_moves
from app.learning.quality import coverage, quality_table
from tests.app.server.served import add_held_out, make_home


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as workspace:
        add_held_out(workspace, tmp_path)
        yield workspace


def test_releases_of_one_version_are_one_column_of_the_newest_measurement(workspace: Workspace) -> None:
    again = workspace.releases.release("r1").manifest
    better = replace(again.slices[0], recalls={name: 99.0 for name in again.slices[0].recalls})
    workspace.releases.publish_release(again.successor("r1", slices=(better,)))
    table = quality_table(workspace)
    assert [column.release[:2] for column in table.columns] == ["r4", "r2", "r3"]
    (english,) = (line.measures for line in table.lines if line.language == "en")
    assert [one and one.recall for one in english] == [99.0, 70.0, 60.0]


def test_a_candidate_that_never_was_live_is_nobodys_best(workspace: Workspace) -> None:
    table = quality_table(workspace)
    # Recall at ten of the three releases is 50, 70 and 60 percent; r1 alone was live.
    assert [(column.was_live, column.is_live) for column in table.columns] == [
        (True, True),
        (False, False),
        (False, False),
    ]
    lines = {line.language: line.measures for line in table.lines}
    assert [one and one.change for one in lines["en"]] == [None, 20.0, 10.0]
    assert lines["en"][2] is not None
    assert lines["en"][2].best == table.columns[0].release
    assert lines["de"][0] is None
    assert [one and one.change for one in lines["de"][1:]] == [None, None]
    assert (table.forgetting, table.transfer) == (None, None)  # nothing is older than what is live


def test_what_live_lost_is_held_against_the_best_that_was_ever_live(workspace: Workspace) -> None:
    for number, name in enumerate(("r2", "r3"), start=1):
        release = workspace.releases.release(name)
        workspace.releases.commit(release.id, parent=number, reason="promote", why="tests", by="tests")
    table = quality_table(workspace)
    assert table.columns[2].is_live
    assert table.forgetting == pytest.approx(10.0)  # en and de stood at 70 under r2
    assert table.transfer == pytest.approx((10.0 - 10.0) / 2)  # en 50 to 60, de 70 to 60
    means = {line.language: line.measures for line in quality_table(workspace, metric="t2i_mean").lines}
    assert means["en"][0] is not None
    assert means["en"][0].recall == pytest.approx((41 + 45 + 50) / 3)


def test_an_unknown_metric_or_view_is_refused_with_the_known_ones(workspace: Workspace) -> None:
    with pytest.raises(UsageProblem, match="t2i_mean"):
        quality_table(workspace, metric="map")
    with pytest.raises(UsageProblem, match="memory"):
        quality_table(workspace, view="other")


def test_coverage_counts_pairs_by_split(workspace: Workspace) -> None:
    found = {one.language: one for one in coverage(workspace)}
    pairs = workspace.catalog.pairs(language="de")
    german = found["de"]
    assert german.train + german.validation + german.held_out == len(pairs)
    assert german.held_out > 0
    assert (german.is_learned, found["en"].is_learned) == (False, True)
    assert not found["en"].is_enough


def test_the_captions_that_moved_are_looked_up_anew(workspace: Workspace) -> None:
    first, second = workspace.releases.release("r1").id, workspace.releases.release("r2").id
    moves = slice_moves(workspace, "en", "scenes", first, second)
    pairs = workspace.catalog.pairs(language="en", domain="scenes")
    texts = {(pair.image_id, pair.text) for pair in pairs if pair.split.value == "test"}
    assert moves.captions == len(texts)
    for one in (*moves.lost, *moves.won):
        assert (one.image_id, one.text) in texts
    assert all(one.candidate_rank > one.live_rank for one in moves.lost)
    assert all(one.candidate_rank < one.live_rank for one in moves.won)
    alike = slice_moves(workspace, "en", "scenes", second, second)
    assert (alike.lost, alike.won, alike.found_before) == ((), (), alike.found_after)
    back = slice_moves(workspace, "en", "scenes", second, first)
    assert {one.text for one in back.lost} == {one.text for one in moves.won}


@pytest.mark.parametrize(("language", "view"), [("ja", "own"), ("en", "elsewhere")])
def test_a_slice_or_view_that_is_not_there_is_refused(workspace: Workspace, language: str, view: str) -> None:
    with pytest.raises(UsageProblem):
        slice_moves(workspace, language, "scenes", "r1", "r2", view=view)
