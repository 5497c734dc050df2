"""Claims about embedding many pictures: cut as the loop cuts them, and believed of a machine that computes as we do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from app.desk.errors import ClusterUnusable
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.bulk import Bulk
from app.learning.embedder import ImageBatch
from app.learning.ray_embedding import OnRay, embedded
from model_updates.features import CHUNK, IMAGE, NoCache, image_features, trunk_features
from model_updates.inserts import domain
from model_updates.parts.adapters import FeatureHead
from model_updates.routes import BASE
from model_updates.search_encoder import IMAGE_BATCH, Rows
from tests.app.small_home import copy_of, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as workspace:
        yield workspace


def test_batches_are_those_of_the_loop_whatever_is_kept_already(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = workspace.open_encoder(going_live.live_release(workspace)[1].version).copy()
    shape = FeatureHead.configuration(encoder.trunk_dim, encoder.dim)
    encoder.inserts.append(
        FeatureHead.build(domain("scenes"), shape, encoder.model).eval().requires_grad_(False)
    )
    encoder.forget_fingerprints()
    picture = workspace.load_image(workspace.catalog.gallery_ids()[0])
    ids = [f"{n:064x}" for n in range(CHUNK + 3 * IMAGE_BATCH + 9)]
    rows = np.ones((200, encoder.trunk_dim), dtype=np.float32)
    workspace.features.put(encoder.trunk_fingerprint(), IMAGE, ids[50:250], rows)
    workspace.features.put(encoder.image_fingerprint("scenes"), IMAGE, ids[100:300], rows)
    routes = dict.fromkeys([*ids[10:90:2], *ids[90:]], "scenes")
    cut = [batch.ids for batch in Bulk(workspace, encoder, "", print)._lacking(ids, routes)]
    read: list[str] = []
    sizes: list[int] = []

    def load(image_id: str) -> Image.Image:
        read.append(image_id)
        return picture

    def tower(pixels: Rows, route: str = "") -> Rows:
        sizes.append(len(pixels))
        return rows[: len(pixels)]

    monkeypatch.setattr(encoder, "trunk_of", tower)
    image_features(encoder, ids, load, workspace.features, routes=routes)
    assert [len(batch) for batch in cut] == sizes
    assert [name for batch in cut for name in batch] == read


@pytest.mark.parametrize("kind", ["graphs", "torch"])
def test_a_machine_that_computes_otherwise_is_not_believed(
    workspace: Workspace, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    version = going_live.live_release(workspace)[1].version
    encoder = workspace.open_searcher(version) if kind == "graphs" else workspace.open_encoder(version)
    batch = ImageBatch(BASE, workspace.catalog.gallery_ids()[:8])
    given = trunk_features(encoder, batch.ids, workspace.load_image, NoCache())
    workspace.features.put(encoder.trunk_fingerprint(), IMAGE, batch.ids, given)
    parcel = OnRay(workspace, encoder, version, batch).parcel({BASE})
    assert (parcel.graphs is None) == (kind == "torch")
    opened = parcel.opened()
    assert opened.trunk_fingerprint() == encoder.trunk_fingerprint()
    assert np.array_equal(embedded(opened, BASE, parcel.pictures), given)
    other = given.copy()
    other[-1, -1] = np.nextafter(other[-1, -1], np.float32(1))
    with pytest.raises(
        ClusterUnusable,
        match=f"The machine {socket.gethostname()} .* does not compute the same vectors, bit for bit",
    ):
        replace(parcel, rows=other).opened()
