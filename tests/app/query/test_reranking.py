"""Re-ranking: the first hits in another order, kept readings, and refusals that say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from app.desk.errors import BadQuery
from app.desk.hits import SearchAnswer
from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live, update_cycle
from app.query import reranking
from app.query.finder import Finder
from app.query.question import Question
from app.query.ranking import FIRST
from app.query.reranking import Reranker
from app.query.snapshot import Snapshot
from model_updates.encoder import Encoder
from model_updates.errors import NoFusion
from model_updates.fusion.encoder import fusion_of, new_fusion, towers_digest
from model_updates.fusion.matching import Matcher
from tests.app.small_home import copy_of, small_home
from tests.model_updates.tiny import draw, image_ids, make_strategy, teach, tiny_encoder


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))
    with Workspace.open(settings) as opened:
        yield opened


def find(workspace: Workspace, snapshot: Snapshot, text: str, k: int = 24, **asked: Any) -> SearchAnswer:
    return Finder(workspace).find(snapshot, Question.of(text, k, **asked))


def test_what_an_update_teaches_goes_live_and_reranks_after_a_cold_start(workspace: Workspace) -> None:
    _, before = going_live.live_release(workspace)
    request = UpdateRequest(
        chunk=workspace.catalog.chunks()[-1].id,
        strategy="ctp",
        options={"epochs": 1, "batch_size": 16, "fusion": True, "fusion_layers": 1},
        by="test",
    )
    scratch = workspace.home.staging / "j"
    outcome = update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None)
    assert outcome.release is not None
    going_live.promote(workspace, outcome.release, why="test", by="test", force=True)
    assert "re-ranked" in " ".join(outcome.training["notes"])
    answer = find(workspace, Snapshot.load(workspace), "two red boats", k=5, rerank=True)
    assert answer.release != before.id
    assert len(answer.hits) == 5
    assert all(hit.match is not None for hit in answer.hits)


def with_fusion(workspace: Workspace) -> Snapshot:
    """The live release with a fusion encoder that nothing taught: its order is as good as any."""
    plain = Snapshot.load(workspace)
    torch.manual_seed(1)
    encoder = workspace.open_encoder(plain.release.version).copy()
    fusion = new_fusion(encoder, 1)
    torch.nn.init.normal_(fusion.match.weight, std=20.0)
    fusion.config["towers"] = towers_digest(encoder)
    encoder.inserts.append(fusion.eval())
    return replace(
        plain, encoder=encoder, reranker=Reranker.of(encoder, workspace.load_image, plain.generation.routes)
    )


def test_a_release_without_a_fusion_encoder_says_so_and_searches_as_ever(workspace: Workspace) -> None:
    snapshot = Snapshot.load(workspace)
    assert snapshot.reranker is None
    with pytest.raises(BadQuery, match="cannot re-rank: it has no fusion encoder; `ctp` with fusion=yes"):
        find(workspace, snapshot, "two red boats", rerank=True)
    assert all(hit.match is None for hit in find(workspace, snapshot, "two red boats", k=3).hits)


def test_the_first_hits_are_ordered_by_cosine_and_matching_together(workspace: Workspace) -> None:
    snapshot = with_fusion(workspace)
    plain = find(workspace, snapshot, "two red boats", language="en", k=60)
    found = find(workspace, snapshot, "two red boats", language="en", k=60, rerank=True)
    assert {hit.id for hit in found.hits} == {hit.id for hit in plain.hits}
    assert [hit.rank for hit in found.hits] == list(range(1, len(found.hits) + 1))
    first = found.hits[:FIRST]
    scale = snapshot.encoder.similarity_scale
    together = [
        scale * hit.score + hit.match for hit in first if hit.match is not None and hit.score is not None
    ]
    assert len(together) == len(first)
    assert together == sorted(together, reverse=True)
    assert [hit.id for hit in first] != [hit.id for hit in plain.hits[:FIRST]]
    cosines = {hit.id: hit.score for hit in plain.hits}
    assert all(hit.score == pytest.approx(cosines[hit.id]) for hit in found.hits)
    assert found.timing.rerank > 0


def test_a_short_answer_is_cut_from_the_reranked_fifty(workspace: Workspace) -> None:
    snapshot = with_fusion(workspace)
    long = find(workspace, snapshot, "two red boats", language="en", k=40, rerank=True)
    short = find(workspace, snapshot, "two red boats", language="en", k=5, rerank=True)
    assert [hit.id for hit in short.hits] == [hit.id for hit in long.hits[:5]]


def test_towers_that_have_moved_are_not_asked(workspace: Workspace) -> None:
    snapshot = with_fusion(workspace)
    assert isinstance(snapshot.encoder, Encoder)
    fusion = fusion_of(snapshot.encoder)
    assert fusion is not None
    fusion.config["towers"] = "others"
    with pytest.raises(BadQuery, match=r"Release r\S+ cannot re-rank: its towers have moved since"):
        find(workspace, snapshot, "two red boats", rerank=True)


def taught() -> Encoder:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("ctp", fusion=True, epochs=1))
    return encoder


class Pictures:
    """Gives drawn pictures and counts how often each was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, image_id: str) -> Image.Image:
        self.asked.append(image_id)
        return draw(image_id)


def test_a_picture_is_read_once_and_again_only_when_memory_was_short(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, pictures, ids = taught(), Pictures(), image_ids()
    reranker = Reranker(encoder, pictures, {})
    first = reranker.log_odds("ein roter Kreis", "de", ids)
    again = reranker.log_odds("ein roter Kreis", "de", ids[::-1])
    assert pictures.asked == ids
    assert np.allclose(first, again[::-1], atol=1e-5)
    monkeypatch.setattr(reranking, "MOST_BYTES", 4 * (5 * 32 + 24) * 3)  # three pictures of five patches
    pictures.asked.clear()
    reranker.log_odds("ein roter Kreis", "de", ids[:2])
    assert pictures.asked == []
    reranker.log_odds("ein roter Kreis", "de", ids[4:8])
    assert pictures.asked == ids[4:8]
    reranker.log_odds("ein roter Kreis", "de", ids[6:8])
    assert pictures.asked == ids[4:8]


def test_what_is_kept_of_a_picture_holds_no_other_pictures_memory() -> None:
    matcher = Matcher(taught())
    for part in matcher.read([draw(image_id) for image_id in image_ids()])[0]:
        assert part.untyped_storage().nbytes() == part.numel() * part.element_size()


def test_an_encoder_without_one_has_no_reranker_and_a_moved_one_refuses() -> None:
    assert Reranker.of(tiny_encoder(), draw, {}) is None
    encoder = taught()
    with torch.no_grad():
        encoder.model.get_parameter("visual.proj").add_(1.0)
    encoder.forget_fingerprints()
    reranker = Reranker.of(encoder, draw, {})
    assert reranker is not None
    with pytest.raises(NoFusion, match="teach it again"):
        reranker.log_odds("red", "en", image_ids())
