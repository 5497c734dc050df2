"""The story end to end, on a real home with the embedded encoder."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.desk.errors import NoRelease, NoSpace, UpdateRunning, UsageProblem
from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import (
    adding,
    beginning,
    gallery,
    going_live,
    publishing,
    release_words,
    standing,
    update_cycle,
)
from app.learning.lessons import choose_strategy
from app.query.snapshot import Snapshot
from index import writing
from index.errors import GenerationTooNew
from index.feature_store import _key
from index.manifest import SCHEMA, files_of, read_manifest, write_manifest
from ingest import named_pictures
from ingest.errors import UnknownChunk
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.errors import BadStrategyOption, UnknownStrategy
from model_updates.features import IMAGE
from model_updates.gate.report import Policy
from tests.app.small_home import copy_of, new_home, sample_chunk, small_home
from tests.ingest.material import folder_of, picture

# Two dozen held-out pictures decide here; a product's default asks for 100.
GATE: dict[str, Any] = {"samples": 200, "minimum_images": 2}
LANGUAGE_TABLES = {"epochs": 5, "batch_size": 32}
PICTURES = 160


@pytest.fixture
def settings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home = small_home(tmp_path_factory, pictures=PICTURES)
    return load_settings(home=copy_of(home, tmp_path), gate=GATE)


@pytest.fixture
def workspace(settings: Settings) -> object:
    with Workspace.open(settings) as opened:
        yield opened


def ignore(stage: Stage) -> None:
    """Progress that nobody looks at."""


def state(workspace: Workspace) -> tuple[object, list[str], list[str]]:
    """What must not change when something is refused or rejected."""
    commit = workspace.releases.current()
    assert commit is not None
    return commit.number, [r.id for r in workspace.releases.releases()], workspace.catalog.gallery_ids()


def live_profiles(workspace: Workspace) -> set[str]:
    return set(workspace.open_encoder(going_live.live_release(workspace)[1].version).profiles)


def german_request(workspace: Workspace, **changes: object) -> UpdateRequest:
    chunk = workspace.catalog.chunks()[-1].id
    values = {"chunk": chunk, "strategy": "language-tables", "options": LANGUAGE_TABLES} | changes
    return UpdateRequest(**values)  # type: ignore[arg-type]


def test_a_new_home_has_a_release_with_probe_slices_and_an_empty_gallery(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = load_settings(home=new_home(tmp_path_factory))
    with Workspace.open(settings, read_only=True) as workspace:
        commit, release = going_live.live_release(workspace)
        assert (commit.number, commit.reason) == (1, "init")
        assert release.manifest.languages == ("en",)
        assert [(part.language, part.domain) for part in release.manifest.slices] == [("en", "probes")]
        assert workspace.catalog.gallery_ids() == []
        assert len(workspace.catalog.test_images("probes")) >= 100


def test_a_home_is_not_made_twice(settings: Settings) -> None:
    with pytest.raises(UsageProblem, match="already has releases"):
        beginning.initialise(settings)


def test_ingest_makes_pictures_searchable_and_the_same_chunk_adds_nothing(
    workspace: Workspace, tmp_path: Path
) -> None:
    source = sample_chunk(tmp_path / "more.zip", pictures=6, first=7)
    before = len(workspace.catalog.gallery_ids())

    first = adding.add_chunk(workspace, source, IntakeOptions(), by="test")
    again = adding.add_chunk(workspace, source, IntakeOptions(), by="test")

    _, record = going_live.live_release(workspace)
    generation = workspace.open_generation(record.generation)
    assert first.images_embedded == 6
    assert len(generation) == before + 6 == len(workspace.catalog.gallery_ids())
    assert (again.report.new_pairs, again.commit, again.images_embedded) == (0, None, 0)


def test_large_segments_are_joined_once_the_pictures_are_searchable(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "JOINED_AT_ONCE", 0)
    for module in (writing, adding):
        monkeypatch.setattr(module, "MOST_SEGMENTS", 2)
    segments, said = [], []

    def told(stage: Stage) -> None:
        said.append(stage.name)
        if stage.name == "join":
            _, record = going_live.live_release(workspace)
            segments.append(len(workspace.open_generation(record.generation).portions))
            assert len(workspace.open_generation(record.generation)) == workspace.catalog.gallery_size()

    for first in (7, 19, 31):
        source = sample_chunk(tmp_path / f"{first}.zip", pictures=3, first=first)
        outcome = adding.add_chunk(workspace, source, IntakeOptions(), by="test", progress=told)
        assert outcome.images_embedded == 3
    assert segments == [3, 3]
    commit, record = going_live.live_release(workspace)
    assert commit.why == "3 parts of the index were joined"
    generation = workspace.open_generation(record.generation)
    assert len(generation.portions) == 2
    assert set(generation.ids) == set(workspace.catalog.gallery_ids())


def test_a_chunk_is_in_and_held_when_its_segments_cannot_be_joined(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "MOST_SEGMENTS", 0)

    def told(stage: Stage) -> None:
        if stage.name == "join":
            raise OSError(errno.EIO, "the disk fails")

    source = sample_chunk(tmp_path / "x.zip", pictures=3, first=7)
    outcome = adding.add_chunk(workspace, source, IntakeOptions(), by="test", progress=told)
    assert outcome.images_embedded == 3


def test_what_is_lost_of_a_segment_and_of_kept_features_is_embedded_again_and_told(
    workspace: Workspace,
) -> None:
    ids = workspace.catalog.gallery_ids()
    _, record = going_live.live_release(workspace)
    rows = workspace.open_generation(record.generation).vectors(ids)
    for folder in workspace.home.generations.iterdir():
        (folder / "index.faiss").unlink()
    encoder = workspace.open_searcher(record.version)
    prints = {encoder.image_fingerprint(), encoder.trunk_fingerprint()}
    workspace.features._store.delete_many(_key(one, IMAGE, i) for one in prints for i in ids[:3])
    with pytest.raises(NoRelease, match=r"has lost its file index\.faiss. `perennial repair`"):
        Snapshot.load(workspace)
    said: list[str] = []
    commit, embedded = adding.extend_gallery(
        workspace, why="test", by="test", progress=lambda stage: said.append(stage.message)
    )
    assert (commit is not None, embedded) == (True, 3)
    assert said[-1].endswith(f"{len(ids) - 3} of what was kept of the pictures, 3 by embedding them again.")
    snapshot = Snapshot.load(workspace)
    assert snapshot.pictures == len(ids)
    np.testing.assert_allclose(snapshot.generation.vectors(ids), rows, atol=1e-6)


def test_an_index_of_a_later_program_is_not_taken_for_a_damaged_one(workspace: Workspace) -> None:
    _, record = going_live.live_release(workspace)
    folder = workspace.home.generations / record.generation
    manifest = read_manifest(folder)
    (folder / "manifest.json").chmod(0o644)
    facts = {name: value for name, value in manifest.items() if name not in {"files", "checksum"}}
    write_manifest(folder, facts | {"schema": SCHEMA + 1}, (), files_of(folder, manifest))
    with pytest.raises(GenerationTooNew, match="Install a newer release; nothing is lost"):
        gallery.sound(workspace, record.generation)


def test_a_text_only_update_goes_live_without_an_image_forward(workspace: Workspace) -> None:
    _, before = going_live.live_release(workspace)
    parent = workspace.open_encoder(before.version)
    forwards = parent.image_forwards
    stages: list[str] = []

    outcome = update_cycle.update(
        workspace,
        german_request(workspace, promote=True),
        scratch=workspace.home.staging / "j",
        progress=lambda stage: stages.append(stage.name),
    )

    assert outcome.training["image_forwards"] == 0
    # The live tower embeds the validation and held-out pictures that are not cached yet, never the gallery.
    assert outcome.images_embedded == 0
    assert outcome.mode == "none"
    assert stages[:2] == ["plan", "features"]
    assert outcome.verdict == "promote", outcome.sentence
    commit, record = going_live.live_release(workspace)
    assert outcome.commit == commit.number
    assert record.generation == before.generation
    assert record.manifest.languages == ("en", "de")
    candidate = workspace.open_encoder(record.version)
    assert candidate.text_fingerprint("en") == parent.text_fingerprint("en")
    assert candidate.image_fingerprint() == parent.image_fingerprint()
    assert candidate.image_forwards == 0
    assert parent.image_forwards - forwards <= len(workspace.catalog.test_images("probes")) + len(
        workspace.catalog.gallery_ids()
    )


def test_a_rejected_update_changes_nothing_that_is_live(workspace: Workspace) -> None:
    strict = workspace.settings.model_copy(
        update={"gate": replace(workspace.settings.gate, learned_margin=99.0)}
    )
    workspace.settings = strict
    before = state(workspace)

    outcome = update_cycle.update(
        workspace, german_request(workspace), scratch=workspace.home.staging / "j", progress=ignore
    )

    assert outcome.verdict == "reject"
    assert (outcome.release, outcome.commit) == (None, None)
    assert state(workspace) == before
    assert "stays live" in outcome.sentence
    chunk = workspace.catalog.chunks()[-1]
    assert (chunk.standing, chunk.standing_by) == ("rejected", "gate")
    assert chunk.standing_why in outcome.gate["reasons"]

    # What passes later clears it; what a person said would stand.
    workspace.settings = workspace.settings.model_copy(update={"gate": replace(Policy(), **GATE)})
    again = update_cycle.update(
        workspace, german_request(workspace), scratch=workspace.home.staging / "k", progress=ignore
    )
    assert again.verdict == "promote", again.sentence
    assert workspace.catalog.chunks()[-1].standing == "new"


def test_what_passes_waits_while_what_is_live_is_pinned_and_is_promoted_rolled_back_and_promoted_again(
    workspace: Workspace,
) -> None:
    release_words.pin(workspace, why="the exhibition", by="ada")
    first, before = going_live.live_release(workspace)
    outcome = update_cycle.update(
        workspace,
        german_request(workspace, promote=True),
        scratch=workspace.home.staging / "j",
        progress=ignore,
    )
    assert (outcome.verdict, outcome.commit) == ("promote", None)
    assert outcome.release is not None, outcome.sentence
    assert "pinned by ada" in outcome.sentence
    assert going_live.live_release(workspace)[0] == first
    release_words.unpin(workspace, why="it has ended", by="ada")
    assert before.id != outcome.release

    forward = going_live.promote(workspace, outcome.release, why="try it", by="test", force=True)
    with_german = live_profiles(workspace)
    back = going_live.rollback(workspace, why="second thoughts", by="test")
    without_german = live_profiles(workspace)
    again = going_live.promote(workspace, outcome.release, why="after all", by="test", force=True)

    assert [forward.number, back.number, again.number] == [first.number + n for n in (1, 2, 3)]
    assert (forward.release, back.release, again.release) == (outcome.release, before.id, outcome.release)
    assert [c.reason for c in workspace.releases.history()][-3:] == ["promote", "rollback", "promote"]
    # What a language looks like goes live, and back, with the encoder that reads it.
    assert (with_german, without_german) == ({"en", "de"}, {"en"})
    assert live_profiles(workspace) == {"en", "de"}


@pytest.mark.parametrize("stood_beside", [False, True])
def test_what_a_chunk_taught_does_not_go_live_once_it_or_one_beside_it_is_withdrawn(
    workspace: Workspace, tmp_path: Path, stood_beside: bool
) -> None:
    request = german_request(workspace, promote=True)
    other = sample_chunk(tmp_path / "other.zip", pictures=3, first=7)
    beside = adding.add_chunk(workspace, other, IntakeOptions(), by="test").report.chunk_id
    chunk = beside if stood_beside else request.chunk
    before = going_live.live_release(workspace)[0]

    def withdraw_while_it_is_judged(stage: Stage) -> None:
        if stage.name == "gate" and workspace.catalog.chunk(chunk).standing != "withdrawn":
            standing.withdraw(workspace, chunk, why="wrong pictures", by="ada")

    outcome = update_cycle.update(
        workspace, request, scratch=workspace.home.staging / "j", progress=withdraw_while_it_is_judged
    )
    assert (outcome.verdict, outcome.commit) == ("promote", None)
    assert "It waits, not live" in outcome.sentence
    assert "withdrawn (wrong pictures)" in outcome.sentence
    assert going_live.live_release(workspace)[0] == before


def test_an_update_judges_again_when_another_release_went_live_meanwhile(
    workspace: Workspace, tmp_path: Path
) -> None:
    source = sample_chunk(tmp_path / "meanwhile.zip", pictures=5, first=11)
    done: list[int] = []

    def ingest_during_release(stage: Stage) -> None:
        if stage.name == "release" and not done:
            done.append(1)
            adding.add_chunk(workspace, source, IntakeOptions(), by="somebody else")

    outcome = update_cycle.update(
        workspace,
        german_request(workspace),
        scratch=workspace.home.staging / "j",
        progress=ingest_during_release,
    )

    assert outcome.verdict == "promote", outcome.sentence
    _, record = going_live.live_release(workspace)
    assert record.id == outcome.release
    assert set(workspace.open_generation(record.generation).ids) == set(workspace.catalog.gallery_ids())


def test_a_language_that_went_live_meanwhile_is_not_lost(workspace: Workspace, tmp_path: Path) -> None:
    german = update_cycle.update(
        workspace,
        german_request(workspace, promote=False),
        scratch=workspace.home.staging / "de",
        progress=ignore,
    )
    assert german.release is not None, german.sentence
    french = tmp_path / "french.zip"
    chosen = list(all_scenes())[::50][:80]
    write_chunk(french, scenes=[(scene, "flat", n) for n, scene in enumerate(chosen)], languages=["fr"])
    adding.add_chunk(workspace, french, IntakeOptions(), by="test")
    taught: list[str] = []

    def promote_german_meanwhile(stage: Stage) -> None:
        if stage.name == "features":
            taught.append(stage.message)
        if stage.name == "train" and going_live.live_release(workspace)[1].id != german.release:
            going_live.promote(workspace, str(german.release), why="", by="somebody else", force=True)

    outcome = update_cycle.update(
        workspace,
        german_request(workspace),
        scratch=workspace.home.staging / "fr",
        progress=promote_german_meanwhile,
    )

    assert any("another version went live" in message for message in taught)
    _, record = going_live.live_release(workspace)
    assert record.id == outcome.release, outcome.sentence
    assert record.manifest.languages == ("en", "de", "fr")
    assert record.manifest.parent == german.release
    judged = {row["slice"] for row in outcome.gate["rows"]}
    assert {"de/scenes", "fr/scenes"} <= judged


def test_a_second_update_is_refused_while_one_runs(workspace: Workspace, settings: Settings) -> None:
    with (
        workspace.releases.updater_lock("teaching Dutch"),
        pytest.raises(UpdateRunning, match="teaching Dutch"),
    ):
        update_cycle.update(
            workspace, german_request(workspace), scratch=workspace.home.staging / "j", progress=ignore
        )


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"chunk": "feedbeef"}, UnknownChunk, "feedbeef"),
        ({"strategy": "magic"}, UnknownStrategy, "language-tables"),
        ({"options": {"epoch": 3}}, BadStrategyOption, "epochs"),
        ({"options": {"epochs": "many"}}, BadStrategyOption, "number"),
        ({"options": {"epochs": -1}}, BadStrategyOption, "epochs is not negative"),
    ],
)
def test_a_mistake_is_named_and_nothing_changes(
    workspace: Workspace, changes: dict[str, object], error: type[Exception], says: str
) -> None:
    before = state(workspace)

    with pytest.raises(error, match=says):
        update_cycle.update(
            workspace,
            german_request(workspace, **changes),
            scratch=workspace.home.staging / "j",
            progress=ignore,
        )

    assert state(workspace) == before


def test_a_disk_that_is_too_full_is_said_before_anything_runs(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(workspace)
    monkeypatch.setattr(publishing, "SPARE_BYTES", 1 << 60)

    with pytest.raises(NoSpace, match="This update needs about .* of the disk at"):
        update_cycle.update(
            workspace, german_request(workspace), scratch=workspace.home.staging / "j", progress=ignore
        )

    assert state(workspace) == before


def test_the_default_strategy_says_what_the_chunk_brings(workspace: Workspace, tmp_path: Path) -> None:
    german = workspace.catalog.chunks()[-1].id
    probes = workspace.catalog.chunks()[0].id

    assert choose_strategy(workspace, german)[0] == "evergreen"
    assert "de is new and gets word rows of its own" in choose_strategy(workspace, german)[1]
    assert "probes gets an image adapter of its own" in choose_strategy(workspace, probes)[1]


def test_the_first_pictures_of_a_large_folder_are_searchable_while_the_rest_is_read(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "FIRST_PORTION", 2)
    monkeypatch.setattr(named_pictures, "PORTION", 3)
    folder = folder_of(tmp_path / "photos", {f"{n:02}.png": picture(n) for n in range(12)})
    before, seen = len(workspace.releases.history()), list[tuple[str, int]]()

    def tell(stage: Stage) -> None:
        record = going_live.live_release(workspace)[1]
        seen.append((stage.name, len(workspace.open_generation(record.generation))))

    done = adding.add_chunk(workspace, folder, IntakeOptions(), by="test", progress=tell)

    sizes = [size for name, size in seen if name == "ingest"]
    # Of 2, 5, 8, 11 and 12 pictures read, those are embedded that are twice as many as the last time.
    assert sorted(set(sizes)) == [sizes[0] + more for more in (0, 2, 5, 11)]
    assert (done.report.new_images, done.images_embedded) == (12, 12)
    assert len(workspace.releases.history()) == before + 4
    record = going_live.live_release(workspace)[1]
    assert done.commit is not None
    assert done.commit.release == record.id
    assert len(workspace.open_generation(record.generation)) == sizes[0] + 12
