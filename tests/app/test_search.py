"""Queries on a snapshot, languages, comparison, and the swap."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import BadQuery, UnknownRelease
from app.languages import candidates, detect
from app.learning import going_live, update_cycle
from app.search import LiveSnapshot, Snapshot, compare, search_text
from app.settings import Settings, load_settings
from app.workspace import Workspace
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from tests.app.small_home import copy_of, sample_chunk, small_home

LEARNED = ("en", "de", "fr", "ru", "ja", "zh")


@pytest.fixture
def settings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.fixture
def workspace(settings: Settings) -> object:
    with Workspace.open(settings) as opened:
        yield opened


def test_an_english_caption_finds_its_picture_near_the_top(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    drawn = list(scenes.all_scenes())[::40][:40]

    found = 0
    for scene in drawn:
        answer = search_text(snapshot, scenes.caption(scene, "en"), k=10)
        captions = {c.text for hit in answer.hits for c in workspace.catalog.captions_of(hit.image_id)}
        found += any(scenes.caption(scene, "en", variant=n) in captions for n in range(3))

    # A random encoder finds 10 of 40 pictures in a quarter of the cases; 10 expected, 20 has odds below 1 in 1,000.
    assert found >= 30


def test_scores_fall_and_ranks_count_from_one(workspace: Workspace) -> None:
    answer = search_text(Snapshot.load(workspace), "two red boats", k=7)

    assert [hit.rank for hit in answer.hits] == list(range(1, 8))
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)
    assert answer.release == going_live.live_release(workspace)[1].id


def test_only_allowed_pictures_come_back(workspace: Workspace) -> None:
    allowed = set(workspace.catalog.gallery_ids()[:3])

    answer = search_text(Snapshot.load(workspace), "two red boats", k=10, allowed_ids=allowed)

    assert {hit.image_id for hit in answer.hits} == allowed


@pytest.mark.parametrize(
    ("query", "says"), [("", "nothing to look for"), (" \n", "nothing"), ("a" * 501, "501")]
)
def test_a_query_that_cannot_be_searched_is_explained(workspace: Workspace, query: str, says: str) -> None:
    with pytest.raises(BadQuery, match=says):
        search_text(Snapshot.load(workspace), query)


def test_a_language_nobody_taught_is_answered_with_a_note(workspace: Workspace) -> None:
    answer = search_text(Snapshot.load(workspace), "barca rossa", language="it", k=3)

    assert len(answer.hits) == 3
    assert "it is not learned yet" in answer.note


def test_comparing_a_release_with_itself_moves_nothing(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)

    answer = compare(snapshot, snapshot, "two red boats", k=5)

    assert answer.overlap == 1.0
    assert all(move.rank_a == move.rank_b for move in answer.moves)


def test_an_unknown_release_is_named(workspace: Workspace) -> None:
    with pytest.raises(UnknownRelease, match="r77"):
        Snapshot.load(workspace, "r77")


def test_the_server_swaps_to_a_new_commit_and_old_answers_stay_whole(
    workspace: Workspace, tmp_path: Path
) -> None:
    live = LiveSnapshot(workspace)
    before = live.current
    assert live.refresh() is False

    update_cycle.add_chunk(
        workspace, sample_chunk(tmp_path / "x.zip", pictures=4, first=3), IntakeOptions(), by="t"
    )
    old_answer = search_text(before, "two red boats", k=100)

    assert live.refresh() is True
    assert live.current.commit == before.commit + 1
    assert len(live.current.generation) == len(before.generation) + 4
    assert old_answer.release == before.release.id


def test_a_damaged_newer_release_is_not_served(workspace: Workspace, tmp_path: Path) -> None:
    live = LiveSnapshot(workspace)
    before = live.current
    outcome = update_cycle.add_chunk(
        workspace, sample_chunk(tmp_path / "x.zip", pictures=4, first=3), IntakeOptions(), by="t"
    )
    assert outcome.commit is not None
    record = workspace.releases.release(outcome.commit.release)
    damaged = workspace.home.generations / record.generation / "index.faiss"
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.chmod(0o644)
    damaged.write_bytes(bytes(data))

    assert live.refresh() is False
    assert live.current is before
    assert live.problem is not None

    going_live.promote(workspace, before.release.id, why="mend", by="t")
    assert live.refresh() is True
    assert live.problem is None


def test_a_disk_that_fails_for_a_moment_is_no_lasting_problem(workspace: Workspace) -> None:
    live = LiveSnapshot(workspace)
    commits = workspace.home.commits
    hidden = commits.rename(commits.with_name("hidden"))
    assert live.refresh() is False
    assert live.problem is not None
    hidden.rename(commits)
    assert live.refresh() is False
    assert live.problem is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("two red boats on the beach", "en"),
        ("zwei rote Boote auf der Wiese bei Nacht", "de"),
        ("deux voitures vertes sur la plage", "fr"),
        ("две зелёные машины на пляже", "ru"),
        ("夕暮れの砂浜に緑色の車が二台", "ja"),
    ],
)
def test_the_language_of_a_whole_caption_is_detected(text: str, language: str) -> None:
    assert detect(text, LEARNED)[0][0] == language


def test_han_characters_alone_are_searched_as_chinese_and_japanese() -> None:
    assert set(candidates(detect("微笑", LEARNED))) == {"zh", "ja"}


def test_likelihoods_add_up_and_a_single_language_needs_no_guess() -> None:
    assert sum(share for _, share in detect("Boot", LEARNED)) == pytest.approx(1.0)
    assert detect("zwei rote Boote", ("en",)) == (("en", 1.0),)
