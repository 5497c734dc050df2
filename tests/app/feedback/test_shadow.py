"""Claims about the shadow of a release: who may be there, when it ends, and what the figures say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import UnknownRelease, UsageProblem
from app.desk.operation import adapter, document_of
from app.desk.opinions import FEWEST, ShadowReport
from app.feedback import shadow
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.release_words import judge_release
from app.local.at_home import AtHome
from app.ui.compare import shadows_between
from app.words.shadow import line_cells, shadow_sentences
from ingest.shadows import ShadowCount
from tests.app.server.served import make_home


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as workspace:
        yield workspace


def _counted(workspace: Workspace, *, queries: int, overlap: float = 0.5, language: str = "de") -> None:
    version = workspace.releases.release("r1").version
    release = workspace.releases.release("r2").id
    record = workspace.catalog.shadows.active()
    count = ShadowCount(
        release, version, language, queries=queries, overlap=overlap * queries, same_first=queries // 2
    )
    workspace.catalog.shadows.add([count], shadow=record.id if record else 0)


def test_a_candidate_is_in_the_shadow_until_somebody_ends_it(workspace: Workspace) -> None:
    assert not shadow.report(workspace, "r2").started
    shadow.start(workspace, "r2", by="ada")
    told = shadow.report(workspace, "r2")
    assert (told.is_active, told.share, told.by) == (True, workspace.settings.shadow_share, "ada")
    assert "in the shadow since" in shadow_sentences(told)[0]
    shadow.stop(workspace, "r2", by="bob", why="seen enough")
    told = shadow.report(workspace, "r2")
    assert (told.is_active, told.stopped_by, told.why) == (False, "bob", "seen enough")
    assert "bob ended it: seen enough" in shadow_sentences(told)[0]


@pytest.mark.parametrize("share", [0.0, -1.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(workspace: Workspace, share: float) -> None:
    with pytest.raises(UsageProblem, match="above 0 and up to 1"):
        shadow.start(workspace, "r2", share=share, by="ada")


def test_what_cannot_be_in_the_shadow_is_refused_with_a_reason(workspace: Workspace) -> None:
    with pytest.raises(UsageProblem, match="is live: it would answer the same"):
        shadow.start(workspace, "r1", by="ada")
    with pytest.raises(UnknownRelease):
        shadow.start(workspace, "r9", by="ada")
    with pytest.raises(UsageProblem, match="No release is"):
        shadow.stop(workspace, "r2", by="ada")
    shadow.start(workspace, "r2", by="ada")
    with pytest.raises(UsageProblem, match=r"r2-\w+ is in the shadow already"):
        shadow.start(workspace, "r3", by="ada")
    with pytest.raises(UsageProblem, match=r"r3-\w+ is not in the shadow. r2-\w+ is"):
        shadow.stop(workspace, "r3", by="ada")


def test_a_release_that_goes_live_or_is_rejected_leaves_the_shadow(workspace: Workspace) -> None:
    shadow.start(workspace, "r2", by="ada")
    judge_release(workspace, "r2", "rejected", why="too slow", by="bob")
    assert shadow.report(workspace, "r2").why == "it was rejected"
    shadow.start(workspace, "r2", by="ada")
    going_live.promote(workspace, "r2", why="good", by="cleo", force=True)
    assert shadow.active(workspace) is None
    told = shadow.report(workspace, "r2")
    assert (told.is_active, told.why, told.stopped_by) == (False, "it went live", "cleo")


def test_a_release_that_went_live_still_tells_what_it_showed_beside_the_one_before(
    workspace: Workspace,
) -> None:
    shadow.start(workspace, "r2", by="ada")
    _counted(workspace, queries=40)
    going_live.promote(workspace, "r2", why="good", by="ada", force=True)
    told = shadow.report(workspace, "r2")
    assert told.against == workspace.releases.release("r1").id
    assert told.total is not None
    assert told.total.queries == 40


def test_the_most_asked_language_comes_first_and_the_total_is_over_all(workspace: Workspace) -> None:
    _counted(workspace, queries=10, overlap=0.2, language="th")
    _counted(workspace, queries=30, overlap=0.6)
    told = shadow.report(workspace, "r2")
    assert [line.language for line in told.languages] == ["de", "th"]
    assert told.total is not None
    assert told.total.overlap == pytest.approx(50)
    assert told.total.low < 50 < told.total.high
    assert told.is_enough
    assert "shows 50 % of the first 10 pictures" in " ".join(shadow_sentences(told))
    assert line_cells(told.languages[0], str.upper)[:3] == ("DE", "30", "60 %")


def test_few_queries_are_said_to_mean_little(workspace: Workspace) -> None:
    _counted(workspace, queries=FEWEST - 1)
    told = shadow.report(workspace, "r2")
    assert not told.is_enough
    assert "That is little" in " ".join(shadow_sentences(told))
    assert adapter(ShadowReport).validate_python(document_of(told)) == told


def test_a_report_belongs_to_the_pair_it_was_made_of(workspace: Workspace) -> None:
    _counted(workspace, queries=5)
    r1, r2, r3 = (workspace.releases.release(name).id for name in ("r1", "r2", "r3"))
    desk = AtHome(workspace.settings, by="tests", workspace=workspace)
    assert [one.release for one in shadows_between(desk, r1, r2)] == [r2]
    assert [one.release for one in shadows_between(desk, r2, r1)] == [r2]
    assert shadows_between(desk, r1, r3) == []
    assert shadows_between(desk, r2, r2) == []


@pytest.mark.parametrize(
    ("live", "other", "expected"),
    [
        ("abcd", "abcd", (1.0, True, 0.0)),
        ("abcd", "bacx", (0.75, False, 2 / 3)),  # b and a one place each, c none
        ("abcd", "wxyz", (0.0, False, 0.0)),
        ("ab", "abcd", (1.0, True, 0.0)),
        ("", "", (1.0, True, 0.0)),
        ("ab", "", (0.0, False, 0.0)),
    ],
)
def test_how_far_two_answers_lie_apart(live: str, other: str, expected: tuple[float, bool, float]) -> None:
    assert shadow.how_far(live, other) == pytest.approx(expected)
