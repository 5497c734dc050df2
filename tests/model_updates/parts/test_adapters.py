"""A domain's head on cached trunk features: it changes nothing at first, and one route alone later."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from model_updates.encoder import Encoder
from model_updates.inserts import domain
from model_updates.parts.adapters import FeatureHead
from model_updates.routes import BASE
from model_updates.strategies.domain_adapters import defaults_for
from model_updates.versions import load_version, write_version
from tests.model_updates.photographs import drawn_pictures, photo_encoder


def _with_head(*, trained: bool) -> Encoder:
    encoder = photo_encoder().copy()
    torch.manual_seed(0)
    config = FeatureHead.configuration(encoder.trunk_dim, encoder.dim, hidden=8)
    head = FeatureHead.build(domain("photographs"), config, encoder.model).eval()
    if trained:
        torch.nn.init.normal_(head.added.weight)
    encoder.inserts.append(head)
    return encoder


def test_a_new_head_changes_no_vector() -> None:
    encoder = _with_head(trained=False)
    pictures = drawn_pictures()

    assert np.array_equal(
        encoder.image_features(pictures, "photographs"), encoder.image_features(pictures, BASE)
    )


def test_a_head_changes_its_own_route_and_needs_no_picture_again() -> None:
    base, encoder = photo_encoder(), _with_head(trained=True)
    pictures = drawn_pictures()
    trunk = base.trunk_features(pictures)
    forwards = encoder.image_forwards

    ours, others = encoder.projected(trunk, "photographs"), encoder.projected(trunk, "sketches")

    assert encoder.image_forwards == forwards
    assert np.array_equal(others, base.projected(trunk))
    assert np.abs(ours - others).max() > 0.1
    assert encoder.trunk_fingerprint("photographs") == base.trunk_fingerprint()
    assert encoder.image_fingerprint(BASE) == base.image_fingerprint()
    assert encoder.image_fingerprint("photographs") != base.image_fingerprint()


def test_a_version_keeps_a_head(tmp_path: Path) -> None:
    encoder = _with_head(trained=True)
    write_version(tmp_path / "v", encoder, {}, {})

    read = load_version(tmp_path / "v").encoder

    assert read.image_routes == ("photographs",)
    assert read.image_fingerprint("photographs") == encoder.image_fingerprint("photographs")


def test_dropout_is_of_training_alone() -> None:
    encoder = _with_head(trained=True)
    trunk = torch.rand(4, encoder.trunk_dim, generator=torch.Generator().manual_seed(0))

    def run() -> torch.Tensor:
        with torch.no_grad():
            return encoder.project(trunk, "photographs")

    assert torch.equal(run(), run())
    encoder.train()
    assert not torch.equal(run(), run())


def test_a_small_chunk_gets_as_many_steps_as_a_large_one() -> None:
    encoder = photo_encoder()
    large, small, few = (defaults_for(encoder, pairs) for pairs in (35_000, 985, 10))

    assert (large.batch_size, large.epochs) == (1024, 8)
    assert (small.batch_size, small.epochs) == (64, 17)
    assert (few.batch_size, few.epochs) == (64, 40)
