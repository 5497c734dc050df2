"""Sentence-transformers models from local folders: the library's own vectors, versions that open, refusals."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from PIL import Image

from model_updates.embedded import base_languages
from model_updates.encoder import Encoder
from model_updates.errors import ModelUpdateError, UnknownModel, UnsafeWeights, WeightsMismatch
from model_updates.kept_tokenizer import PADDING
from model_updates.opening import open_encoder
from model_updates.sentence.folders import open_folders
from model_updates.sentence.model import pool
from model_updates.strategies import STRATEGIES
from model_updates.versions import load_version, write_version
from tests.model_updates import later_process
from tests.model_updates.contract import MAKES_TEXTS, context_of, made, prospect_of, run, trains_whole_towers
from tests.model_updates.sentence_folders import both_folders, clip_folder, sentence_encoder, text_folder
from tests.model_updates.tiny import DOMAIN, assert_same_state, make_strategy, toy_pairs

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TEXTS = ["a red circle on paper", "Ein roter Kreis auf Papier", "dot", "", "words that nobody knows " * 9]


def pictures() -> list[Image.Image]:
    random = np.random.default_rng(0)
    sizes = [(32, 32), (64, 48), (33, 100)]
    return [Image.fromarray(random.integers(0, 255, (*size, 3), dtype=np.uint8)) for size in sizes]


def library(folder: Path) -> SentenceTransformer:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


def assert_sees_as(encoder: Encoder, folder: Path) -> None:
    """Fails unless pictures have the library's vectors; resized ones differ by how two programs round grey levels."""
    ours = encoder.encode_images(pictures())
    theirs = library(folder).encode(pictures(), normalize_embeddings=True)
    assert np.allclose(ours[0], theirs[0], atol=1e-6), "32 x 32 already"
    assert np.allclose(ours, theirs, atol=1e-3)


def test_one_folder_that_does_both_gives_the_librarys_vectors() -> None:
    folder, _ = both_folders()
    encoder = open_folders(folder)
    theirs = library(folder).encode(TEXTS, normalize_embeddings=True)
    assert np.allclose(encoder.encode_texts(TEXTS), theirs, atol=1e-6)
    assert_sees_as(encoder, folder)


@pytest.mark.parametrize("kind", ["distilbert", "bert"])
def test_a_text_tower_of_its_own_gives_the_librarys_vectors_beside_clips_pictures(
    kind: str, tmp_path: Path
) -> None:
    images, texts = both_folders()[0], text_folder(tmp_path / kind, kind=kind)
    encoder = open_folders(images, texts)
    theirs = library(texts).encode(TEXTS, normalize_embeddings=True)
    assert np.allclose(encoder.encode_texts(TEXTS), theirs, atol=1e-6)
    assert_sees_as(encoder, images)


def test_the_layouts_of_older_libraries_open_to_the_same_encoder(tmp_path: Path) -> None:
    images, texts = both_folders()
    old_images, old_texts = tmp_path / "images", tmp_path / "texts"
    shutil.copytree(images, old_images / "0_CLIPModel")
    (old_images / "0_CLIPModel" / "modules.json").unlink()
    write(old_images / "modules.json", [module("models.CLIPModel", "0_CLIPModel")])
    processor = json.loads((images / "processor_config.json").read_text())["image_processor"]
    (old_images / "0_CLIPModel" / "processor_config.json").unlink()
    write(old_images / "0_CLIPModel" / "preprocessor_config.json", processor | {"size": 32, "crop_size": 32})
    shutil.copytree(texts, old_texts)
    parts = [("models.Transformer", ""), ("models.Pooling", "1_Pooling"), ("models.Dense", "2_Dense")]
    write(old_texts / "modules.json", [module(*part) for part in parts])
    write(old_texts / "sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": False})
    modes = {
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
    }
    write(old_texts / "1_Pooling" / "config.json", {"word_embedding_dimension": 32} | modes)

    old, new = open_folders(old_images, old_texts), open_folders(images, texts)

    assert_same_state(old.state(), new.state())
    assert np.array_equal(old.encode_texts(TEXTS), new.encode_texts(TEXTS))
    assert old.preprocessing == new.preprocessing


