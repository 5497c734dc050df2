"""Inserts: one route reads them, every other stays bit-identical, and they come back from a version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model_updates.encoder import Encoder
from model_updates.errors import VersionDamaged
from model_updates.features import image_features
from model_updates.inserts import ENCODER, Insert, Owner, RunImages, RunTexts, domain, language
from model_updates.parts.kinds import KINDS
from model_updates.routes import BASE
from model_updates.versions import read_inserts, write_version
from tests.model_updates.shelf import Shelf
from tests.model_updates.tiny import draw, image_ids, tiny_encoder

TEXTS = ["a red circle on paper", "a blue bar on paper"]
PICTURES = [draw(image_id) for image_id in image_ids()[:3]]


class Shift(Insert):
    """Adds a vector to what a head gives out: the smallest insert there is."""

    kind = "shift"
    tower = "image"
    runs_in_tower = False

    def __init__(self, owner: Owner, config: Mapping[str, Any], dim: int) -> None:
        super().__init__(owner, config)
        self.vector = nn.Parameter(torch.zeros(dim))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        return cls(owner, config, 24)

    def around_head(self, run: RunImages, trunk: Tensor) -> Tensor:
        shifted: Tensor = run(trunk) + self.config["times"] * self.vector
        return shifted


class Prefix(Shift):
    """Puts a token before each text."""

    kind = "prefix"
    tower = "text"
    runs_in_tower = True

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        return cls(owner, config, 32)

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        first = self.vector.expand(len(embedded), 1, -1)
        return run(torch.cat([embedded[:, :1], first, embedded[:, 1:]], dim=1), ends + 1)


@pytest.fixture(autouse=True)
def known_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "shift", Shift)
    monkeypatch.setitem(KINDS, "prefix", Prefix)


def with_insert(owner: Owner, kind: type[Shift] = Shift) -> Encoder:
    encoder = tiny_encoder()
    insert = kind.build(owner, {"times": 2}, encoder.model)
    nn.init.normal_(insert.vector, generator=torch.Generator().manual_seed(1))
    encoder.inserts.append(insert)
    encoder.forget_fingerprints()
    return encoder


def test_a_domains_insert_changes_its_route_and_no_bit_of_another() -> None:
    before, encoder = tiny_encoder(), with_insert(domain("line"))
    assert encoder.image_routes == ("line",)
    assert (encoder.image_route("line"), encoder.image_route("ink")) == ("line", BASE)
    for other in (BASE, "ink"):
        assert encoder.image_fingerprint(other) == before.image_fingerprint(other)
        assert np.array_equal(encoder.encode_images(PICTURES, other), before.encode_images(PICTURES, other))
    assert encoder.image_fingerprint("line") != before.image_fingerprint("line")
    assert not np.allclose(encoder.encode_images(PICTURES, "line"), before.encode_images(PICTURES))
    assert encoder.text_fingerprint("en") == before.text_fingerprint("en")


def test_a_languages_insert_changes_its_route_and_no_bit_of_another() -> None:
    before, encoder = tiny_encoder(), with_insert(language("de"), Prefix)
    assert encoder.text_fingerprint("en") == before.text_fingerprint("en")
    assert np.array_equal(encoder.encode_texts(TEXTS, "en"), before.encode_texts(TEXTS, "en"))
    assert encoder.text_fingerprint("de") != before.text_fingerprint("de")
    assert not np.allclose(encoder.encode_texts(TEXTS, "de"), before.encode_texts(TEXTS, "de"))
    assert encoder.image_fingerprint() == before.image_fingerprint()


def test_an_encoders_insert_is_read_by_every_route_of_its_tower() -> None:
    before, encoder = tiny_encoder(), with_insert(ENCODER)
    assert all(encoder.image_fingerprint(r) != before.image_fingerprint(r) for r in (BASE, "line"))
    assert encoder.image_routes == ()


def test_rows_of_several_routes_run_together_as_they_do_alone() -> None:
    encoder = with_insert(domain("line"))
    prepared = encoder.prepare_images(PICTURES)
    with torch.inference_mode():
        mixed = encoder.forward_images(prepared, ["line", "ink", "line"])
        alone = [
            encoder.forward_images(prepared[n : n + 1], r) for n, r in enumerate(["line", "ink", "line"])
        ]
    assert torch.allclose(mixed, torch.cat(alone), atol=1e-6)


def test_a_head_on_kept_trunk_features_needs_no_picture_again() -> None:
    shelf, before = Shelf(), tiny_encoder()
    ids = image_ids()[:3]
    image_features(before, ids, draw, shelf)
    encoder = with_insert(domain("line"))
    assert encoder.trunk_fingerprint("line") == before.trunk_fingerprint()
    rows = image_features(encoder, ids, draw, shelf, routes=dict.fromkeys(ids, "line"))
    assert encoder.image_forwards == 0
    assert np.allclose(rows, encoder.image_features(PICTURES, "line"), atol=1e-6)


@pytest.mark.parametrize(("kind", "owner"), [(Shift, domain("line")), (Prefix, language("de"))])
def test_inserts_come_back_from_a_version(kind: type[Shift], owner: Owner, tmp_path: Path) -> None:
    encoder = with_insert(owner, kind)
    manifest = write_version(tmp_path, encoder, {})
    again = tiny_encoder()
    again.inserts = read_inserts(tmp_path, again.model)
    assert again.image_fingerprint("line") == encoder.image_fingerprint("line")
    assert again.text_fingerprint("de") == encoder.text_fingerprint("de")
    assert manifest["inserts"] == [
        {"kind": kind.kind, "owner": [owner.kind, owner.name], "config": {"times": 2}}
    ]
    assert manifest["image_routes"] == {r: encoder.image_fingerprint(r) for r in encoder.image_routes}


def test_configuration_and_owner_are_part_of_the_fingerprint() -> None:
    encoder, other = with_insert(domain("line")), with_insert(domain("line"))
    assert encoder.image_fingerprint("line") == other.image_fingerprint("line")
    other.inserts[0].config["times"] = 3
    other.forget_fingerprints()
    assert encoder.image_fingerprint("line") != other.image_fingerprint("line")


def test_a_kind_that_this_program_does_not_know_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_version(tmp_path, with_insert(domain("line")), {})
    monkeypatch.delitem(KINDS, "shift")
    with pytest.raises(VersionDamaged, match="kind 'shift', which this program does not know"):
        read_inserts(tmp_path, tiny_encoder().model)


@pytest.mark.parametrize(("kind", "name"), [("tongue", "de"), ("domain", ""), ("encoder", "x")])
def test_an_owner_is_a_named_language_or_domain_or_the_encoder(kind: str, name: str) -> None:
    with pytest.raises(ValueError, match="owner"):
        Owner(kind, name)
