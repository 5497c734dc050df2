"""Opening encoders: safetensors alone, sentences for what does not fit, small open_clip architectures for real."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from huggingface_hub import constants
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.errors import UnknownModel, UnsafeWeights, VersionDamaged, WeightsMismatch
from model_updates.opening import build_model, load_weights, open_embedded, open_encoder
from model_updates.versions import load_version, write_version
from tests.model_updates.contract import prospect_of
from tests.model_updates.tiny import make_strategy, teach

SMALL = "perennial-test-vit"
BESIDE = "perennial-test-text-beside"
UNMASKED = "perennial-test-unmasked"
LAST = "perennial-test-last"
WITH_CLASS = "perennial-test-class-token"
CLEANED = "perennial-test-cleaned"
VISION = {"image_size": 32, "patch_size": 16, "width": 32, "layers": 2, "head_width": 16}
TEXT = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}


@pytest.fixture(scope="module", autouse=True)
def _small_architectures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Registers small architectures beside ViT-B-16 and takes them out again."""
    folder = tmp_path_factory.mktemp("configs")
    both = {"embed_dim": 24, "vision_cfg": VISION}
    custom = both | {"custom_text": True}
    configs = {
        SMALL: both | {"text_cfg": TEXT},
        BESIDE: custom | {"text_cfg": TEXT},
        UNMASKED: custom | {"text_cfg": TEXT | {"no_causal_mask": True, "pool_type": "last"}},
        LAST: custom | {"text_cfg": TEXT | {"pool_type": "last"}},
        WITH_CLASS: custom | {"text_cfg": TEXT | {"context_length": 76, "embed_cls": True}},
        CLEANED: custom | {"text_cfg": TEXT | {"tokenizer_kwargs": {"clean": "canonicalize"}}},
    }
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config), encoding="utf-8")
    paths, known = list(open_clip.factory._MODEL_CONFIG_PATHS), dict(open_clip.factory._MODEL_CONFIGS)
    open_clip.add_model_config(folder)
    yield
    open_clip.factory._MODEL_CONFIG_PATHS[:] = paths
    open_clip.factory._MODEL_CONFIGS.clear()
    open_clip.factory._MODEL_CONFIGS.update(known)


def random_weights(folder: Path, architecture: str = SMALL, *, half: bool = False) -> tuple[Path, nn.Module]:
    torch.manual_seed(3)
    model = build_model(architecture)
    state = {k: (v.half() if half else v).contiguous() for k, v in model.state_dict().items()}
    path = folder / "weights.safetensors"
    save_file(state, path)
    return path, model


@pytest.mark.parametrize("architecture", [SMALL, BESIDE])
def test_a_local_file_opens_and_gives_open_clips_own_features(architecture: str, tmp_path: Path) -> None:
    path, model = random_weights(tmp_path, architecture)
    encoder = open_encoder(architecture, str(path))
    texts = ["a photo of a dog", "two cats, sleeping", "a"]
    with torch.inference_mode():
        expected = model.encode_text(open_clip.get_tokenizer(architecture)(texts))  # type: ignore[operator]
    assert np.allclose(encoder.text_features(texts), expected.numpy(), atol=1e-5)
    picture = Image.effect_noise((50, 40), 60).convert("RGB")
    transform = open_clip.image_transform(32, is_train=False)
    with torch.inference_mode():
        vector = model.encode_image(transform(picture)[None])  # type: ignore[operator]
    assert np.allclose(encoder.image_features([picture]), vector.numpy(), atol=1e-5)
    assert encoder.dim == 24


def test_half_precision_weights_are_widened(tmp_path: Path) -> None:
    path, _ = random_weights(tmp_path, half=True)
    encoder = open_encoder(SMALL, str(path))
    assert all(p.dtype == torch.float32 for p in encoder.model.parameters())


