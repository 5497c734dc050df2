"""Pictures of a domain that nobody taught are searchable and push nothing that is known aside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, gallery, going_live, untaught
from app.learning.bulk import Bulk
from app.learning.growth import Planned, Planner
from app.learning.untaught import UNTAUGHT, Learned, untaught_finding, untaught_routes
from index.generation import Generation
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.encoder import Encoder
from model_updates.gate.examined import MOST_DISPLACED
from model_updates.inserts import domain
from model_updates.parts.adapters import FeatureHead
from model_updates.routes import loudness, quiet
from tests.app.small_home import copy_of, small_home
from tests.model_updates.photographs import drawn_pictures, photo_encoder


class Head(nn.Module):
    """Gives out what comes in, and knows in which direction texts differ least."""

    def __init__(self, texts: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
        super().__init__()
        rows = torch.from_numpy(texts)
        self.apart = torch.linalg.eigh(rows.T @ rows)[1][:, 0]

    def forward(self, trunk: Tensor) -> Tensor:
        return trunk


@pytest.fixture(scope="module")
def painted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home not to be changed: its encoder knows scenes, and paintings of others came as a domain of their own."""
    folder = tmp_path_factory.mktemp("painted")
    home = copy_of(small_home(tmp_path_factory, pictures=160), folder)
    source = folder / "gouache.zip"
    chosen = [(scene, "gouache", 1) for scene in list(all_scenes())[3::40][:100]]
    write_chunk(source, scenes=chosen, languages=["en"], domain="gouache")
    with Workspace.open(load_settings(home=home)) as opened:
        adding.add_chunk(opened, source, IntakeOptions(), by="test")
    return home


@pytest.fixture
def workspace(tmp_path: Path, painted: Path) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(painted, tmp_path))) as opened:
        yield opened


def taught(workspace: Workspace) -> Encoder:
    """The live encoder as one that keeps features and has a head of its own for scenes, which blurs what it sees."""
    _, record = going_live.live_release(workspace)
    encoder = workspace.open_encoder(record.version).copy()
    texts = [pair.text for pair in workspace.catalog.pairs(language="en")]
    encoder.model.image_head = Head(encoder.encode_texts(texts, "en"))
    torch.manual_seed(0)
    shape = FeatureHead.configuration(encoder.trunk_dim, encoder.dim)
    head = FeatureHead.build(domain("scenes"), shape, encoder.model).eval().requires_grad_(False)
    head.added.weight.normal_(std=0.03)
    encoder.inserts.append(head)
    encoder.forget_fingerprints()
    return encoder


def known(workspace: Workspace) -> Learned:
    return Learned(frozenset(one.id for one in workspace.catalog.chunks() if "scenes" in one.domains), ["en"])


def new(workspace: Workspace) -> list[str]:
    return sorted(workspace.catalog.ids_where(domains=["gouache"]))


def scenes_came(workspace: Workspace, place: Path, domain: str, first: int) -> None:
    source = place / f"{domain}-{first}.zip"
    chosen = [(scene, "gouache", 1) for scene in list(all_scenes())[first::40][:12]]
    write_chunk(source, scenes=chosen, languages=["en"], domain=domain)
    adding.add_chunk(workspace, source, IntakeOptions(), by="test")


def grown(workspace: Workspace, encoder: Encoder, previous: Generation, learned: Learned) -> Generation:
    made = gallery.embed_gallery(workspace, encoder, previous=previous, known=learned)
    return workspace.open_generation(made.generation)


def came(workspace: Workspace, encoder: Encoder, previous: Generation, learned: Learned) -> Planned | None:
    return Planner(workspace, encoder, learned, Bulk(workspace, encoder, "", lambda *_: None)).since(
        previous, previous.choice
    )


