"""The integrity gate: a generation must hold each picture's own vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import delete

from app.desk.errors import ReleaseDamaged
from app.home.manifest import ReleaseManifest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import gallery, going_live
from app.learning.bulk import Bulk
from app.learning.gallery import Vectors
from app.learning.growth import Planner
from index import kinds
from index.generation import Generation
from index.writing import write_generation
from ingest.engines import writing
from ingest.intake import IntakeOptions, ingest_source
from ingest.schema import captions, chunk_captions, chunk_images, images
from model_updates.encoder import Encoder
from tests.app.small_home import copy_of, sample_chunk, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def live(workspace: Workspace) -> tuple[Encoder, Generation]:
    _, record = going_live.live_release(workspace)
    return workspace.open_encoder(record.version), workspace.open_generation(record.generation)


def published(workspace: Workspace, encoder: Encoder, vectors: Vectors) -> Generation:
    """A generation of the whole gallery with these vectors, which agrees with itself whatever they are."""
    staged = workspace.home.staging / "strange"
    ids = workspace.catalog.gallery_ids()
    write_generation(staged, fingerprint=encoder.image_fingerprint(), ids=ids, vectors=vectors, mode="full")
    return workspace.open_generation(workspace.releases.publish_generation(staged))


def test_a_sound_generation_passes_with_its_figures(workspace: Workspace) -> None:
    encoder, generation = live(workspace)
    wanted = workspace.catalog.gallery_ids()
    figures = gallery.require_sound(
        generation, encoder, wanted, lambda ids: gallery.embedded(workspace, encoder, ids)
    )
    assert (figures["coverage"], figures["agreement"]) == (1.0, 1.0)


def test_what_is_taken_in_while_a_generation_is_made_waits_for_the_next(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A watched folder's job reads on while somebody else's pictures are made searchable."""
    _, record = going_live.live_release(workspace)
    encoder, before = live(workspace)

    def take_in(name: str, first: int) -> None:
        chunk = sample_chunk(tmp_path / name, pictures=3, first=first)
        options = IntakeOptions()
        ingest_source(chunk, catalog=workspace.catalog, blobs=workspace.blobs, options=options)

    take_in("theirs.zip", 11)
    made = gallery.embed_gallery(workspace, encoder, previous=before)
    take_in("others.zip", 13)
    assert gallery.require_published(workspace, made, encoder, record)["coverage"] == 1.0
    held = workspace.open_generation(made.generation).ids
    assert len(before.ids) < len(held) < len(workspace.catalog.gallery_ids())


@pytest.mark.parametrize("kind", ["shuffled", "collapsed"])
def test_vectors_of_other_pictures_are_found(workspace: Workspace, kind: str) -> None:
    encoder, generation = live(workspace)
    right = generation.vectors(workspace.catalog.gallery_ids())
    wrong = np.roll(right, 1, axis=0) if kind == "shuffled" else np.repeat(right[:1], len(right), axis=0)
    strange = published(workspace, encoder, wrong)

    def expected(ids: Sequence[str]) -> Vectors:
        return gallery.embedded(workspace, encoder, ids)

    with pytest.raises(ReleaseDamaged, match="other vectors than its encoder gives"):
        gallery.require_sound(strange, encoder, workspace.catalog.gallery_ids(), expected)


def test_a_generation_that_lacks_pictures_is_refused(workspace: Workspace) -> None:
    encoder, generation = live(workspace)
    with pytest.raises(ReleaseDamaged, match="lacks 1 of"):
        gallery.require_own(workspace, generation, encoder, [*workspace.catalog.gallery_ids(), "f" * 64])


def test_a_large_gallery_gets_the_kind_of_index_that_the_settings_name(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, _ = live(workspace)
    workspace.settings = workspace.settings.model_copy(update={"index": "HNSW16"})
    exact = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=None).generation)
    assert exact.manifest["factory"] == "Flat", "too small for anything else"
    monkeypatch.setattr(kinds, "EXACT_BELOW", 10)
    made = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=None).generation)
    assert made.manifest["factory"] == "HNSW16"
    figures = gallery.require_own(workspace, made, encoder, workspace.catalog.gallery_ids())
    assert figures["agreement"] >= gallery.WORST_AGREEMENT


