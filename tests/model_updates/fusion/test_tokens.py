"""Tokens of both towers: the same features beside them, every route, words hidden, padding told."""

from collections.abc import Callable

import numpy as np
import open_clip
import pytest
import torch
from torch import Tensor, nn

from model_updates.encoder import Encoder
from model_updates.fusion.tokens import (
    no_tokens,
    patch_source,
    read_images,
    read_texts,
    real_words,
    word_source,
    words_to_hide,
)
from model_updates.inserts import ENCODER, domain
from model_updates.parts.low_rank import LowRank
from model_updates.parts.prompt_pool import TextPrompts
from model_updates.preprocessing import Preprocessing
from tests.model_updates.tiny import CONTEXT_LENGTH, draw, image_ids, tiny_encoder, toy_pairs

TEXTS = [pair.text for pair in toy_pairs("en")]
PICTURES = [draw(image_id) for image_id in image_ids()]
TEXT_TOWER = {"context_length": CONTEXT_LENGTH, "vocab_size": 600, "width": 32, "heads": 2, "layers": 2}
GREY = (0.5, 0.5, 0.5)

Make = Callable[[], Encoder]


def resnet() -> Encoder:
    """A modified ResNet beside the tiny text tower."""
    torch.manual_seed(0)
    model = open_clip.CLIP(
        embed_dim=24,
        vision_cfg={"image_size": 64, "layers": [1, 1, 1, 1], "width": 8, "head_width": 8},
        text_cfg=TEXT_TOWER,
    )
    vocabulary = tiny_encoder().vocabulary
    return Encoder(
        model, architecture="tiny-resnet", preprocessing=Preprocessing(64, GREY, GREY), vocabulary=vocabulary
    )


def custom() -> Encoder:
    """A ViT beside a text tower of its own, with a tokenizer that pads to the full length."""
    torch.manual_seed(0)
    model = open_clip.CustomTextCLIP(
        embed_dim=24,
        vision_cfg={"image_size": 32, "patch_size": 16, "width": 48, "layers": 2, "head_width": 16},
        text_cfg=TEXT_TOWER,
    )
    ours = tiny_encoder().vocabulary
    assert ours is not None

    def tokenizer(texts: list[str]) -> Tensor:
        rows = [row[:CONTEXT_LENGTH] for row in ours.encode(texts)]
        return torch.tensor([row + [0] * (CONTEXT_LENGTH - len(row)) for row in rows])

    return Encoder(
        model,
        architecture="tiny-custom",
        preprocessing=Preprocessing(32, GREY, GREY),
        vocabulary=None,
        foreign_tokenizer=tokenizer,
    )


@pytest.mark.parametrize(
    ("make", "patches", "width"), [(tiny_encoder, 5, 32), (resnet, 4, 256), (custom, 5, 48)]
)
def test_patches_come_with_the_features_that_search_uses(make: Make, patches: int, width: int) -> None:
    encoder = make()
    with torch.inference_mode():
        read = read_images(encoder, encoder.prepare_images(PICTURES[:3]))
    assert read.tokens.shape == (3, patches, width)
    source = patch_source(encoder.model)
    assert source is not None
    assert source.width == width
    assert np.array_equal(read.features.numpy(), encoder.image_features(PICTURES[:3]))


@pytest.mark.parametrize("make", [tiny_encoder, resnet, custom])
def test_words_come_with_the_features_that_search_uses(make: Make) -> None:
    encoder = make()
    tokens = encoder.tokenize(TEXTS[:3])
    with torch.inference_mode():
        read = read_texts(encoder, tokens)
    assert read.tokens.shape == (3, tokens.shape[1], 32)
    source = word_source(encoder.model)
    assert source is not None
    assert source.width == 32
    assert np.array_equal(read.features.numpy(), encoder.text_features(TEXTS[:3]))


def test_each_picture_is_read_on_its_own_route_and_stays_in_its_place() -> None:
    encoder = tiny_encoder()
    shape = LowRank.configuration(encoder.model, rank=2, alpha=4)
    added = LowRank.build(domain("ink"), shape, encoder.model)
    with torch.no_grad():
        for parameter in added.parameters():
            parameter.add_(0.3)
    encoder.inserts.append(added)
    prepared = encoder.prepare_images(PICTURES[:4])
    with torch.inference_mode():
        mixed = read_images(encoder, prepared, ["ink", "drawn", "ink", "drawn"])
        ink = read_images(encoder, prepared[:1], ["ink"])
        plain = read_images(encoder, prepared)
    assert torch.allclose(mixed.tokens[0], ink.tokens[0], atol=1e-3)
    assert torch.allclose(mixed.tokens[1], plain.tokens[1], atol=1e-3)
    assert torch.allclose(mixed.features[3], plain.features[3], atol=1e-3)
    assert not torch.allclose(mixed.features[2], plain.features[2], atol=0.1)


def test_a_hidden_word_is_read_as_the_mask_and_nothing_of_it_is_left() -> None:
    encoder = tiny_encoder()
    tokens = encoder.tokenize(["a red circle on paper", "a red square on paper"])
    hidden = tokens[:1] != tokens[1:]
    hidden = hidden.expand(2, -1) if tokens.shape[1] else hidden
    mask = torch.full((32,), 0.5, requires_grad=True)
    read = read_texts(encoder, tokens, hidden=hidden, mask=mask)
    assert bool(hidden.any())
    assert torch.allclose(read.tokens[0], read.tokens[1], atol=1e-6)
    read.tokens.square().sum().backward()  # type: ignore[no-untyped-call]
    assert mask.grad is not None
    assert float(mask.grad.abs().sum()) > 0
    with torch.inference_mode():
        plain = read_texts(encoder, tokens)
    assert not torch.allclose(plain.tokens[0], plain.tokens[1], atol=1e-4)


@pytest.mark.parametrize("make", [tiny_encoder, custom])
def test_padding_start_and_end_are_told_from_words(make: Make) -> None:
    encoder = make()
    tokens = encoder.tokenize(["a red circle on paper", "red"])
    real, words = real_words(encoder, tokens), words_to_hide(encoder, tokens)
    assert bool((real | ~words).all())
    assert 0 < int(words[1].sum()) < int(words[0].sum())
    assert not bool(words[:, 0].any())
    assert not bool(real[1, int(real[1].sum()) :].any())
    vocabulary = tiny_encoder().vocabulary
    assert vocabulary is not None
    assert not bool(torch.isin(tokens[words], torch.tensor(vocabulary.special_rows)).any())


def test_towers_that_give_no_tokens_are_refused_with_a_sentence() -> None:
    encoder = tiny_encoder()
    assert no_tokens(encoder) is None
    encoder.model.visual = nn.Identity()
    assert "the image tower of tiny is none that we know" in str(no_tokens(encoder))
    prompted = tiny_encoder()
    config = {"size": 4, "length": 1, "top": 2}
    prompted.inserts.append(TextPrompts.build(ENCODER, config, prompted.model))
    assert "prompts stand among the words" in str(no_tokens(prompted))
