"""UCIR, GeoDL and Co2L: values by hand, the geodesic's integral, and how much each counts."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.batches import Batches
from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.parts.geodesic import flow_factors, geodesic_kernel, geodesic_loss
from model_updates.strategies import STRATEGIES
from model_updates.strategies.co2l import relation_distillation
from model_updates.strategies.ucir import margin_to_hardest
from tests.model_updates.tiny import context_for, data_for, make_strategy, teach, tiny_encoder, toy_pairs

OLD_FEATURES = ("icarl", "ucir", "geodl", "co2l")
AT_REST = ("icarl", "ucir", "geodl")  # co2l's temperatures ask for more than staying


def features(rows: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def begun(name: str, *, seen: bool = False, **options: Any) -> tuple[Any, Batch]:
    """A strategy before its first step, after an update that taught English if it has seen one, and its batch."""
    encoder = tiny_encoder()
    strategy = make_strategy(name, **options)
    if seen:
        first = make_strategy(name, **options)
        teach(encoder, first, toy_pairs("en"))
        strategy.carry(first.carried())
    context = replace(context_for(encoder, toy_pairs()), update_number=1 + seen)
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    batches = Batches(
        data.train, encoder, size=22, load_image=data.load_image, memory=data.memory, replay=strategy.replay
    )
    return strategy, next(iter(batches.epoch(0)))


@pytest.mark.parametrize("name", AT_REST)
def test_towers_that_have_not_moved_pay_nothing_and_are_not_moved(name: str) -> None:
    strategy, batch = begun(name, seen=True)
    term = strategy.terms(batch)["distillation"]
    assert float(term.detach()) == pytest.approx(0, abs=1e-5)
    parameters = [p for group in strategy.parameter_groups() for p in group.parameters]
    gradients = torch.autograd.grad(term, parameters, allow_unused=True)
    assert max(float(g.abs().max()) for g in gradients if g is not None) < 1e-3


@pytest.mark.parametrize("name", OLD_FEATURES)
def test_towers_that_have_moved_pay(name: str) -> None:
    strategy, batch = begun(name, seen=True)
    before = float(strategy.terms(batch)["distillation"].detach())
    with torch.no_grad():
        for group in strategy.parameter_groups():
            for parameter in group.parameters:
                parameter.add_(0.3 * features(1, parameter.numel())[0].view(parameter.shape).float())
    assert float(strategy.terms(batch)["distillation"].detach()) > before + 1e-3


@pytest.mark.parametrize("name", OLD_FEATURES)
def test_an_encoder_that_was_never_trained_is_no_teacher(name: str) -> None:
    assert set(teach(tiny_encoder(), make_strategy(name, from_scratch=True)).history[0]) == {"contrastive"}
    strategy, batch = begun(name, seen=True, from_scratch=True)
    assert set(strategy.terms(batch)) == {"contrastive", "distillation"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ucir", 5 * math.sqrt(16 / 4)), ("geodl", 5 * math.sqrt(16 / 4)), ("co2l", 1), ("icarl", 1)],
)
def test_the_weight_grows_by_the_root_of_old_pairs_over_new_ones(name: str, expected: float) -> None:
    strategy, _ = begun(name, seen=True)
    context = context_for(tiny_encoder(), toy_pairs()[:4])
    strategy.before_update(context)
    assert float(strategy.old.term(lambda: torch.ones(()))) == pytest.approx(expected)
    first, _ = begun(name)
    assert float(first.old.term(lambda: torch.ones(()))) == strategy.options.weight, (
        "the base counts as a chunk like the first"
    )


# UCIR.


def test_ucir_is_the_cosine_of_old_and_new_over_both_towers() -> None:
    strategy, batch = begun("ucir")
    new = (torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[3.0, 3.0], [1.0, 0.0]]))
    old = (torch.tensor([[5.0, 0.0], [0.0, -1.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    # Images: 0 and 2; texts: 1 - cos 45 and 0.
    held = replace(batch, image_features=old[0], text_features=old[1])
    assert float(strategy.distillation(new, held)) == pytest.approx(5 * (1 + (1 - math.sqrt(0.5)) / 2))


def test_the_margin_is_to_the_two_most_similar_wrong_ones() -> None:
    cosines = torch.tensor([[0.5, 0.4, 0.3, 0.9], [0.2, 0.8, 0.1, 0.0]])
    same = torch.tensor([[True, False, False, False], [False, True, False, False]])
    # Row 0: .5 - .5 + .9 and .5 - .5 + .4; row 1: 0 and 0.
    assert float(margin_to_hardest(cosines, same, 0.5)) == pytest.approx((0.9 + 0.4) / 2)


def test_another_caption_of_the_picture_is_not_pushed_away() -> None:
    cosines = torch.tensor([[0.5, 0.6, 0.1]])
    same = torch.tensor([[True, True, False]])
    assert float(margin_to_hardest(cosines, same, 0.5)) == pytest.approx(0.1)


def test_the_margin_counts_replayed_pairs_alone() -> None:
    plain, batch = begun("ucir", seen=True)
    strict, _ = begun("ucir", seen=True, margin_weight=1.0)
    more = float(strict.terms(batch)["distillation"].detach() - plain.terms(batch)["distillation"].detach())
    assert bool(batch.replayed.any())
    assert more > 0.1
    none = replace(batch, replayed=torch.zeros_like(batch.replayed))
    assert torch.equal(strict.terms(none)["distillation"], plain.terms(none)["distillation"])


# GeoDL.


def test_the_factors_are_the_integrals_of_their_products() -> None:
    angles = torch.tensor([0.0, 0.3, 1.2], dtype=torch.float64)
    steps = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    turn = steps[:, None] * angles
    expected = [turn.cos() ** 2, -turn.cos() * turn.sin(), turn.sin() ** 2]
    for factor, values in zip(flow_factors(angles), expected, strict=True):
        assert torch.allclose(factor, values.mean(dim=0), atol=1e-8)


def projector(rows: Tensor) -> Tensor:
    """The projection on the rank b - 2 subspace of centred rows, by an eigenvalue decomposition."""
    centred = rows - rows.mean(dim=0)
    _, vectors = torch.linalg.eigh(centred.T @ centred)
    basis = vectors[:, -(len(rows) - 2) :]
    projected: Tensor = basis @ basis.T
    return projected


@pytest.mark.parametrize("width", [7, 12])
def test_the_kernel_is_the_integral_of_the_projections_between_old_and_new(width: int) -> None:
    """Against the flow computed another way: the logarithm of the product of two reflections."""
    before = normalize(features(6, width), dim=1)
    now = normalize(before + 0.2 * features(6, width, seed=1), dim=1)
    start, end = projector(before), projector(now)
    eye = torch.eye(width, dtype=torch.float64)
    # (I - 2Q)(I - 2P) turns by twice the principal angles; its root to the t-th part carries P along the geodesic.
    turn = (eye - 2 * end) @ (eye - 2 * start)
    values, vectors = torch.linalg.eig(turn)
    back, middle = torch.linalg.inv(vectors), torch.zeros_like(start)
    steps = 2_000
    for step in range(steps):
        part = (step + 0.5) / steps
        moved = (vectors * (values.log() * part / 2).exp() @ back).real
        middle += moved @ start @ moved.T / steps
    kernel = geodesic_kernel(now, before)
    assert torch.allclose(kernel, middle, atol=1e-5)
    assert torch.allclose(kernel, kernel.T, atol=1e-12)
    assert float(torch.linalg.eigvalsh(kernel).min()) > -1e-12


def test_identical_features_lose_nothing_and_turned_ones_something() -> None:
    old = features(6, 12).float()
    new = old.clone().requires_grad_(True)
    loss = geodesic_loss(new, old)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    assert new.grad is not None
    assert float(new.grad.abs().max()) < 1e-6
    assert float(geodesic_loss(old.roll(1, dims=1), old)) > 0.01


@pytest.mark.parametrize(("rows", "width"), [(2, 5), (3, 5), (9, 4)])
def test_few_rows_and_many_dimensions_or_the_other_way_round_are_finite(rows: int, width: int) -> None:
    new = features(rows, width).float().requires_grad_(True)
    loss = geodesic_loss(new, features(rows, width, seed=1).float())
    loss.backward()  # type: ignore[no-untyped-call]
    assert new.grad is not None
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(new.grad).all())


# Co2L.


def alone(rows: int) -> Tensor:
    return torch.eye(rows, dtype=torch.bool)


def relations_by_hand(new: Tensor, old: Tensor, equal: Tensor, now: float, before: float) -> float:
    ours, theirs = (normalize(rows, dim=1) for rows in (new, old))
    total = 0.0
    for i in range(len(new)):
        others = [j for j in range(len(new)) if not equal[i, j]]
        q = [math.exp(float(theirs[i] @ theirs[j]) / before) for j in others]
        p = [math.exp(float(ours[i] @ ours[j]) / now) for j in others]
        total -= sum(a / sum(q) * math.log(b / sum(p)) for a, b in zip(q, p, strict=True))
    return total / len(new)


def test_relations_are_the_cross_entropy_of_a_rows_others() -> None:
    new, old = features(4, 3), features(4, 3, seed=1)
    found = relation_distillation(new, old, alone(4), new_temperature=0.2, old_temperature=0.5)
    assert float(found) == pytest.approx(relations_by_hand(new, old, alone(4), 0.2, 0.5))


def test_two_captions_of_one_picture_are_not_each_others_neighbours() -> None:
    new, old, equal = features(4, 6), features(4, 6, seed=1), alone(4)
    new[1], old[1] = new[0], old[0]
    equal[0, 1] = equal[1, 0] = True
    found = relation_distillation(new, old, equal, new_temperature=0.2, old_temperature=0.1)
    assert float(found) == pytest.approx(relations_by_hand(new, old, equal, 0.2, 0.1))
    everything = torch.ones(4, 4, dtype=torch.bool)
    assert float(relation_distillation(new, old, everything, new_temperature=1.0, old_temperature=1.0)) == 0


def test_with_equal_temperatures_the_gradient_is_zero_where_nothing_changed_and_the_value_the_entropy() -> (
    None
):
    old = features(5, 4)
    new = old.clone().requires_grad_(True)
    loss = relation_distillation(new, old, alone(5), new_temperature=0.2, old_temperature=0.2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert new.grad is not None
    assert float(new.grad.abs().max()) < 1e-12
    assert 0 < float(loss.detach()) < math.log(4)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("icarl", {"weight": -1}, "weight is not negative"),
        ("ucir", {"margin_weight": -1}, "margin_weight is not negative"),
        ("ucir", {"margin": 0}, "margin is above 0 and at most 2"),
        ("co2l", {"old_temperature": 0}, "old_temperature is above 0"),
        ("geodl", {"memory_share": 0}, "memory_share is above 0"),
    ],
)
def test_unusable_options_are_refused(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)