@pytest.mark.parametrize("architecture", [SMALL, BESIDE])
def test_such_an_encoder_learns_a_language(architecture: str, tmp_path: Path) -> None:
    path, _ = random_weights(tmp_path, architecture)
    encoder = open_encoder(architecture, str(path))
    image, english = encoder.image_fingerprint(), encoder.text_fingerprint("en")
    vectors = encoder.encode_texts(["a dog", "two sleeping cats"], "en")
    report = teach(encoder, make_strategy("language-tables", epochs=1))
    assert encoder.image_fingerprint() == image
    assert encoder.text_fingerprint("en") == english
    assert np.array_equal(encoder.encode_texts(["a dog", "two sleeping cats"], "en"), vectors)
    assert report.image_forwards == 0
    assert encoder.vocabulary is not None
    assert encoder.vocabulary.size > 49408
    # open_clip's own forward finds a text's end among the rows that were added, too.
    grown = encoder.tokenize(["ein roter Kreis auf Papier"], "de")
    full = functional.pad(grown, (0, 77 - grown.shape[1]))
    with torch.inference_mode():
        theirs = encoder.model.encode_text(full)  # type: ignore[operator]
    assert int(grown.max()) > encoder.vocabulary.end_row
    assert np.allclose(encoder.text_features(["ein roter Kreis auf Papier"], "de"), theirs.numpy(), atol=1e-5)


@pytest.mark.parametrize(
    ("architecture", "why"),
    [
        (UNMASKED, "reads texts in both directions"),
        (LAST, "does not pool where a text ends"),
        (WITH_CLASS, "pools at a token of its own behind the words"),
        (CLEANED, "keeps the tokenizer that it was opened with"),
    ],
)
def test_a_text_tower_of_another_build_keeps_its_own_tokenizer_and_says_why(
    architecture: str, why: str, tmp_path: Path
) -> None:
    path, model = random_weights(tmp_path, architecture)
    encoder = open_encoder(architecture, str(path))
    assert encoder.vocabulary is None
    texts = ["A dog!", "two sleeping cats"]
    with torch.inference_mode():
        expected = model.encode_text(open_clip.get_tokenizer(architecture)(texts))  # type: ignore[operator]
    assert np.allclose(encoder.text_features(texts, "de"), expected.numpy(), atol=1e-5)
    refused = str(make_strategy("cll-clip").fits(prospect_of(encoder)))
    assert f"the text tower of {architecture} {why}" in refused
    assert "so its vocabulary cannot grow, and cll-clip grows it. Use finetune or c-clip" in refused


def test_a_version_from_before_such_a_tower_could_grow_keeps_its_vectors(tmp_path: Path) -> None:
    path, _ = random_weights(tmp_path, BESIDE)
    now = open_encoder(BESIDE, str(path))
    then = Encoder(
        now.model,
        architecture=BESIDE,
        preprocessing=now.preprocessing,
        vocabulary=None,
        foreign_tokenizer=open_clip.get_tokenizer(BESIDE),
    )
    vectors, fingerprint = then.encode_texts(["a dog"]), then.text_fingerprint()
    write_version(tmp_path / "version", then, {})
    opened = load_version(tmp_path / "version").encoder
    assert np.array_equal(opened.encode_texts(["a dog"]), vectors)
    assert opened.text_fingerprint() == fingerprint
    refused = str(make_strategy("language-tables").fits(prospect_of(opened)))
    assert "keeps the tokenizer that it was opened with, so its vocabulary cannot grow" in refused


def test_a_version_of_a_newer_release_is_read_unless_its_pictures_are_prepared_otherwise(
    tmp_path: Path,
) -> None:
    write_version(tmp_path, open_embedded(), {})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"newer": 1}))
    assert load_version(tmp_path).encoder.preprocessing == open_embedded().preprocessing
    manifest["preprocessing"]["sharpened"] = 0.5
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        VersionDamaged, match="prepares its pictures by sharpened, which this program does not know"
    ):
        load_version(tmp_path)


def test_opening_a_version_draws_no_numbers_that_its_own_take_the_place_of(tmp_path: Path) -> None:
    encoder = open_embedded()
    write_version(tmp_path, encoder, {})
    before = torch.get_rng_state()
    opened = load_version(tmp_path).encoder
    assert torch.equal(torch.get_rng_state(), before)
    assert opened.image_fingerprint() == encoder.image_fingerprint()
    assert opened.text_fingerprint() == encoder.text_fingerprint()


