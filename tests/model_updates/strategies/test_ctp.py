"""CTP: how the slow model moves, what the queue holds, what topology costs, and the paper's switches."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.batches import Batches
from model_updates.errors import BadStrategyOption
from model_updates.losses import info_nce
from model_updates.parts.momentum_contrast import (
    NOBODY,
    FeatureQueue,
    MomentumModel,
    momentum_step,
    queue_contrast,
)
from model_updates.parts.topology import cross_modal_topology, row_divergence, same_modal_topology
from model_updates.strategies.ctp import Ctp, CtpOptions
from model_updates.strategy import State
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def rows(count: int, seed: int = 0, dim: int = 6) -> Tensor:
    return normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)), dim=-1)


def moved(steps: list[float], *, old: float, momentum: float = 0.9, share: float = 0.5) -> float:
    """Where the slow model is after steps towards these current weights."""
    slow = torch.tensor([old], dtype=torch.float64)
    for value in steps:
        momentum_step(slow, torch.full_like(slow, old), torch.full_like(slow, value), momentum, share)
    return float(slow)


def test_ten_steps_towards_one_from_zero_arrive_at_325661_millionths() -> None:
    assert moved([1.0] * 10, old=0.0) == pytest.approx(0.325661, abs=5e-7)
    assert moved([1.0] * 10, old=0.0) == pytest.approx(0.5 * (1 - 0.9**10))


def test_steps_towards_3_5_and_1_can_be_reckoned_by_hand() -> None:
    # 0.9 of what it was, 0.05 of the old 2 and of the current value: 2 -> 2.05 -> 2.195 -> 2.1255.
    assert moved([3.0, 5.0, 1.0], old=2.0) == pytest.approx(2.1255)


def test_a_momentum_of_one_freezes_and_following_the_old_model_alone_stays_with_it() -> None:
    assert moved([5.0, 7.0], old=2.0, momentum=1.0) == 2.0
    assert moved([5.0, 7.0], old=2.0, share=1.0) == pytest.approx(2.0)
    assert moved([3.0], old=2.0, share=0.0) == pytest.approx(2.1)


def test_the_slow_model_moves_parameters_and_copies_running_statistics() -> None:
    encoder = tiny_encoder()
    previous = encoder.copy()
    slow = MomentumModel(previous, momentum=0.9, share_of_old=0.5)
    encoder.model.register_buffer("statistic", torch.tensor([3.0]))
    slow.encoder.model.register_buffer("statistic", torch.tensor([0.0]))
    with torch.no_grad():
        encoder.model.text_projection.add_(1.0)  # type: ignore[operator]
    slow.step(encoder.model)
    difference = slow.encoder.model.text_projection - previous.model.text_projection  # type: ignore[operator]
    assert torch.allclose(difference, torch.full_like(difference, 0.05), atol=1e-6)
    assert float(slow.encoder.model.statistic) == 3.0  # type: ignore[arg-type]
    assert not any(parameter.requires_grad for parameter in slow.encoder.model.parameters())


def test_three_pushes_of_four_into_a_queue_of_eight_leave_the_pointer_at_four() -> None:
    queue = FeatureQueue.random(8, 6, seed=1)
    for push in range(3):
        queue.push(rows(4, push), rows(4, 10 + push), torch.arange(4) + 4 * push)
    assert queue.pointer == 4
    assert queue.pictures.tolist() == [8, 9, 10, 11, 4, 5, 6, 7]
    assert torch.equal(queue.images, torch.cat([rows(4, 2), rows(4, 1)]))


def test_a_push_that_does_not_divide_the_queue_goes_round_its_end() -> None:
    queue = FeatureQueue.random(5, 6, seed=1)
    queue.push(rows(3), rows(3), torch.arange(3))
    queue.push(rows(4, 1), rows(4, 1), torch.arange(4) + 3)
    assert queue.pictures.tolist() == [5, 6, 2, 3, 4]
    assert queue.pointer == 2
    queue.push(rows(9, 2), rows(9, 2), torch.arange(9) + 7)
    assert sorted(queue.pictures.tolist()) == [11, 12, 13, 14, 15]


def test_a_new_queue_holds_random_directions_of_nobody() -> None:
    queue = FeatureQueue.random(7, 6, seed=1)
    assert torch.allclose(queue.images.norm(dim=1), torch.ones(7))
    assert queue.pictures.tolist() == [NOBODY] * 7
    assert not torch.equal(queue.images, queue.texts)


def test_without_a_queue_the_slow_models_contrast_is_that_of_the_batch() -> None:
    image, text = rows(4), rows(4, 1)
    empty = FeatureQueue.random(0, 6, seed=1)
    found = queue_contrast((image, text), (image, text), empty, torch.arange(4), 5.0)
    assert float(found) == pytest.approx(float(info_nce(image @ text.T, 5.0)))


def test_queued_features_are_negatives_unless_they_show_the_same_picture() -> None:
    image, text = rows(4), rows(4, 1)
    queue = FeatureQueue(rows(2, 2), rows(2, 3), torch.tensor([NOBODY, NOBODY]))
    slow, index = (image, text), torch.arange(4)
    with_both = queue_contrast(slow, slow, queue, index, 5.0)
    queue.pictures = torch.tensor([0, NOBODY])
    own = queue_contrast(slow, slow, queue, index, 5.0)
    alone = queue_contrast(slow, slow, FeatureQueue.random(0, 6, 1), index, 5.0)
    assert float(alone) < float(own) < float(with_both)
    logits = torch.cat([5.0 * image @ text.T, 5.0 * image @ queue.texts.T], dim=1)
    logits[0, 4] = -math.inf
    by_hand = torch.nn.functional.cross_entropy(logits, index)
    logits = torch.cat([5.0 * text @ image.T, 5.0 * text @ queue.images.T], dim=1)
    logits[0, 4] = -math.inf
    by_hand = (by_hand + torch.nn.functional.cross_entropy(logits, index)) / 2
    assert float(own) == pytest.approx(float(by_hand))


def test_topology_costs_nothing_and_pulls_nowhere_while_nothing_has_changed() -> None:
    old = rows(5), rows(5, 1)
    new = tuple(value.clone().requires_grad_() for value in old)
    loss = cross_modal_topology((new[0], new[1]), old, 1 / 0.07)
    loss = loss + same_modal_topology((new[0], new[1]), old, 1 / 0.07)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    assert all(value.grad is not None and float(value.grad.abs().max()) < 1e-5 for value in new)


def test_turning_both_towers_together_costs_nothing_and_turning_one_does() -> None:
    old = rows(5), rows(5, 1)
    turn = torch.linalg.qr(torch.randn(6, 6, generator=torch.Generator().manual_seed(3)))[0]
    both, one = (old[0] @ turn, old[1] @ turn), (old[0] @ turn, old[1])
    assert float(cross_modal_topology(both, old, 10.0)) == pytest.approx(0, abs=1e-5)
    assert float(same_modal_topology(one, old, 10.0)) == pytest.approx(0, abs=1e-5)
    assert float(cross_modal_topology(one, old, 10.0)) > 0.1


def test_kl_has_the_old_models_rows_as_its_target() -> None:
    p, q = torch.tensor([[0.7, 0.2, 0.1]]), torch.tensor([[0.5, 0.3, 0.2]])
    assert float(row_divergence(p.log(), q.log(), 1.0, None)) == pytest.approx(0.085123, abs=1e-6)
    assert float(row_divergence(q.log(), p.log(), 1.0, None)) == pytest.approx(0.092033, abs=1e-6)


def test_whatever_stands_on_the_diagonal_changes_nothing() -> None:
    before, now = rows(5) @ rows(5).T, rows(5, 1) @ rows(5, 1).T
    diagonal = torch.eye(5, dtype=torch.bool)
    usual = row_divergence(before, now, 1 / 0.07, diagonal)
    strange = row_divergence(
        before.masked_fill(diagonal, 7.0), now.masked_fill(diagonal, -3.0), 1 / 0.07, diagonal
    )
    assert float(usual) > 0
    assert torch.equal(usual, strange)


def test_two_captions_of_a_picture_do_not_drown_the_others_either() -> None:
    old, new = rows(5), rows(5, 1)
    new[1], old[1] = new[0], old[0]
    texts = rows(5, 2)
    index = torch.tensor([0, 0, 1, 2, 3])
    told = same_modal_topology((new, texts), (old, texts), 10.0, image_index=index)
    logits = [10.0 * m @ m.T for m in (old, new)]
    same = index[:, None] == index[None, :]
    target, guess = (value.masked_fill(same, -math.inf).softmax(dim=1) for value in logits)
    kl = torch.where(target > 0, target * (target.log() - guess.log()), 0.0).sum(dim=1).mean()
    assert float(told) == pytest.approx(float(kl) / 2, abs=1e-5)


def first_terms(**options: Any) -> dict[str, float]:
    """The terms of the first batch, by name."""
    strategy = make_strategy("ctp", **options)
    context = context_for(tiny_encoder(), toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    batch = next(iter(Batches(data.train, context.encoder, size=8, load_image=data.load_image).epoch(0)))
    terms = strategy.terms(batch)
    return {name: float(value.detach()) for name, value in terms.items()}


def test_every_part_can_be_switched_off() -> None:
    names = {"contrastive", "momentum", "cross-topology", "same-topology"}
    assert set(first_terms()) == names
    assert set(first_terms(momentum_contrast=0)) == names - {"momentum"}
    assert set(first_terms(cross_topology=0)) == names - {"cross-topology"}
    assert set(first_terms(same_topology=0)) == names - {"same-topology"}
    assert set(first_terms(from_scratch=True)) == {"contrastive", "momentum"}


def test_at_the_first_step_the_slow_model_is_the_model_itself() -> None:
    terms = first_terms(queue=0)
    assert terms["momentum"] == pytest.approx(terms["contrastive"], abs=1e-5)
    assert terms["cross-topology"] == pytest.approx(0, abs=1e-5)
    assert terms["same-topology"] == pytest.approx(0, abs=1e-5)


def test_a_queue_makes_the_slow_models_contrast_harder() -> None:
    assert first_terms(queue=12)["momentum"] > first_terms(queue=0)["momentum"]


@pytest.mark.parametrize(
    ("options", "share", "momentum"),
    [
        ({}, 0.5, 0.9),
        ({"follows": "previous"}, 1.0, 0.9),
        ({"follows": "current"}, 0.0, 0.9),
        ({"from_scratch": True}, 0.0, 0.995),
    ],
)
def test_the_slow_model_follows_whom_it_is_told_to(
    options: dict[str, Any], share: float, momentum: float
) -> None:
    strategy = make_strategy("ctp", **options)
    context = context_for(tiny_encoder(), toy_pairs())
    strategy.before_update(context)
    old = context.open_previous().model.text_projection.detach()  # type: ignore[operator]
    now = context.encoder.model.text_projection
    with torch.no_grad():
        now.add_(1.0)  # type: ignore[operator]
    data = data_for(strategy, context)
    strategy.terms(
        next(iter(Batches(data.train, context.encoder, size=8, load_image=data.load_image).epoch(0)))
    )
    slow = strategy.progress()["momentum.text_projection"]
    went = (1 - momentum) * (1 - share)
    assert torch.allclose(slow, old + went, atol=1e-6)


def test_the_queue_goes_on_in_the_next_update_and_names_no_pictures_there() -> None:
    encoder, first = tiny_encoder(), make_strategy("ctp")
    teach(encoder, first)
    kept = first.carried()
    assert kept.tensors["images"].shape == (12, 24)
    # 32 pairs went in, two epochs of sixteen.
    assert kept.facts == {"pointer": 32 % 12}
    second = make_strategy("ctp")
    second.carry(kept)
    second.before_update(context_for(encoder, toy_pairs()))
    begun = second.progress()
    assert torch.equal(begun["queue.images"], kept.tensors["images"])
    assert set(begun["queue.pictures"].tolist()) == {NOBODY}


def test_a_queue_of_another_size_starts_anew() -> None:
    first, second = make_strategy("ctp"), make_strategy("ctp", queue=20)
    teach(tiny_encoder(), first)
    second.carry(first.carried())
    second.before_update(context_for(tiny_encoder(), toy_pairs()))
    assert second.progress()["queue.images"].shape == (20, 24)


@pytest.mark.parametrize("options", [{"queue": 0}, {"momentum_contrast": 0}])
def test_without_a_queue_nothing_is_carried(options: dict[str, Any]) -> None:
    strategy = make_strategy("ctp", **options)
    teach(tiny_encoder(), strategy)
    assert strategy.carried() == State()
    assert strategy.progress() == {}


def test_the_temperature_is_fixed_and_said_by_the_model() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("ctp"))
    assert encoder.similarity_scale == pytest.approx(1 / 0.07, rel=1e-5)


def test_a_strategy_object_can_run_two_updates() -> None:
    once, twice, strategy = tiny_encoder(), tiny_encoder(), make_strategy("ctp")
    teach(once, make_strategy("ctp", queue=0))
    teach(once, make_strategy("ctp", queue=0))
    strategy = make_strategy("ctp", queue=0)
    teach(twice, strategy)
    teach(twice, strategy)
    assert_same_state(once.model.state_dict(), twice.model.state_dict())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": 0.0}, "temperature is at least 0.01 and at most 1"),
        ({"momentum": 1.5}, "momentum is at least 0 and at most 1"),
        ({"follows": "nobody"}, "follows is 'both', 'previous' or 'current'"),
        ({"queue": -1}, "queue is not negative"),
        ({"same_topology": -1.0}, "same_topology is not negative"),
        ({"cross_topology": math.inf}, "cross_topology is not negative, got inf"),
    ],
)
def test_unusable_options_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        Ctp(CtpOptions(**options))


def test_with_a_memory_old_pairs_join_the_epoch_and_the_queue_is_carried_beside_them() -> None:
    encoder, first = tiny_encoder(), make_strategy("ctp+er", memory_size=6)
    teach(encoder, first, toy_pairs("en"))
    kept = first.carried()
    assert kept.tensors["images"].shape == (12, 24)
    assert len(kept.facts["memory"]["pairs"]) == 6
    second = make_strategy("ctp+er", memory_size=6, epochs=1)
    second.carry(kept)
    teach(encoder, second, toy_pairs())
    # 16 pairs of the chunk and 6 kept ones went through the queue of 12, which stood at 32 % 12.
    assert second.carried().facts["pointer"] == (32 + 22) % 12
    assert second.carried().facts["memory"]["seen"] == 32