def test_a_gallery_that_grows_large_is_kept_in_half_the_room(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, before = live(workspace)
    monkeypatch.setattr(kinds, "EXACT_BELOW", 10)
    # Slow is what lies between the time that all take with all their bits and with half of them on a typical machine.
    monkeypatch.setattr(kinds, "SLOW", (len(before) - 0.5) * before.dim / kinds.TYPICAL.flat)
    own = workspace.settings
    workspace.settings = own.model_copy(update={"index": "Flat"})
    workspace.catalog.withheld.take_out(before.ids[:1], why="test", by="test")
    small = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=before).generation)
    assert (small.manifest["factory"], small.portions[0].segment) == ("Flat", before.portions[0].segment)
    workspace.settings = own
    workspace.catalog.withheld.put_back(before.ids[:1])
    large = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=small).generation)
    assert (large.manifest["factory"], large.ids) == ("SQfp16", before.ids)
    gallery.require_own(workspace, large, encoder, before.ids)
    scores, found = large.search(before.vectors(before.ids[:3]), 1)
    assert [row[0] for row in found] == before.ids[:3]
    assert 0 < np.abs(scores - 1).max() < 1e-3


def test_a_release_with_strange_vectors_cannot_be_promoted(workspace: Workspace) -> None:
    encoder, generation = live(workspace)
    commit, record = going_live.live_release(workspace)
    strange = published(workspace, encoder, np.roll(generation.vectors(generation.ids), 1, axis=0))
    facts = ReleaseManifest(record.version, strange.id, languages=("en",))
    release = workspace.releases.publish_release(facts)
    with pytest.raises(ReleaseDamaged, match="other vectors"):
        going_live.promote(workspace, release, why="", by="test")
    assert workspace.releases.current() == commit


def test_what_came_and_went_is_found_without_going_through_the_gallery(workspace: Workspace) -> None:
    encoder, before = live(workspace)
    ids = before.ids
    assert _came(workspace, encoder, before) == ([], [])
    assert gallery.embed_gallery(workspace, encoder, previous=before).mode == "none"
    out = [ids[3], ids[-1]]
    workspace.catalog.withheld.take_out(out, why="test", by="test")
    assert _came(workspace, encoder, before) == ([], [ids[3], ids[-1]])
    less = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=before).generation)
    assert set(less.ids) == set(ids) - set(out)
    workspace.catalog.withheld.put_back(out)  # one came first, one last
    assert _came(workspace, encoder, less) == (out, [])
    made = gallery.embed_gallery(workspace, encoder, previous=less)
    again = workspace.open_generation(made.generation)
    assert (made.mode, made.images_embedded, set(again.ids)) == ("delta", 0, set(ids))
    assert again.portions[0].segment is less.portions[0].segment
    gallery.require_own(workspace, again, encoder, ids)


def test_beside_an_older_catalog_the_gallery_is_gone_through(workspace: Workspace) -> None:
    """Pictures that the catalog does not know any more hide how many it lacks."""
    encoder, before = live(workspace)
    workspace.catalog.withheld.take_out(before.ids[-3:], why="test", by="test")
    less = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=before).generation)
    workspace.catalog.withheld.put_back(before.ids[-3:])
    with writing(workspace.catalog._engine) as connection:
        for table in (chunk_captions, captions, chunk_images):
            connection.execute(delete(table))
        connection.execute(delete(images).where(images.c.id.in_(before.ids[:2])))
    assert _came(workspace, encoder, less) is None
    made = workspace.open_generation(gallery.embed_gallery(workspace, encoder, previous=less).generation)
    assert set(made.ids) == set(before.ids[2:])


def _came(
    workspace: Workspace, encoder: Encoder, generation: Generation
) -> tuple[list[str], list[str]] | None:
    found = Planner(workspace, encoder, None, Bulk(workspace, encoder, "", lambda *_: None)).since(
        generation, generation.choice
    )
    return None if found is None else (list(found.ids), sorted(found.gone, key=generation.ids.index))
