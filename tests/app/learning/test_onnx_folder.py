"""Claims about encoders as ONNX: each way of reading goes along or is refused, and the loader gives its vectors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch

from app.learning import onnx_export
from model_updates import whole_graphs
from model_updates.encoder import Encoder
from model_updates.errors import NotPortable
from model_updates.onnx_sessions import session
from model_updates.strategy import Strategy
from model_updates.towers import resize_token_table
from model_updates.whole_graphs import LOADER, require_portable, write_picture_graph
from tests.model_updates import tiny


def _taught(encoder: Encoder, name: str, **how: object) -> None:
    strategy: Strategy = tiny.make_strategy(name)
    tiny.teach(encoder, strategy, **how)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def grown() -> Encoder:
    """An encoder with a table for German, words of their own, modules of a language and the adapter of a domain."""
    encoder = tiny.tiny_encoder()
    _taught(encoder, "language-tables")
    _taught(encoder, "mla", pairs=[replace(pair, language="fr") for pair in tiny.toy_pairs()])
    _taught(encoder, "domain-adapters", pairs=tiny.styled_pairs(tiny.SKETCH))
    assert encoder.vocabulary is not None
    growth = encoder.vocabulary.grow_words("", ["black</w>"])
    table = resize_token_table(encoder.model, encoder.vocabulary.size)
    with torch.no_grad():
        table[growth.new_rows].normal_()
    encoder.forget_fingerprints()
    return encoder


@pytest.fixture(scope="module")
def folder(grown: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("onnx")
    facts = onnx_export.write_folder(grown, place, ("en", "de", "fr"), lambda file: None)
    (place / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    onnx_export.require_same(grown, place, facts)
    return place


def test_weights_that_one_file_cannot_hold_lie_beside_it(
    folder: Path, grown: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_graphs, "_LARGEST", 0)
    write_picture_graph(grown, "", tmp_path / "image.onnx")
    size = grown.preprocessing.size
    pixels = {"pixels": np.random.default_rng(0).random((2, 3, size, size), dtype=np.float32)}
    graphs = folder / "image.onnx", tmp_path / "image.onnx"
    inside, beside = (session(graph).run(["vectors"], pixels)[0] for graph in graphs)
    assert np.array_equal(inside, beside)
    assert (tmp_path / "image.onnx.data").stat().st_size > graphs[1].stat().st_size


def test_each_way_of_reading_has_its_graph_and_its_tokenizer(folder: Path, grown: Encoder) -> None:
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    assert {name: one["graph"] for name, one in facts["languages"].items()} == {
        "": "text.onnx",
        "en": "text.onnx",
        "de": "text.onnx",
        "fr": "text-fr.onnx",
    }
    assert facts["languages"]["de"]["tokenizer"] == "tokenizers/de.json"
    assert {name: one["graph"] for name, one in facts["domains"].items()} == {
        "": "image.onnx",
        tiny.SKETCH: f"image-{tiny.SKETCH}.onnx",
    }
    assert facts["domains"][tiny.SKETCH]["fingerprint"] == grown.image_fingerprint(tiny.SKETCH)
    assert facts["languages"]["en"]["words"].keys() == {"black</w>"}
    assert (folder / "load.py").read_bytes() == LOADER.read_bytes()


@pytest.mark.parametrize("language", ["", "en", "de", "fr", "xx"])
def test_texts_get_the_same_vectors_in_every_language(folder: Path, grown: Encoder, language: str) -> None:
    loader = onnx_export.loaded(folder)
    texts = ["a black circle on paper", "ein roter Würfel", "Black  BLACKER blacksmith", "x " * 40, "é"]
    wanted = grown.encode_texts(texts, language)
    assert np.abs(loader.texts(texts, language) - wanted).max() < 1e-5
    assert np.abs(loader.texts(texts[1:2], language) - wanted[1:2]).max() < 1e-5


def test_the_ways_differ_so_that_the_comparison_says_something(folder: Path) -> None:
    loader = onnx_export.loaded(folder)
    said = [loader.texts(["a black circle"], language)[0] for language in ("en", "de", "fr")]
    seen = [loader.pictures([tiny.draw("red circle")], domain)[0] for domain in ("", tiny.SKETCH)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert said[one] @ said[other] < 0.999
    assert seen[0] @ seen[1] < 0.9999


@pytest.mark.parametrize("domain", ["", tiny.SKETCH])
def test_pictures_get_the_same_vectors_in_every_domain(folder: Path, grown: Encoder, domain: str) -> None:
    pictures = [tiny.draw(one) for one in ("red circle", "black bar", "green dot sketch")]
    pictures[1] = pictures[1].resize((90, 41))
    found = onnx_export.loaded(folder).pictures(pictures, domain)
    assert np.abs(found - grown.encode_images(pictures, domain)).max() < 1e-5


def test_what_torch_cannot_follow_is_refused_by_its_name(tmp_path: Path) -> None:
    encoder = tiny.tiny_encoder()
    _taught(encoder, "moe-adapters")
    with pytest.raises(NotPortable, match="does not follow text-experts into a graph"):
        onnx_export.write_folder(encoder, tmp_path, ("en",), lambda file: None)


def test_texts_go_out_with_the_tokenizer_of_another_tower(tmp_path: Path) -> None:
    encoder = tiny.tiny_encoder(architecture="tiny-both-ways")
    facts = onnx_export.write_folder(encoder, tmp_path, ("en",), lambda file: None)
    (tmp_path / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    onnx_export.require_same(encoder, tmp_path, facts)
    loader, texts = onnx_export.loaded(tmp_path), ["Two  dogs,\trunning past a HOUSE!", "boat " * 200, "x"]
    assert np.abs(loader.texts(texts, "en") - encoder.encode_texts(texts, "en")).max() < 1e-4


def test_a_graph_that_gives_other_vectors_is_refused(folder: Path, grown: Encoder, tmp_path: Path) -> None:
    other = grown.copy()
    with torch.no_grad():
        dict(other.model.named_parameters())["ln_final.bias"].normal_()
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    with pytest.raises(NotPortable, match="texts in any language get other vectors"):
        onnx_export.require_same(other, folder, facts)


def test_towers_whose_tokens_or_pictures_are_not_ours_to_prepare_are_refused() -> None:
    strange = tiny.tiny_encoder(architecture="tiny-both-ways")
    strange.foreign_tokenizer = open_clip.get_tokenizer("tiny-both-ways", clean="canonicalize")
    with pytest.raises(NotPortable, match=r"rules that no tokenizer\.json can hold"):
        require_portable(strange)
    padded = tiny.tiny_encoder()
    padded.preprocessing = replace(padded.preprocessing, resize_mode="longest")
    with pytest.raises(NotPortable, match="pads its pictures"):
        require_portable(padded)
