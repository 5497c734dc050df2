"""Encoders of hubs, with random weights: open_clip's own vectors, without a hub, from the weights' folder alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from huggingface_hub import constants
from PIL import Image

from model_updates import hub_texts
from model_updates.errors import UnknownModel
from model_updates.opening import build_model, open_encoder
from model_updates.versions import load_version, write_version
from tests.model_updates import families

TEXTS = ["Two red dots, on a lake!", "ein  roter_Kreis", "", "words that nobody knows " * 30]


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.mark.parametrize("name", families.LIKE)
def test_a_file_opens_without_a_hub_and_gives_open_clips_own_vectors(name: str, tmp_path: Path) -> None:
    file = families.weights_of(name, tmp_path / "weights")
    encoder = open_encoder(name, str(file))
    if name in families.FOREIGN:
        clean = families.configuration(name)["text_cfg"].get("tokenizer_kwargs", {})
        longest = encoder.tokenize(["a"]).shape[1]
        theirs = open_clip.tokenizer.HFTokenizer(str(file.parent), context_length=longest, **clean)
    else:
        theirs = open_clip.get_tokenizer(name)
    with torch.inference_mode():
        wanted = encoder.model.encode_text(theirs(TEXTS))  # type: ignore[operator]
    assert np.allclose(encoder.text_features(TEXTS), wanted.numpy(), atol=1e-5)
    picture = Image.effect_noise((90, 70), 60).convert("RGB")
    prepared = encoder.prepare_images([picture])
    with torch.inference_mode():
        seen = encoder.model.encode_image(prepared)  # type: ignore[operator]
    assert np.allclose(encoder.image_features([picture]), seen.numpy(), atol=1e-5)


@pytest.mark.parametrize("name", families.FOREIGN)
def test_a_version_reads_texts_without_the_folder_that_its_rules_came_from(name: str, tmp_path: Path) -> None:
    file = families.weights_of(name, tmp_path / "weights")
    encoder = open_encoder(name, str(file))
    write_version(tmp_path / "version", encoder, {})
    shutil.rmtree(file.parent)

    opened = load_version(tmp_path / "version").encoder

    assert np.array_equal(opened.encode_texts(TEXTS), encoder.encode_texts(TEXTS))
    assert opened.text_fingerprint() == encoder.text_fingerprint()


@pytest.mark.parametrize("name", families.FOREIGN)
def test_without_rules_and_without_a_hub_it_says_what_to_put_where(name: str, tmp_path: Path) -> None:
    file = families.weights_of(name, tmp_path / "weights")
    (file.parent / hub_texts.RULES).unlink()
    with pytest.raises(
        UnknownModel, match=r"no hub answers from here: .* put its tokenizer.json and tokenizer_con"
    ):
        open_encoder(name, str(file))


def test_what_fills_up_texts_is_what_the_repository_says_or_the_usual_token(tmp_path: Path) -> None:
    file = families.weights_of("small-SigLIP2", tmp_path / "weights")
    said = file.parent / hub_texts.SAID
    said.write_text(json.dumps({"pad_token": {"content": "</s>"}}), encoding="utf-8")
    assert open_encoder("small-SigLIP2", str(file)).tokenize(["a"])[0, -1] == 2
    said.unlink()
    assert open_encoder("small-SigLIP2", str(file)).tokenize(["a"])[0, -1] == 1
    rules = (file.parent / hub_texts.RULES).read_text(encoding="utf-8")
    (file.parent / hub_texts.RULES).write_text(rules.replace("<pad>", "<void>"), encoding="utf-8")
    with pytest.raises(
        UnknownModel, match=r"has no token for filling up texts; put the tokenizer_config.json"
    ):
        open_encoder("small-SigLIP2", str(file))


def test_a_tower_that_only_a_hub_describes_is_refused_at_once() -> None:
    with pytest.raises(UnknownModel, match=r"roberta-base is not on this machine.*described there alone"):
        build_model("roberta-ViT-B-32")
