"""What new pictures may not displace: against numbers worked out by hand, and what forbids nothing."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from model_updates.parts.domain_terms import (
    HeldTexts,
    Known,
    all_held,
    even_weights,
    first_of_each,
    found_held,
    joined,
    still_found,
)
from tests.model_updates.plane import NEW, OLD, OTHERS, SCALE, pairs, rows


def logit(*angles: float) -> list[float]:
    return [SCALE * math.cos(math.radians(angle)) for angle in angles]


def log_sum(logits: list[float]) -> float:
    return math.log(sum(map(math.exp, logits)))


def test_each_domain_counts_as_much_however_few_pairs_it_has() -> None:
    weights = even_weights(["many", "many", "many", "few"])
    assert weights.tolist() == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])
    old = joined([OLD, OLD, OLD.rows(torch.tensor([0]))])
    one = OTHERS.rows(torch.tensor([0]))
    told = torch.tensor([0.1, 0.2, 0.3, 0.0, 0.4])
    place = torch.tensor(logit(5, 10, 5, 10, 5))
    each = torch.stack(
        [HeldTexts(old.rows(n), place[n]).displacement(rows(0), one, SCALE) for n in torch.arange(5)[:, None]]
    )
    weighed = HeldTexts(old, place, told).displacement(rows(0), one, SCALE)
    assert float(weighed) == pytest.approx(float((told * each).sum()))


def test_it_falls_as_new_pictures_step_away_from_old_texts() -> None:
    held = found_held(OLD, SCALE)
    near, far = (held.displacement(pictures, OTHERS, SCALE) for pictures in (rows(0, 180), rows(90, 270)))
    assert far < near
    by_hand = [log_sum([own, *logit(90, 90)]) - own for own in logit(5, 10)]
    assert float(far) == pytest.approx(sum(by_hand) / 2, rel=1e-5)


def test_a_new_picture_with_the_same_caption_displaces_nothing() -> None:
    # NEW's first caption is OLD's first: of the two new pictures, only the second can be in its way.
    by_hand = [log_sum(logit(own, *rest)) - logit(own)[0] for own, rest in ((5, (60,)), (10, (180, 120)))]
    found = found_held(OLD, SCALE).displacement(rows(0, 60), NEW, SCALE)
    assert float(found) == pytest.approx(sum(by_hand) / 2, rel=1e-5)


def test_a_batch_stands_for_all_new_pictures() -> None:
    # Two pictures of a batch stand for six: what they take of a text counts three times.
    held = all_held(OLD, ["one", "one"], SCALE, crowd=6)
    by_hand = []
    for old, new in (((5, 170), (90, 90)), ((175, 10), (90, 90))):
        kept = log_sum(logit(*old))
        by_hand.append(log_sum([kept, *(value + math.log(3) for value in logit(*new))]) - kept)
    assert float(held.displacement(rows(90, 270), OTHERS, SCALE)) == pytest.approx(sum(by_hand) / 2, rel=1e-5)
    alone = replace(held, crowd=1)  # a chunk smaller than its batch is not made less of
    assert torch.equal(
        alone.displacement(rows(90, 270), OTHERS, SCALE),
        replace(held, crowd=0).displacement(rows(90, 270), OTHERS, SCALE),
    )


def test_a_text_that_finds_nothing_of_its_own_forbids_little() -> None:
    # The second text lies on the first picture; its own lies opposite. A new picture near it is no worse than that one.
    lost = pairs(rows(0, 0), rows(0, 180), 0, 7, first_picture=10)
    new = rows(20)
    one = OTHERS.rows(torch.tensor([0]))
    own = HeldTexts(lost, torch.tensor(logit(0, 180))).displacement(new, one, SCALE)
    among = all_held(lost, ["one", "one"], SCALE, crowd=1).displacement(new, one, SCALE)
    assert float(among) < 1 < float(own)


def test_a_picture_counts_once_however_many_texts_it_has() -> None:
    once = all_held(OLD, ["one", "one"], SCALE, crowd=2)
    thrice = all_held(joined([OLD, OLD, OLD]), ["one"] * 6, SCALE, crowd=2)
    assert thrice.place.tolist() == pytest.approx(once.place.tolist() * 3)


def test_without_old_pairs_nothing_is_held() -> None:
    nothing = OLD.rows(torch.tensor([], dtype=torch.int64))
    assert len(all_held(nothing, [], SCALE, crowd=3)) == 0
    assert len(found_held(nothing, SCALE)) == 0


def test_a_gradient_is_finite_where_every_new_picture_has_the_caption() -> None:
    raw = torch.tensor([[1.0, 0.2], [0.1, 1.0]], requires_grad=True)
    pictures = normalize(raw, dim=-1)
    all_held(OLD, ["one", "one"], SCALE, crowd=9).displacement(
        pictures, replace(NEW, caption=torch.tensor([0, 0])), SCALE
    ).backward()  # type: ignore[no-untyped-call]
    assert raw.grad is not None
    assert bool(raw.grad.isfinite().all())
    assert float(raw.grad.abs().sum()) > 0


def test_only_what_is_found_is_held() -> None:
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
    assert first_of_each(joined([one, other]).picture).tolist() == [0, 20]
