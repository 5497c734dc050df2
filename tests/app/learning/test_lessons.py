"""What an update looks at beside its chunk: pins, and the best versions there were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.learning import going_live, lessons, update_cycle
from app.releases.manifest import ReleaseManifest, SliceSummary
from app.settings import load_settings
from app.workspace import Workspace
from ingest.pair import SliceKey
from tests.app.releases.publishing import damage
from tests.app.small_home import copy_of, small_home

PROBES, SCENES = SliceKey("en", "probes"), SliceKey("en", "scenes")


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
    kept = lessons.canaries(workspace, same, record)
    assert [keeps for _, keeps in kept] == [True] * len(captions(workspace))

    spoiled = same.copy()
    spoiled.model.token_embedding.weight.data.zero_()  # type: ignore[union-attr,operator]
    spoiled.forget_fingerprints()
    lost = [query for query, keeps in lessons.canaries(workspace, spoiled, record) if not keeps]
    assert len(lost) > len(kept) / 2


def test_a_pin_that_live_itself_no_longer_keeps_says_nothing_about_a_candidate(workspace: Workspace) -> None:
    first, second, *_ = captions(workspace)
    pin_first_answers(workspace, [first, second])
    kept, taken_over = workspace.catalog.pins()
    workspace.catalog.set_pin(taken_over.query, "en", kept.image_id)  # as if a better picture had come
    _, record = going_live.live_release(workspace)
    asked = lessons.canaries(workspace, workspace.open_encoder(record.version), record)
    assert asked == [(kept.query, True)]


def released(workspace: Workspace, version: str, recall: float, chunks: Sequence[str] = ()) -> str:
    """Makes a release live that recorded the same recall on two slices."""
    live, record = going_live.live_release(workspace)
    recalls = {f"{way}_r{k}": recall for way in ("t2i", "i2t") for k in (1, 5, 10)}
    slices = tuple(SliceSummary(key.language, key.domain, 9, 9, recalls) for key in (PROBES, SCENES))
    facts = ReleaseManifest(
        version, record.generation, languages=("en",), chunks=tuple(chunks), slices=slices
    )
    release = workspace.releases.publish_release(facts)
    workspace.releases.commit(release, parent=live.number, reason="promote", why="", by="test")
    return release


def another_version(workspace: Workspace, name: str) -> str:
    _, record = going_live.live_release(workspace)
    facts = update_cycle._facts(workspace, strategy=name, languages=["en"], parent=record.version)
    return update_cycle._publish_version(workspace, workspace.open_encoder(record.version), facts, {})


def test_the_best_earlier_version_of_each_slice_is_measured_again(workspace: Workspace) -> None:
    good, poor = another_version(workspace, "good"), another_version(workspace, "poor")
    released(workspace, good, 99.9)
    released(workspace, poor, 1.0)
    _, record = going_live.live_release(workspace)
    slices = lessons.held_out(workspace, {"en"})
    assert lessons.best_versions(workspace, slices, record) == {good: {PROBES, SCENES}}


def test_the_pairs_of_earlier_chunks_can_be_replayed(workspace: Workspace) -> None:
    _, record = going_live.live_release(workspace)
    assert lessons.earlier_pairs(workspace, record) == ()
    chunk = workspace.catalog.chunks()[-1]
    released(workspace, record.version, 50.0, chunks=[chunk.id])
    _, record = going_live.live_release(workspace)
    earlier = lessons.earlier_pairs(workspace, record)
    assert {pair.language for pair in earlier} == {"en"}, "German has not been learned"
    tests = set(workspace.catalog.test_images("scenes"))
    assert earlier
    assert not tests & {pair.image_id for pair in earlier}


def test_a_damaged_release_of_the_past_is_left_out(workspace: Workspace) -> None:
    good, poor = another_version(workspace, "good"), another_version(workspace, "poor")
    past = released(workspace, good, 99.9)
    released(workspace, poor, 100.0)
    manifest = workspace.home.releases / past / "manifest.json"
    manifest.chmod(0o644)
    damage(manifest)
    _, record = going_live.live_release(workspace)
    assert lessons.best_versions(workspace, lessons.held_out(workspace, {"en"}), record) == {}
    assert going_live.rollback(workspace, why="", by="test").release.startswith("r2")
