"""The probe pictures that every home starts with: held out, with others to train beside, none in the gallery."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from app.desk.probes import DOMAIN, is_probes
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning.probe_files import PICTURES, REHEARSED, drawings, write_upload
from app.learning.probes import FEATURES, UPLOAD, probe_file, write_probes
from ingest.pair import Split
from model_updates.features import IMAGE, NoCache, trunk_features
from model_updates.opening import open_encoder
from tests.app.small_home import copy_of, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def test_probes_are_held_out_and_come_with_pictures_to_train_beside(workspace: Workspace) -> None:
    catalog = workspace.catalog
    first = catalog.chunks()[0]
    assert is_probes(first)
    by_split = {split: catalog.pairs(domain=DOMAIN, split=split, chunks=[first.id]) for split in Split}
    assert len(by_split[Split.TEST]) == PICTURES
    assert len(by_split[Split.TRAIN]) == REHEARSED
    assert not by_split[Split.VALIDATION]
    assert not set(catalog.gallery_ids()) & {pair.image_id for pairs in by_split.values() for pair in pairs}
    groups = catalog.groups({pair.image_id for pairs in by_split.values() for pair in pairs})
    held_out = {groups[pair.image_id] for pair in by_split[Split.TEST]}
    assert not held_out & {groups[pair.image_id] for pair in by_split[Split.TRAIN]}


def test_the_file_holds_what_would_be_drawn(tmp_path: Path) -> None:
    write_upload(tmp_path / "some.zip", drawings()[::80])
    with zipfile.ZipFile(tmp_path / "some.zip") as fresh, zipfile.ZipFile(probe_file(UPLOAD)) as kept:
        names = [name for name in fresh.namelist() if name.endswith(".webp")]
        assert len(names) == (PICTURES + REHEARSED) // 80
        for name in names:
            # Another release of the codec may write other bytes.
            drawn, held = (np.asarray(Image.open(io.BytesIO(one.read(name))), int) for one in (fresh, kept))
            assert np.abs(drawn - held).mean() < 1
        rows = set(kept.read("captions.csv").decode().splitlines())
        described = fresh.read("captions.csv").decode().splitlines()
        # Which of the wordings a scene gets follows from how many are drawn.
        assert {row.partition(",")[0] for row in described} <= {row.partition(",")[0] for row in rows}


def test_what_the_photo_encoder_sees_in_them_is_known_beforehand(tmp_path: Path) -> None:
    encoder = open_encoder("perennial-photo")
    with Workspace.create(load_settings(home=tmp_path / "home")) as workspace:
        write_probes(workspace, encoder)
        ids = sorted({pair.image_id for pair in workspace.catalog.pairs(domain=DOMAIN)})
        fingerprint = encoder.trunk_fingerprint()
        known, found = workspace.features.get(fingerprint, IMAGE, ids, encoder.trunk_dim)
        assert found.all()
        some = trunk_features(encoder, ids[::100], workspace.load_image, NoCache())
        np.testing.assert_allclose(known[::100], some, atol=1e-4)
        other = open_encoder("perennial-tiny").trunk_fingerprint()
        assert not workspace.features.get(other, IMAGE, ids, 1)[1].any()


def test_they_are_those_of_the_encoder_that_is_installed() -> None:
    assert len(load_file(probe_file(FEATURES))["ids"]) == PICTURES + REHEARSED