def module(kind: str, path: str) -> dict[str, str]:
    return {"type": f"sentence_transformers.{kind}", "path": path}


def write(path: Path, said: object) -> None:
    path.write_text(json.dumps(said), encoding="utf-8")


def test_what_stands_behind_a_text_does_not_matter() -> None:
    encoder = sentence_encoder()
    alone, among = encoder.encode_texts(["dot"]), encoder.encode_texts(["dot", TEXTS[0]])
    assert np.allclose(alone[0], among[0], atol=1e-6)
    rows = encoder.tokenize(["dot", TEXTS[0]])
    assert (rows[0] == PADDING).sum() > (rows[1] == PADDING).sum() > 0


def test_pooling_counts_the_tokens_of_the_text_alone() -> None:
    hidden = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [50.0, 60.0]]])
    mask = torch.tensor([[True, True, False]])
    assert pool(hidden, mask, "mean").tolist() == [[2.0, -3.0]]
    assert pool(hidden, mask, "max").tolist() == [[3.0, -2.0]]
    assert pool(hidden, mask, "cls").tolist() == [[1.0, -2.0]]


def test_a_version_opens_without_the_folders_it_came_from(tmp_path: Path) -> None:
    home = tmp_path / "away"
    encoder = open_folders(clip_folder(home / "pictures"), text_folder(home / "texts"), ["en", "de"])
    before = later_process.answers(encoder)
    manifest = write_version(tmp_path / "version", encoder, {})
    shutil.rmtree(home)
    opened = load_version(tmp_path / "version").encoder
    assert_same_state(later_process.answers(opened), before)
    assert opened.text_fingerprint("de") == encoder.text_fingerprint("de")
    assert opened.image_fingerprint() == encoder.image_fingerprint()
    assert set(opened.profiles) == {"en", "de"}
    assert str(home) not in json.dumps(manifest), "a version says nothing of this machine's folders"


def test_another_tokenizer_is_another_text_fingerprint() -> None:
    encoder, other = sentence_encoder(), open_folders(both_folders()[0])
    assert encoder.text_fingerprint() != other.text_fingerprint()


def test_open_encoder_takes_folders_and_the_languages_that_they_know() -> None:
    images, texts = map(str, both_folders())
    encoder = open_encoder(images, texts=texts, languages=["en", "de"])
    assert np.array_equal(encoder.encode_texts(TEXTS), sentence_encoder().encode_texts(TEXTS))
    assert base_languages(images, ["en", "de"]) == ("en", "de")
    assert base_languages(images) == ("en",)
    with pytest.raises(UnknownModel, match="'perennial-tiny' is none; name the folder of the image model"):
        open_encoder("perennial-tiny", texts=texts)
    with pytest.raises(
        UnknownModel, match="perennial-tiny says itself which languages it knows; leave out de, fr"
    ):
        open_encoder("perennial-tiny", languages=["de", "fr"])


# Learning

MODULES = ("lora", "mla", "evergreen")  # of a language alone, where no table can grow
WORKS = ("finetune", "ewc", "lwf", "mod-x", "ctp", "finetune+er", "c-clip", "domain-adapters")


@pytest.mark.parametrize("name", WORKS)
def test_whole_towers_and_adapters_learn_and_their_versions_open_again(name: str, tmp_path: Path) -> None:
    encoder = sentence_encoder()
    before, strategy = encoder.copy(), made(name)
    assert strategy.fits(prospect_of(encoder)) is None
    run(strategy, context_of(encoder, toy_pairs()))
    assert encoder.image_fingerprint(DOMAIN) != before.image_fingerprint(DOMAIN)
    assert (encoder.text_fingerprint() != before.text_fingerprint()) == ("text" in strategy.touches)
    assert set(encoder.model.state_dict()) == set(before.model.state_dict())
    write_version(tmp_path / "version", encoder, {})
    opened = load_version(tmp_path / "version").encoder
    assert_same_state(later_process.answers(opened), later_process.answers(encoder))


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_takes_these_towers_or_says_what_to_use_instead(name: str) -> None:
    refused = make_strategy(name).fits(prospect_of(sentence_encoder()))
    if refused is None:
        assert trains_whole_towers(name) or "image" in STRATEGIES[name]().touches or name in MODULES
    else:
        assert name not in MODULES
        assert name in MAKES_TEXTS or not trains_whole_towers(name)
        assert "use " in refused.lower()


