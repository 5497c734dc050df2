"""The terms that teach a domain: each against numbers worked out by hand, and whom a gradient reaches."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from model_updates.losses import info_nce
from model_updates.parts.domain_memory import even_sample
from model_updates.parts.domain_terms import (
    caption_numbers,
    contrast,
    joined,
    visibility,
)
from tests.model_updates.plane import NEW, OLD, SCALE, pairs, rows
from tests.model_updates.tiny import toy_pairs


def test_with_one_caption_a_picture_contrast_is_clips_loss() -> None:
    pictures = rows(20, 60)
    expected = info_nce(pictures @ NEW.texts.T, SCALE)
    assert float(contrast(pictures, NEW, NEW, SCALE)) == pytest.approx(float(expected), rel=1e-6)


def test_more_texts_of_the_chunk_are_harder_to_tell_apart() -> None:
    more = joined([NEW, pairs(rows(30), rows(30), 5, first_picture=5)])
    assert contrast(NEW.pictures, NEW, more, SCALE) > contrast(NEW.pictures, NEW, NEW, SCALE)


def test_visibility_counts_old_pictures_of_other_captions_alone() -> None:
    pictures = rows(10, 80)
    # Caption 0 is also an old picture's caption: that picture is left out, the other one is not.
    cosines = [
        [math.cos(math.radians(10)), math.cos(math.radians(80)), math.cos(math.radians(170))],
        [math.cos(math.radians(80)), math.cos(math.radians(10)), math.cos(math.radians(85))]
        + [math.cos(math.radians(80))],
    ]
    own = [cosines[0][0], cosines[1][1]]
    by_hand = [
        math.log(sum(math.exp(SCALE * c) for c in row)) - SCALE * right
        for row, right in zip(cosines, own, strict=True)
    ]
    assert float(visibility(pictures, NEW, OLD, SCALE)) == pytest.approx(sum(by_hand) / 2, rel=1e-5)


def test_a_gradient_reaches_the_new_pictures_and_is_finite() -> None:
    raw = torch.tensor([[1.0, 0.2], [0.1, 1.0]], requires_grad=True)
    pictures = normalize(raw, dim=-1)
    everything_masked = replace(OLD, caption=torch.tensor([0, 0]))
    (contrast(pictures, NEW, NEW, SCALE) + visibility(pictures, NEW, everything_masked, SCALE)).backward()  # type: ignore[no-untyped-call]
    assert raw.grad is not None
    assert bool(raw.grad.isfinite().all())
    assert float(raw.grad.abs().sum()) > 0


def test_captions_are_the_same_by_their_english() -> None:
    german, english = caption_numbers(toy_pairs("de"), toy_pairs("en"))
    assert torch.equal(german, english)
    assert len(set(german.tolist())) == len(german)


def test_a_sample_takes_as_much_of_each_slice_and_gives_on_what_a_small_one_leaves() -> None:
    few, many = toy_pairs("de")[:3], toy_pairs("en")
    sample = even_sample([*few, *many], 10)
    assert [pair.language for pair in sample].count("de") == 3
    assert [pair.language for pair in sample].count("en") == 7
    assert len(set(sample)) == 10
    assert even_sample([*few, *many], 10) == sample
    assert len(even_sample([*few, *many], 100)) == 19
    assert even_sample([*few, *many], 0) == []
