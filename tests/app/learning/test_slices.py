"""What an update looks at beside its chunk: the best versions there were, and the pairs of earlier chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from app.learning import going_live, update_cycle
from app.learning.pairs import earlier_pairs
from app.learning.slices import best_versions, held_out
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
    slices = held_out(workspace, {"en"})
    assert best_versions(workspace, slices, record) == {good: {PROBES, SCENES}}


def test_the_pairs_of_earlier_chunks_can_be_replayed(workspace: Workspace) -> None:
    _, record = going_live.live_release(workspace)
    assert earlier_pairs(workspace, record) == ()
    chunk = workspace.catalog.chunks()[-1]
    released(workspace, record.version, 50.0, chunks=[chunk.id])
    _, record = going_live.live_release(workspace)
    earlier = earlier_pairs(workspace, record)
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
    assert best_versions(workspace, held_out(workspace, {"en"}), record) == {}
    assert going_live.rollback(workspace, why="", by="test").release.startswith("r2")
