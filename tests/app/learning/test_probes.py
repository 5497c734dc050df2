"""The probe pictures that every home starts with: held out, with others to train beside, none in the gallery."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.probes import DOMAIN, is_probes
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning.probes import PICTURES, REHEARSED
from ingest.pair import Split
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
