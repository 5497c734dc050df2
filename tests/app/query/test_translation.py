"""Claims about a query and its translation counting together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.desk.errors import BadQuery
from app.desk.hits import SearchAnswer, SearchRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.query import translation
from app.query.finder import Finder
from app.query.grammar import parse
from app.query.question import Question
from app.query.snapshot import Snapshot
from app.query.translation import Eta, Etas, chosen_eta
from tests.app.small_home import small_home

GERMAN, ENGLISH = "zwei rote Boote am Strand", "two red boats on the beach"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=small_home(tmp_path_factory, pictures=200))) as opened:
        yield opened


@pytest.fixture(scope="module")
def snapshot(workspace: Workspace) -> Snapshot:
    return Snapshot.load(workspace)


def _find(workspace: Workspace, snapshot: Snapshot, query: str, k: int = 20, **asked: Any) -> SearchAnswer:
    question = Question(parse(query), asked=SearchRequest(**asked), k=k)
    return Finder(workspace).find(snapshot, question)


def _noisy(noise: float, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Cosines of 200 queries and 200 pictures: their own one's is higher, and all are noisy."""
    rng = np.random.default_rng(seed)
    return (np.eye(200) + noise * rng.standard_normal((200, 200))).astype(np.float32)


def test_eta_leans_to_what_finds_more() -> None:
    right = np.arange(200)

    assert chosen_eta(_noisy(0.05, 0), _noisy(3, 1), right) < 0.5
    assert chosen_eta(_noisy(3, 0), _noisy(0.05, 1), right) > 0.5
    assert 0.3 <= chosen_eta(_noisy(0.5, 0), _noisy(0.5, 1), right) <= 0.7


def test_the_score_is_both_cosines_weighed(workspace: Workspace, snapshot: Snapshot) -> None:
    learned = replace(snapshot, languages=("en", "de"))

    answer = _find(workspace, learned, GERMAN, language="de", translation=ENGLISH)

    eta = Etas(workspace.catalog, workspace.features).of(learned, "de").value
    assert answer.eta == eta
    ids = learned.generation.ids
    pictures = learned.generation.vectors(ids)
    own, english = (
        pictures @ learned.encoder.encode_texts([text], tag)[0]
        for text, tag in ((GERMAN, "de"), (ENGLISH, "en"))
    )
    scores = (1 - eta) * own + eta * english
    order = np.argsort(-scores)[:20]
    assert [hit.id for hit in answer.hits] == [ids[n] for n in order]
    assert [hit.score for hit in answer.hits] == pytest.approx([float(scores[n]) for n in order], abs=1e-5)


def test_of_a_language_that_is_not_learned_the_translation_alone_counts(
    workspace: Workspace, snapshot: Snapshot
) -> None:
    alone = _find(workspace, snapshot, GERMAN, language="de")
    helped = _find(workspace, snapshot, GERMAN, language="de", translation=ENGLISH)
    english = _find(workspace, snapshot, ENGLISH, language="en")

    assert "de is not learned yet" in alone.note
    assert "Give an English translation" in alone.note
    assert "translation counts 100 %" in helped.note
    assert [hit.id for hit in helped.hits] == [hit.id for hit in english.hits]
    assert [hit.relevance for hit in helped.hits] == [hit.relevance for hit in english.hits]


def test_eta_is_chosen_on_validation_pairs_in_both_languages(
    workspace: Workspace, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Etas(workspace.catalog, workspace.features).of(snapshot, "ja") == Eta(1.0, 0)
    monkeypatch.setattr(translation, "FEWEST", 5)

    chosen = Etas(workspace.catalog, workspace.features).of(snapshot, "de")

    assert chosen.pairs >= 5
    assert chosen.value > 0.5  # nobody taught this encoder German


def test_only_one_text_has_a_translation(workspace: Workspace, snapshot: Snapshot) -> None:
    with pytest.raises(BadQuery, match="one text has a translation"):
        _find(workspace, snapshot, "rot + blau", translation="red")
    with pytest.raises(BadQuery, match="nothing to look for"):
        _find(workspace, snapshot, "rot", translation=" \u3164 ")
