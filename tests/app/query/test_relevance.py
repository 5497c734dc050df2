"""Claims about what cosines are said to mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from app.desk.errors import BadQuery
from app.desk.hits import Relevance, SearchAnswer, SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.query.finder import Finder
from app.query.grammar import parse
from app.query.question import Question
from app.query.relevance import Calibration, Levels, levels_of
from app.query.snapshot import Snapshot
from ingest.pair import Split
from tests.app.small_home import small_home


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=small_home(tmp_path_factory, pictures=200))) as opened:
        yield opened


@pytest.fixture(scope="module")
def snapshot(workspace: Workspace) -> Snapshot:
    return Snapshot.load(workspace)


def _find(workspace: Workspace, snapshot: Snapshot, query: str, k: int = 10, **asked: Any) -> SearchAnswer:
    question = Question(parse(query), asked=SearchRequest(**asked), k=k)
    return Finder(workspace).find(snapshot, question)


def test_levels_lie_where_the_two_samples_say() -> None:
    rng = np.random.default_rng(0)
    matches = rng.normal(0.8, 0.05, 4000).astype(np.float32)
    background = rng.normal(0.1, 0.1, 40000).astype(np.float32)

    levels = levels_of(matches, background)

    assert levels.strong == pytest.approx(0.8 - 0.674 * 0.05, abs=0.01)  # a quarter lies below
    assert levels.weak == pytest.approx(0.1 + 0.75 * 0.7, abs=0.01)
    assert [levels.of(cosine) for cosine in (0.9, 0.7, 0.5)] == list(Relevance)


def test_where_background_and_matches_overlap_strong_is_what_others_seldom_reach() -> None:
    rng = np.random.default_rng(0)
    matches = rng.normal(0.3, 0.04, 4000).astype(np.float32)
    background = rng.normal(0.2, 0.04, 40000).astype(np.float32)

    levels = levels_of(matches, background)

    assert levels.strong == pytest.approx(0.2 + 3.09 * 0.04, abs=0.01)
    assert (background >= levels.strong).mean() <= 0.001


def test_held_out_captions_find_strong_hits_and_what_is_not_there_does_not(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    captions = [
        pair.text
        for split in (Split.TEST, Split.VALIDATION)
        for pair in workspace.catalog.pairs(language="en", split=split)
        if pair.image_id in snapshot.generation.positions
    ]
    found = [_find(workspace, snapshot, text, language="en").relevance for text in captions]
    absent = [
        _find(workspace, snapshot, text, language="en").relevance
        for text in ("the president gives a speech", "spaghetti with tomato sauce", "quantum field theory")
    ]

    assert found.count("strong") >= 0.6 * len(found)
    assert "nothing" not in found
    assert absent == ["nothing"] * 3


def test_a_least_relevance_cuts_the_answer_where_it_begins_to_be_less(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    whole = _find(workspace, snapshot, "two red boats on the beach at night", k=500)
    weak = [hit for hit in whole.hits if hit.relevance != "nothing"]

    cut = _find(
        workspace, snapshot, "two red boats on the beach at night", k=500, min_relevance=Relevance.WEAK
    )

    assert 0 < len(weak) < len(whole.hits)
    assert cut.hits == tuple(weak)


def test_what_nobody_measured_is_not_said(workspace: Workspace, snapshot: Snapshot) -> None:
    spanish = _find(workspace, snapshot, "dos barcos rojos", language="es")
    picture = _find(workspace, snapshot, f"#{snapshot.generation.ids[0]}")

    assert {hit.relevance for hit in (*spanish.hits, *picture.hits)} == {""}
    assert spanish.relevance == ""
    with pytest.raises(BadQuery, match="Search without"):
        _find(workspace, snapshot, "dos barcos rojos", language="es", min_relevance=Relevance.WEAK)


def test_levels_are_measured_once(workspace: Workspace, snapshot: Snapshot) -> None:
    calibration = Calibration(workspace.catalog, workspace.features)

    first = calibration.levels(snapshot, "en")

    assert isinstance(first, Levels)
    assert calibration.levels(snapshot, "en") is first
