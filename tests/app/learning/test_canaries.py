"""Pinned queries stop a candidate that loses them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.canaries import canaries
from tests.app.small_home import copy_of, small_home

NO_CHUNK = ""  # whose pictures would be looked among, too


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def pin_first_answers(workspace: Workspace, queries: list[str]) -> None:
    _, record = going_live.live_release(workspace)
    encoder, generation = workspace.open_encoder(record.version), workspace.open_generation(record.generation)
    vectors = generation.vectors(generation.ids)
    for query in queries:
        first = int((vectors @ encoder.encode_texts([query], "en")[0]).argmax())
        workspace.catalog.set_pin(query, "en", generation.ids[first])


def captions(workspace: Workspace) -> list[str]:
    return sorted({pair.text for pair in workspace.catalog.pairs(language="en", domain="scenes")})[:20]


def test_a_pin_that_live_keeps_must_be_kept_by_the_candidate(workspace: Workspace) -> None:
    pin_first_answers(workspace, captions(workspace))
    _, record = going_live.live_release(workspace)
    same = workspace.open_encoder(record.version)
    kept = canaries(workspace, same, record, NO_CHUNK)
    assert [keeps for _, keeps in kept] == [True] * len(captions(workspace))

    spoiled = same.copy()
    spoiled.model.token_embedding.weight.data.zero_()  # type: ignore[union-attr,operator]
    spoiled.forget_fingerprints()
    lost = [query for query, keeps in canaries(workspace, spoiled, record, NO_CHUNK) if not keeps]
    assert len(lost) > len(kept) / 2


def test_a_pin_that_live_itself_no_longer_keeps_says_nothing_about_a_candidate(workspace: Workspace) -> None:
    first, second, *_ = captions(workspace)
    pin_first_answers(workspace, [first, second])
    kept, taken_over = workspace.catalog.pins()
    workspace.catalog.set_pin(taken_over.query, "en", kept.image_id)  # as if a better picture had come
    _, record = going_live.live_release(workspace)
    asked = canaries(workspace, workspace.open_encoder(record.version), record, NO_CHUNK)
    assert asked == [(kept.query, True)]


def test_pins_are_looked_up_among_the_pictures_of_the_chunk_that_is_taught(workspace: Workspace) -> None:
    _, record = going_live.live_release(workspace)
    encoder, generation = workspace.open_encoder(record.version), workspace.open_generation(record.generation)
    changed = encoder.copy()
    next(one for name, one in changed.parameters() if name.startswith("visual")).data.mul_(1.0001)
    changed.forget_fingerprints()
    held_out = workspace.catalog.test_images("scenes")
    for query in captions(workspace):
        rows = generation.vectors(held_out) @ encoder.encode_texts([query], "en")[0]
        workspace.catalog.set_pin(query, "en", held_out[int(rows.argmax())])
    (chunk,) = (one.id for one in workspace.catalog.chunks() if "scenes" in one.domains)
    among_held_out = {query for query, _ in canaries(workspace, changed, record, NO_CHUNK)}
    among_all = {query for query, _ in canaries(workspace, changed, record, chunk)}
    assert among_held_out == set(captions(workspace))
    assert among_all < among_held_out  # of the others a picture of the chunk is the first answer
