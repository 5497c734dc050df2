"""Pretraining: what it learns from, that it repeats, and that what it saves opens."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from ingest.samples import scenes
from model_updates.embedded import TINY
from model_updates.errors import WeightsMismatch
from model_updates.opening import build_model, open_embedded, wrap
from model_updates.pretrain import (
    Recipe,
    context_length,
    make_vocabulary,
    save_embedded,
    train,
    unseen_scenes,
)
from model_updates.pretrain_data import (
    EMOJI_STYLES,
    STORED,
    TrainingPictures,
    augment,
    load_emoji,
    read_emoji,
    scene_texts,
)
from model_updates.vocabulary import SHARED
from tests.model_updates.tiny import assert_same_state, tiny_encoder

QUICK = Recipe(steps=3, batch=4, rows=600, order=(0,))


@pytest.fixture
def emoji(tmp_path: Path) -> Path:
    """A folder of emoji data with five concepts, the last one held out."""
    folder = tmp_path / "emoji"
    names = ["cat", "dog", "red heart", "sun", "moon"]
    for style in EMOJI_STYLES:
        (folder / style).mkdir(parents=True)
        for number, _ in enumerate(names):
            picture = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
            picture.paste((40 * number, 90, 200, 255), (5, 5, 15, 15))
            picture.save(folder / style / f"k{number}.png")
    concepts = ["key\ta\tb\tc\theld_out", *(f"k{n}\t\t\t\t{int(n == 4)}" for n in range(5))]
    lines = ["key\tx\tlanguage\tname\tkeywords"]
    lines += [f"k{n}\t\ten\t{name}\t{name} | word{n} | more" for n, name in enumerate(names)]
    lines += ["k0\t\tde\tKatze\tKatze | Tier"]
    (folder / "concepts.tsv").write_text("\n".join(concepts), encoding="utf-8")
    (folder / "names.tsv").write_text("\n".join(lines), encoding="utf-8")
    return folder


def trained(emoji: Path, seed: int = 0) -> torch.nn.Module:
    encoder = tiny_encoder()
    pictures = load_emoji(emoji, 0)
    recipe = Recipe(steps=3, batch=4, order=(0,), seed=seed)
    train(encoder, [pictures], recipe)
    return encoder.model


def test_held_out_concepts_and_other_languages_are_not_trained_on(emoji: Path) -> None:
    pictures = load_emoji(emoji, 0)
    assert pictures.pixels.shape == (8, STORED, STORED, 3)
    assert pictures.concept.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    texts = {text for texts in pictures.texts for text in texts}
    assert {"cat", "dog", "red heart", "sun"} <= texts
    assert not any("moon" in text or "Katze" in text for text in texts)


def test_transparent_pictures_stand_on_white(emoji: Path) -> None:
    assert load_emoji(emoji, 0).pixels[0, 0, 0].tolist() == [255, 255, 255]


def test_concepts_are_read_with_their_keywords(emoji: Path) -> None:
    concepts = read_emoji(emoji)
    assert [concept.held_out for concept in concepts] == [False, False, False, False, True]
    assert concepts[2].keywords == ("red heart", "word2", "more")


def test_scene_texts_are_different_english_sentences() -> None:
    scene = next(iter(scenes.all_scenes()))
    texts = scene_texts(scene)
    assert scenes.caption(scene, "en") in texts
    assert len(set(texts)) >= 4


def test_crops_stay_pictures_and_repeat_with_their_generator() -> None:
    pixels = torch.randint(0, 256, (3, STORED, STORED, 3), dtype=torch.uint8)
    one = augment(pixels, 32, torch.Generator().manual_seed(1), 1.0)
    two = augment(pixels, 32, torch.Generator().manual_seed(1), 1.0)
    assert one.shape == (3, 3, 32, 32)
    assert 0 <= float(one.min()) <= float(one.max()) <= 1
    assert torch.equal(one, two)
    assert not torch.equal(one, augment(pixels, 32, torch.Generator().manual_seed(2), 1.0))


def test_what_lies_outside_a_crop_is_white() -> None:
    white = torch.full((2, STORED, STORED, 3), 255, dtype=torch.uint8)
    assert torch.allclose(augment(white, 32, torch.Generator().manual_seed(0), 1.0), torch.ones(2, 3, 32, 32))


def test_a_sample_draws_each_picture_once_with_a_text_of_its_concept() -> None:
    pictures = TrainingPictures(
        np.arange(12, dtype=np.uint8).reshape(6, 2, 1, 1), np.arange(6) // 2, [["a"], ["b"], ["c"]]
    )
    pixels, texts, concepts = pictures.sample(6, np.random.default_rng(0))
    assert sorted(pixels[:, 0, 0, 0].tolist()) == [0, 2, 4, 6, 8, 10]
    assert texts == ["abc"[concept] for concept in concepts]


def test_the_same_seed_trains_the_same_weights_and_another_one_others(emoji: Path) -> None:
    first, again, other = trained(emoji), trained(emoji), trained(emoji, seed=1)
    assert_same_state(first.state_dict(), again.state_dict())
    assert not torch.equal(first.state_dict()["visual.proj"], other.state_dict()["visual.proj"])
    assert not torch.equal(
        first.state_dict()["visual.proj"], tiny_encoder().model.state_dict()["visual.proj"]
    )


def test_the_vocabulary_is_the_same_each_time_and_knows_no_held_out_name(emoji: Path) -> None:
    first, again = (make_vocabulary(emoji, QUICK, 16) for _ in range(2))
    assert first.to_json() == again.to_json()
    assert "moon</w>" not in first.tables[SHARED].rows


def test_what_is_saved_opens_and_gives_the_same_vectors(emoji: Path, tmp_path: Path) -> None:
    vocabulary = make_vocabulary(emoji, QUICK, context_length())
    torch.manual_seed(0)
    encoder = wrap(build_model(TINY, rows=vocabulary.size), TINY, vocabulary)
    out = tmp_path / "out"
    save_embedded(encoder, out, [{"steps": 0}])
    (out / "config.json").write_bytes(b"{}")
    opened = open_embedded(out)
    texts = ["a red heart", "the sun"]
    assert (opened.encode_texts(texts) * encoder.encode_texts(texts)).sum(axis=1) == pytest.approx(
        1, abs=1e-4
    )
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["parameters"] == sum(p.numel() for p in encoder.model.parameters())


def test_damaged_embedded_weights_are_refused(emoji: Path, tmp_path: Path) -> None:
    vocabulary = make_vocabulary(emoji, QUICK, context_length())
    encoder = wrap(build_model(TINY, rows=vocabulary.size), TINY, vocabulary)
    save_embedded(encoder, tmp_path / "out", [])
    file = tmp_path / "out" / "weights.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(
        WeightsMismatch, match="embedded weights are damaged: sha256 .* reinstall the package"
    ):
        open_embedded(tmp_path / "out")


def test_unseen_scenes_come_with_their_near_misses() -> None:
    gallery = unseen_scenes(20, 10)
    assert len(set(gallery)) == len(gallery)
    assert all(scenes.held_out(scene) for scene in gallery[:20])
    for scene in gallery[:20]:
        assert sum(near in gallery for near in scenes.neighbours(scene)) >= 10