def test_what_comes_is_added_alone_and_answers_as_when_the_whole_gallery_is_gone_through(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, learned = taught(workspace), known(workspace)
    live = workspace.open_generation(going_live.live_release(workspace)[1].generation)
    before = grown(workspace, encoder, live, learned)
    scenes_came(workspace, tmp_path, "scenes", first=7)
    workspace.catalog.withheld.take_out(before.ids[:1], why="test", by="test")
    assert came(workspace, encoder, before, learned) is None, "how they are found may depend on who left"
    workspace.catalog.withheld.put_back(before.ids[:1])
    found = came(workspace, encoder, before, learned)
    assert found is not None
    assert set(found.ids) == set(workspace.catalog.gallery_ids()) - set(before.ids)
    assert set(found.routes.values()) == {"scenes"}
    quick = grown(workspace, encoder, before, learned)
    with monkeypatch.context() as patched:
        patched.setattr(Planner, "since", lambda *_: None)
        whole = grown(workspace, encoder, before, learned)
    ids = workspace.catalog.gallery_ids()
    assert set(quick.ids) == set(whole.ids) == set(ids)
    assert (quick.routes, quick.fingerprints) == (whole.routes, whole.fingerprints)
    np.testing.assert_array_equal(quick.vectors(ids), whole.vectors(ids))
    queries = encoder.encode_texts(["a red boat", "a house"], "en")
    for mine, theirs in zip(quick.search(queries, 50), whole.search(queries, 50), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    gallery.require_own(workspace, quick, encoder, ids)

    assert came(workspace, encoder, quick, Learned(learned.chunks, ["en", "de"])) is None
    some = sorted(workspace.catalog.ids_where(domains=["scenes"]))[:3]
    workspace.catalog.set_domain(some, "gouache")
    assert came(workspace, encoder, quick, learned) is None
    workspace.catalog.set_domain(some, "scenes")
    assert came(workspace, encoder, quick, learned) is not None
    scenes_came(workspace, tmp_path, "gouache", first=19)
    assert came(workspace, encoder, quick, learned) is None


def lost(workspace: Workspace, encoder: Encoder, generation: Generation, route: str) -> float:
    """Points of R(1, 5, 10) that captions of scenes lose to the new pictures which read a route."""
    pairs = workspace.catalog.pairs(domain="scenes", language="en")
    ids = sorted({pair.image_id for pair in pairs})
    own = np.asarray([ids.index(pair.image_id) for pair in pairs])
    queries = encoder.encode_texts([pair.text for pair in pairs], "en")
    scores = queries @ generation.vectors(ids).T
    mine = scores[np.arange(len(own)), own][:, None]
    drawn = encoder.encode_images([workspace.load_image(one) for one in new(workspace)], route)
    before = (scores > mine).sum(axis=1)
    after = before + (queries @ drawn.T > mine).sum(axis=1)
    return 100 * float(np.mean([(before < k).mean() - (after < k).mean() for k in (1, 5, 10)]))


def test_known_captions_keep_their_pictures_and_the_upload_says_how(workspace: Workspace) -> None:
    encoder, previous = taught(workspace), going_live.live_release(workspace)[1].generation
    made = gallery.embed_gallery(
        workspace, encoder, previous=workspace.open_generation(previous), known=known(workspace)
    )
    generation = workspace.open_generation(made.generation)
    routes = {generation.routes[image_id] for image_id in new(workspace)}
    name, share = loudness(next(iter(routes)))

    assert len(routes) == 1
    assert name == "scenes"
    assert lost(workspace, encoder, generation, "scenes") > MOST_DISPLACED
    assert lost(workspace, encoder, generation, quiet(name, share)) <= MOST_DISPLACED
    gallery.require_own(workspace, generation, encoder, workspace.catalog.gallery_ids())
    said = untaught_finding(workspace, workspace.catalog.chunks()[-1].id, generation)
    assert said is not None
    assert (said.check, said.figures) == (UNTAUGHT, {"gouache": share})
    assert "Pictures of gouache look like nothing that was learned" in said.sentence
    assert untaught_finding(workspace, next(iter(known(workspace).chunks)), generation) is None


def test_no_more_is_taken_from_them_than_what_is_known_needs(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = taught(workspace)
    monkeypatch.setattr(untaught, "MOST_DISPLACED", 100.0)
    loud = untaught_routes(workspace, encoder, workspace.catalog.gallery_domains(), {}, known(workspace))
    assert loud == dict.fromkeys(new(workspace), quiet("scenes", 0.7))


@pytest.mark.parametrize("route", ["", "a"])
def test_a_quiet_picture_has_a_share_of_its_likeness_to_every_text(route: str) -> None:
    encoder = photo_encoder()
    pictures = drawn_pictures()
    texts = encoder.encode_texts(["a blue square", "two dogs on a beach"], "en")
    loud, low = (encoder.encode_images(pictures, one) for one in (route, quiet(route, 0.4)))

    assert np.allclose(np.linalg.norm(low, axis=1), 1, atol=1e-5)
    assert np.allclose(texts @ low.T, 0.4 * (texts @ loud.T), atol=1e-3)
    assert encoder.image_fingerprint(quiet(route, 0.4)) != encoder.image_fingerprint(route)
    assert encoder.trunk_fingerprint(quiet(route, 0.4)) == encoder.trunk_fingerprint(route)
    assert loudness(quiet(route, 0.4)) == (route, 0.4)
    assert quiet(route, 1) == route
