"""A new domain in the product: known or not by measurement, taught by the default, and nothing else moves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, update_cycle
from app.learning.domains import known_domains
from app.learning.lessons import plan
from app.learning.pairs import chunk_pairs
from ingest.intake import IntakeOptions
from ingest.pair import Split
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from tests.app.small_home import copy_of, small_home

INK = 100  # fewer are found among themselves by luck: .91 of 43, .68 of 82


@pytest.fixture(scope="module")
def with_ink(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home not to be changed, with a second chunk in a domain that nobody knows."""
    folder = tmp_path_factory.mktemp("ink")
    home = copy_of(small_home(tmp_path_factory, pictures=160), folder)
    source = folder / "ink.zip"
    chosen = list(all_scenes())[3::40][:INK]
    write_chunk(source, scenes=[(scene, "ink", 1) for scene in chosen], languages=["en"])
    with Workspace.open(load_settings(home=home)) as opened:
        adding.add_chunk(opened, source, IntakeOptions(name="ink"), by="test")
    return home


@pytest.fixture
def workspace(tmp_path: Path, with_ink: Path) -> Iterator[Workspace]:
    gate = {"samples": 200, "minimum_images": 10**6, "cross_fit": False}
    with Workspace.open(load_settings(home=copy_of(with_ink, tmp_path), gate=gate)) as opened:
        yield opened


def chunk_of(workspace: Workspace, domain: str) -> str:
    return next(chunk.id for chunk in workspace.catalog.chunks() if domain in chunk.domains)


def ignore(stage: Stage) -> None:
    """Progress that nobody looks at."""


def test_what_the_base_encoder_was_trained_on_is_known_and_ink_is_not(workspace: Workspace) -> None:
    _, release = going_live.live_release(workspace)
    pairs = [
        pair
        for domain in ("scenes", "ink")
        for pair in chunk_pairs(
            workspace, workspace.catalog.chunk(chunk_of(workspace, domain)), Split.TRAIN, {"en", "de"}
        )
    ]
    assert known_domains(workspace, release, pairs) == {"scenes"}


def test_the_default_teaches_a_new_language_of_a_known_domain_alone(workspace: Workspace) -> None:
    _, release = going_live.live_release(workspace)
    lesson = plan(workspace, UpdateRequest(chunk=chunk_of(workspace, "scenes"), by="test"), release)
    assert lesson.strategy.name == "evergreen"
    assert {key.language for key in lesson.taught} == {"de"}
    assert {pair.language for pair in lesson.validation} == {"de"}


def test_a_new_domain_moves_its_own_pictures_alone_and_can_go_live(workspace: Workspace) -> None:
    _, before = going_live.live_release(workspace)
    old, generation = workspace.open_encoder(before.version), workspace.open_generation(before.generation)
    request = UpdateRequest(
        chunk=chunk_of(workspace, "ink"), options={"epochs": 1, "batch_size": 16, "rank": 4}, by="test"
    )
    outcome = update_cycle.update(workspace, request, scratch=workspace.home.staging / "j", progress=ignore)
    assert outcome.release is not None
    going_live.promote(workspace, outcome.release, why="test", by="test", force=True)

    _, after = going_live.live_release(workspace)
    new, grown = workspace.open_encoder(after.version), workspace.open_generation(after.generation)
    records = workspace.catalog.images(list(generation.ids))
    ink = [image_id for image_id in generation.ids if records[image_id].domain == "ink"]
    others = [image_id for image_id in generation.ids if image_id not in set(ink)]
    assert 0 < outcome.images_embedded <= len(ink)  # the held-out ones were embedded for the gate
    assert new.image_routes == ("ink",)
    assert np.array_equal(grown.vectors(others), generation.vectors(others))
    assert not np.array_equal(grown.vectors(ink), generation.vectors(ink))
    for language in ("en", "de"):
        assert new.text_fingerprint(language) == old.text_fingerprint(language)
    assert set(grown.routes) == set(ink)