def test_adapters_reach_attention_and_mlp_of_both_towers() -> None:
    encoder, strategy = sentence_encoder(), make_strategy("c-clip")
    context = dataclasses.replace(context_of(encoder, toy_pairs()), learned_languages=frozenset({"en"}))
    strategy.before_update(context)
    adapted = {name.partition(".lora_")[0] for name, _ in encoder.parameters() if "lora_A" in name}
    assert {name.rpartition(".")[2] for name in adapted if name.startswith("visual.")} == {
        "q_proj",
        "k_proj",
        "v_proj",
        "out_proj",
        "fc1",
        "fc2",
    }
    assert {name.rpartition(".")[2] for name in adapted if name.startswith("text.")} == {
        "q_lin",
        "k_lin",
        "v_lin",
        "out_lin",
        "lin1",
        "lin2",
    }


# Refusals


def changed(folder: Path, to: Path, change: Callable[[Path], object]) -> Path:
    shutil.copytree(folder, to)
    change(to)
    return to


def strange_module(folder: Path) -> None:
    write(folder / "modules.json", [{"type": "custom_st.Transformer", "path": ""}])


def unknown_module(folder: Path) -> None:
    said = json.loads((folder / "modules.json").read_text())
    write(folder / "modules.json", [*said, module("models.LSTM", "3_LSTM")])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def another_pooling(folder: Path) -> None:
    write(folder / "1_Pooling" / "config.json", {"pooling_mode": "weightedmean"})


def another_width(folder: Path) -> None:
    said = json.loads((folder / "2_Dense" / "config.json").read_text())
    write(folder / "2_Dense" / "config.json", said | {"out_features": 20})


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (strange_module, UnknownModel, r"code of its own \(custom_st.Transformer\), which is never run"),
        (unknown_module, UnknownModel, "holds a LSTM, which is not known here"),
        (pickled, UnsafeWeights, "no .safetensors file"),
        (another_pooling, UnknownModel, "pooling by 'weightedmean' is not known"),
        (another_width, WeightsMismatch, "is not what its configuration says"),
        (lambda folder: (folder / "modules.json").unlink(), UnknownModel, "no readable modules.json"),
    ],
)
def test_text_folders_that_cannot_be_read_are_refused_with_a_sentence(
    change: Callable[[Path], object], error: type[ModelUpdateError], words: str, tmp_path: Path
) -> None:
    images, texts = both_folders()
    with pytest.raises(error, match=words):
        open_folders(images, changed(texts, tmp_path / "texts", change))


def test_a_folder_without_an_image_tower_is_no_folder_for_pictures() -> None:
    with pytest.raises(UnknownModel, match="has no image tower of CLIP"):
        open_folders(both_folders()[1])


def test_towers_of_different_widths_are_no_pair(tmp_path: Path) -> None:
    with pytest.raises(WeightsMismatch, match="gives 24 numbers and the text tower of texts 20"):
        open_folders(both_folders()[0], text_folder(tmp_path / "texts", dim=20))


def test_pictures_that_are_prepared_otherwise_are_refused(tmp_path: Path) -> None:
    def crop_less(folder: Path) -> None:
        said = json.loads((folder / "processor_config.json").read_text())
        said["image_processor"]["size"] = {"shortest_edge": 48}
        write(folder / "processor_config.json", said)

    with pytest.raises(UnknownModel, match="prepares its pictures in a way that is not known here"):
        open_folders(changed(both_folders()[0], tmp_path / "pictures", crop_less))


def test_a_copy_of_the_encoder_is_its_own() -> None:
    one: Encoder = sentence_encoder()
    other = one.copy()
    with torch.no_grad():
        other.model.visual.clip.visual_projection.weight.zero_()  # type: ignore[union-attr,operator]
    assert one.image_fingerprint() != other.copy().image_fingerprint()
