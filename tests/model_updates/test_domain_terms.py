"""The terms that teach a domain: each against numbers worked out by hand, and whom a gradient reaches."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.losses import info_nce
from model_updates.parts.domain_memory import even_sample, even_weights
from model_updates.parts.domain_terms import (
    Known,
    caption_numbers,
    contrast,
    displacement,
    joined,
    still_found,
    visibility,
)
from tests.model_updates.tiny import toy_pairs

SCALE = 4.0


def rows(*angles: float) -> Tensor:
    """Unit vectors in the plane, by degrees."""
    turned = torch.tensor([math.radians(angle) for angle in angles])
    return torch.stack([turned.cos(), turned.sin()], dim=1)


def pairs(texts: Tensor, pictures: Tensor, *captions: int, first_picture: int = 0) -> Known:
    shown = torch.arange(first_picture, first_picture + len(texts))
    return Known(texts, pictures, torch.tensor(captions), shown)


NEW = pairs(rows(0, 90), rows(10, 80), 0, 1)
OLD = pairs(rows(0, 180), rows(5, 170), 0, 7, first_picture=10)
OTHERS = pairs(rows(0, 90), rows(10, 80), 20, 21)  # captions that no old picture has


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


def test_displacement_counts_each_domain_as_much_however_few_pairs_it_has() -> None:
    weights = even_weights(["many", "many", "many", "few"])
    assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
    old = joined([OLD, OLD, OLD.rows(torch.tensor([0]))])
    one = OTHERS.rows(torch.tensor([0]))
    each = torch.stack([displacement(rows(0), one, old.rows(torch.tensor([n])), SCALE) for n in range(5)])
    told = torch.tensor([0.1, 0.2, 0.3, 0.0, 0.4])
    assert float(displacement(rows(0), one, old, SCALE, told)) == pytest.approx(float((told * each).sum()))


def test_displacement_falls_as_new_pictures_step_away_from_old_texts() -> None:
    near, far = (displacement(pictures, OTHERS, OLD, SCALE) for pictures in (rows(0, 180), rows(90, 270)))
    assert far < near
    alone = [SCALE * math.cos(math.radians(a)) for a in (5, 10)]
    others = [[SCALE * math.cos(math.radians(a)) for a in angles] for angles in ((90, 90), (90, 90))]
    by_hand = [
        math.log(math.exp(own) + sum(map(math.exp, rest))) - own
        for own, rest in zip(alone, others, strict=True)
    ]
    assert float(far) == pytest.approx(sum(by_hand) / 2, rel=1e-5)


def test_a_new_picture_with_the_same_caption_displaces_nothing() -> None:
    # NEW's first caption is OLD's first: of the two new pictures, only the second can be in its way.
    by_hand = []
    for own, rest in ((5, (60,)), (10, (180, 120))):
        logits = [SCALE * math.cos(math.radians(angle)) for angle in (own, *rest)]
        by_hand.append(math.log(sum(map(math.exp, logits))) - logits[0])
    found = displacement(rows(0, 60), NEW, OLD, SCALE)
    assert float(found) == pytest.approx(sum(by_hand) / 2, rel=1e-5)


def test_a_gradient_reaches_the_new_pictures_and_is_finite() -> None:
    raw = torch.tensor([[1.0, 0.2], [0.1, 1.0]], requires_grad=True)
    pictures = normalize(raw, dim=-1)
    everything_masked = replace(OLD, caption=torch.tensor([0, 0]))
    (
        contrast(pictures, NEW, NEW, SCALE)
        + visibility(pictures, NEW, everything_masked, SCALE)
        + displacement(pictures, NEW, OLD, SCALE)
    ).backward()  # type: ignore[no-untyped-call]
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


def test_only_what_is_found_can_be_displaced() -> None:
    # Twelve old pictures at growing angles; the first caption lies on its picture, the last one opposite to its own.
    angles = torch.linspace(0, 1.5, 12)
    pictures = torch.stack([angles.cos(), angles.sin()], dim=1)
    texts = pictures.clone()
    texts[11] = pictures[0]
    numbers = torch.arange(12)

    kept = still_found(Known(texts, pictures, numbers, numbers))

    assert kept.tolist() == list(range(11))


def test_several_captions_of_a_picture_count_it_once() -> None:
    alike = rows(*[60.0] * 20)
    one = Known(alike, alike, torch.arange(20), torch.zeros(20, dtype=torch.int64))
    other = Known(rows(90), rows(0), torch.tensor([20]), torch.tensor([1]))

    assert len(still_found(joined([one, other]))) == 21