@pytest.mark.parametrize("name", ["finetune", "c-clip"])
def test_a_foreign_text_tower_learns_by_strategies_that_grow_nothing(name: str, tmp_path: Path) -> None:
    path, _ = random_weights(tmp_path, UNMASKED)
    encoder = open_encoder(UNMASKED, str(path))
    before: Encoder = encoder.copy()
    teach(encoder, make_strategy(name, epochs=1))
    assert encoder.image_fingerprint() != before.image_fingerprint()
    assert encoder.text_fingerprint() != before.text_fingerprint()


@pytest.mark.parametrize("name", ["model.pt", "model.pth", "model.bin", "model.ckpt", "model.PKL", "model"])
def test_pickled_weights_are_refused_and_never_opened(name: str, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return (exec, (f"open({str(tmp_path / 'sprung')!r}, 'w').close()",))

    path = tmp_path / name
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UnsafeWeights, match=r"is not a \.safetensors file.*convert them to safetensors"):
        open_encoder(SMALL, str(path))
    assert not (tmp_path / "sprung").exists()


def test_a_pickle_under_a_safe_name_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(WeightsMismatch, match="not a readable safetensors file .* fetch it again"):
        open_encoder(SMALL, str(path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WeightsMismatch, match=r"there is no weights file 'gone\.safetensors'"):
        open_encoder(SMALL, str(tmp_path / "gone.safetensors"))


def test_weights_that_do_not_fit_are_refused_with_the_first_names(tmp_path: Path) -> None:
    path, model = random_weights(tmp_path)
    state = {k: v.contiguous() for k, v in model.state_dict().items()}
    lacking = state.pop("visual.proj")
    save_file(state | {"other": lacking, "text_projection": torch.zeros(2, 2)}, path)
    with pytest.raises(
        WeightsMismatch,
        match=r"1 tensors are missing \['visual.proj'\], 1 are unknown \['other'\], 1 have another shape",
    ):
        load_weights(model, path)


def test_an_unknown_architecture_is_told_similar_ones() -> None:
    with pytest.raises(
        UnknownModel, match=r"no encoder 'ViT-B-17', embedded or in open_clip; similar: .*ViT-B-16"
    ):
        open_encoder("ViT-B-17", "weights.safetensors")


def test_a_slip_in_an_embedded_encoders_name_is_seen() -> None:
    with pytest.raises(UnknownModel, match=r"no encoder 'perennial-tyny'.*; similar: perennial-tiny"):
        open_encoder("perennial-tyny")


def test_an_architecture_without_weights_is_told_the_tags_that_fit_it() -> None:
    # Not openai: those weights want ViT-B-16-quickgelu.
    with pytest.raises(
        UnknownModel, match=r"'ViT-B-16' needs weights: name a pretrained tag \(laion400m_e31"
    ):
        open_encoder("ViT-B-16")


def test_an_unknown_tag_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownModel, match="ViT-B-16 has no pretrained tag 'imagenet'; it has: openai"):
        open_encoder("ViT-B-16", "imagenet")


def test_weights_of_another_activation_are_refused_before_they_are_fetched() -> None:
    with pytest.raises(
        UnknownModel,
        match=r"another activation \(GELU or QuickGELU\).*ask for the model 'ViT-B-16-quickgelu'",
    ):
        open_encoder("ViT-B-16", "openai")


def test_without_a_hub_weights_to_download_are_refused_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UnknownModel, match="no hub answers from here to fetch them; download them elsewhere"):
        open_encoder("ViT-B-16", "laion400m_e31")


def test_the_embedded_encoder_brings_its_own_weights(tmp_path: Path) -> None:
    path, _ = random_weights(tmp_path)
    with pytest.raises(UnknownModel, match="perennial-tiny brings its own weights"):
        open_encoder("perennial-tiny", str(path))


def test_the_embedded_encoder_opens_and_tells_a_cat_from_a_car() -> None:
    encoder = open_embedded()
    assert encoder.dim == 192
    cat, kitten, car = encoder.encode_texts(["cat", "a cat", "red car"], "en")
    assert float(cat @ kitten) > float(cat @ car)
    assert open_encoder().image_fingerprint() == encoder.image_fingerprint()
