"""Tokens of both towers: the same features beside them, every route, words hidden, padding told."""

import numpy as np
import pytest
import torch
from torch import nn

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
from tests.model_updates.tiny import draw, image_ids, tiny_encoder, toy_pairs

TEXTS = [pair.text for pair in toy_pairs("en")]
PICTURES = [draw(image_id) for image_id in image_ids()]


@pytest.mark.parametrize(
    ("architecture", "patches", "width"),
    [("tiny", 5, 32), ("tiny-resnet", 1, 256), ("tiny-custom-text", 5, 32)],
)
def test_patches_come_with_the_features_that_search_uses(architecture: str, patches: int, width: int) -> None:
    encoder = tiny_encoder(architecture=architecture)
    with torch.inference_mode():
        read = read_images(encoder, encoder.prepare_images(PICTURES[:3]))
    assert read.tokens.shape == (3, patches, width)
    source = patch_source(encoder.model)
    assert source is not None
    assert source.width == width
    assert np.array_equal(read.features.numpy(), encoder.image_features(PICTURES[:3]))


@pytest.mark.parametrize(
    ("architecture", "width"), [("tiny", 32), ("tiny-custom-text", 16), ("tiny-both-ways", 16)]
)
def test_words_come_with_the_features_that_search_uses(architecture: str, width: int) -> None:
    encoder = tiny_encoder(architecture=architecture)
    tokens = encoder.tokenize(TEXTS[:3])
    with torch.inference_mode():
        read = read_texts(encoder, tokens)
    assert read.tokens.shape == (3, tokens.shape[1], width)
    source = word_source(encoder.model)
    assert source is not None
    assert source.width == width
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


@pytest.mark.parametrize("architecture", ["tiny", "tiny-custom-text", "tiny-both-ways"])
def test_padding_start_and_end_are_told_from_words(architecture: str) -> None:
    encoder = tiny_encoder(architecture=architecture)
    tokens = encoder.tokenize(["a red circle on paper", "red"])
    real, words = real_words(encoder, tokens), words_to_hide(encoder, tokens)
    assert bool((real | ~words).all())
    assert 0 < int(words[1].sum()) < int(words[0].sum())
    assert not bool(words[:, 0].any())
    assert not bool(real[1, int(real[1].sum()) :].any())
    empty = encoder.tokenize([""])[0]  # start, end and padding
    assert not bool(torch.isin(tokens[words], empty).any())


def test_towers_that_give_no_tokens_are_refused_with_a_sentence() -> None:
    encoder = tiny_encoder()
    assert no_tokens(encoder) is None
    encoder.model.visual = nn.Identity()
    assert "the image tower of tiny is none that we know" in str(no_tokens(encoder))
    prompted = tiny_encoder()
    config = {"size": 4, "length": 1, "top": 2}
    prompted.inserts.append(TextPrompts.build(ENCODER, config, prompted.model))
    assert "prompts stand among the words" in str(no_tokens(prompted))
