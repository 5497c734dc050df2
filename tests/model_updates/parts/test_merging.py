"""Merged weights: their values, what validation sees of them, and what is carried for the next merge."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.parts.merging import (
    SignSums,
    added,
    interpolated,
    return_to,
    task_vector,
    trimmed,
)
from model_updates.parts.merging_towers import count_statistics, put, values_of
from model_updates.strategies import STRATEGIES
from model_updates.strategy import State, Strategy
from model_updates.trainer import run_update
from model_updates.versions import load_state, write_version
from tests.model_updates.strategies.test_fits import without_blocks
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    draw,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

MERGING = ("wise-ft", "ema-merge", "task-arithmetic", "ties")


def row(*values: float) -> dict[str, Tensor]:
    return {"w": torch.tensor(values)}


@pytest.mark.parametrize(("share", "expected"), [(0.0, [0.1, -3.7]), (1.0, [0.3, 12.9]), (0.5, [0.2, 4.6])])
def test_interpolation_is_exact_at_both_ends(share: float, expected: list[float]) -> None:
    between = interpolated(row(0.1, -3.7), row(0.3, 12.9), share)["w"]
    if share in {0.0, 1.0}:
        assert between.tolist() == torch.tensor(expected).tolist()
    assert between.tolist() == pytest.approx(expected, abs=1e-6)


def test_rows_that_only_the_trained_table_has_keep_their_value() -> None:
    old, new = {"t": torch.zeros(2, 3)}, {"t": torch.ones(4, 3)}
    assert interpolated(old, new, 0.5)["t"][:, 0].tolist() == [0.5, 0.5, 1, 1]
    assert added(old, task_vector(old, new), new, 0.25)["t"][:, 0].tolist() == [0.25, 0.25, 1, 1]


def test_temperatures_are_averaged_in_log_space() -> None:
    old, new = tiny_encoder(), tiny_encoder()
    with torch.no_grad():
        old.model.get_parameter("logit_scale").fill_(torch.tensor(4.0).log())
        new.model.get_parameter("logit_scale").fill_(torch.tensor(64.0).log())
    merged = interpolated(values_of(old.model), values_of(new.model), 0.5)
    assert float(merged["logit_scale"].exp()) == pytest.approx(16)


def test_ties_merges_what_agrees_in_sign() -> None:
    changes = [
        row(1, -2, 0.1, 0, 3),
        row(2, 1, -0.2, 0, -1),
        row(-0.5, -3, 0.3, 0, 0.2),
    ]
    sums = SignSums.none(changes[0])
    for change in changes:
        sums = sums.with_one_more(trimmed(change, 0.6))
    assert sums.merged()["w"].tolist() == pytest.approx([1.5, -2.5, 0.3, 0, 3])


def test_a_sum_of_nothing_takes_the_sign_of_the_majority() -> None:
    # The entry +1 -1 has no sign of its own; the others are positive, two to one.
    sums = SignSums.none(row(0, 0, 0, 0))
    for change in (row(1, 2, 3, -4), row(-1, 2, 3, -4)):
        sums = sums.with_one_more(change)
    assert sums.merged()["w"].tolist() == [1, 2, 3, -4]


def test_what_is_trimmed_are_the_smallest_of_the_whole_vector() -> None:
    kept = trimmed({"a": torch.tensor([5.0, -1.0]), "b": torch.tensor([[0.5, -7.0]])}, 0.5)
    assert kept["a"].tolist() == [5, 0]
    assert kept["b"].tolist() == [[0, -7]]


def random_weights(count: int) -> list[dict[str, Tensor]]:
    draw_from = torch.Generator().manual_seed(0)
    return [{"w": torch.randn(7, generator=draw_from)} for _ in range(count)]


def test_a_sum_of_changes_scaled_by_their_number_is_the_mean_model() -> None:
    base, *models = random_weights(5)
    summed = {"w": torch.stack([task_vector(base, model)["w"] for model in models]).sum(dim=0)}
    mean = torch.stack([model["w"] for model in models]).mean(dim=0)
    assert torch.allclose(added(base, summed, models[-1], 1 / len(models))["w"], mean, atol=1e-6)


def moved(encoder: Encoder, amount: float) -> None:
    """Stands for training: adds to every parameter."""
    put(encoder.model, {name: value + amount for name, value in values_of(encoder.model).items()})


def merge_line(name: str, steps: list[float], base: Encoder, **options: Any) -> tuple[Encoder, Strategy]:
    """Runs updates whose training is moving every parameter by a number, each with what the last one carried."""
    live, state, strategy = base.copy(), State(), make_strategy(name, **options)
    for number, step in enumerate(steps, start=1):
        strategy = make_strategy(name, **options)
        if state.facts:
            strategy.carry(state)
        candidate = live.copy()
        context = dataclasses.replace(context_for(candidate, toy_pairs(), anchor=base), update_number=number)
        strategy.before_update(context)
        moved(candidate, step)
        strategy.after_update(context, [])  # type: ignore[arg-type]
        live, state = candidate, dataclasses.replace(strategy.carried(), update=number)
    return live, strategy


def distance(one: Encoder, other: Encoder) -> float:
    """How far every parameter is from another encoder's, all by the same number."""
    now, then = values_of(one.model), values_of(other.model)
    differences = torch.cat([(now[name] - then[name]).flatten() for name in now])
    assert float(differences.std()) < 1e-5
    return float(differences.mean())


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        # theta: 3; (3 + 6) / 2 ... each from the base: 3, 6, 9, mean 6.
        ("base", 6.0),
        # from what was trained: 3, 9, 18; mean 10.
        ("trained", 10.0),
        # from the mean: 3; trained 9, mean 6; trained 15, mean 9.
        ("merged", 9.0),
    ],
)
def test_ema_with_weight_1_over_t_is_the_running_mean_of_what_was_trained(
    start: str, expected: float
) -> None:
    base = tiny_encoder()
    live, strategy = merge_line("ema-merge", [3.0, 6.0, 9.0], base, start=start)
    assert distance(live, base) == pytest.approx(expected, abs=1e-4)
    assert strategy.notes()[0] == "The mean of 3 updates is released."


def test_ema_with_a_weight_forgets_geometrically() -> None:
    base = tiny_encoder()
    live, _ = merge_line("ema-merge", [4.0, 4.0], base, weight=0.25, start="base")
    assert distance(live, base) == pytest.approx(0.75 * 1 + 0.25 * 4, abs=1e-4)


def test_ema_goes_on_from_the_live_encoder_when_another_strategy_taught_in_between() -> None:
    base = tiny_encoder()
    live, first = merge_line("ema-merge", [2.0], base, start="trained")
    moved(live, 100.0)
    second = make_strategy("ema-merge", start="trained")
    second.carry(dataclasses.replace(first.carried(), update=1))
    candidate = live.copy()
    second.before_update(
        dataclasses.replace(context_for(candidate, toy_pairs(), anchor=base), update_number=3)
    )
    assert distance(candidate, base) == pytest.approx(102, abs=1e-4)
    assert "Another strategy taught" in second.notes()[-1]


@pytest.mark.parametrize(("scale", "expected"), [(0.4, 0.4 * 8), (0.0, 4.0), (1.0, 8.0)])
def test_task_arithmetic_adds_a_share_of_every_change_to_the_base(scale: float, expected: float) -> None:
    base = tiny_encoder()
    live, _ = merge_line("task-arithmetic", [3.0, 5.0], base, scale=scale)
    assert distance(live, base) == pytest.approx(expected, abs=1e-4)


def test_ties_with_everything_kept_and_one_update_is_what_was_trained() -> None:
    base = tiny_encoder()
    live, _ = merge_line("ties", [-2.0], base, keep=1.0)
    assert distance(live, base) == pytest.approx(-2, abs=1e-4)


@pytest.mark.parametrize(("alpha", "reference", "expected"), [(0.5, "previous", 3.0), (0.5, "base", 2.5)])
def test_wise_ft_goes_half_way_from_the_last_encoder_or_from_the_base(
    alpha: float, reference: str, expected: float
) -> None:
    # previous: 1, then 1 + 4/2; base: 1, then (1 + 4)/2.
    base = tiny_encoder()
    live, strategy = merge_line("wise-ft", [2.0, 4.0], base, alpha=alpha, reference=reference)
    assert distance(live, base) == pytest.approx(expected, abs=1e-4)
    assert strategy.carried() == State()


def trained_by(name: str, encoder: Encoder, **options: Any) -> Strategy:
    """Runs one real update."""
    strategy = make_strategy(name, **options)
    teach(encoder, strategy, toy_pairs(), validation=toy_pairs())
    return strategy


def test_wise_ft_at_1_is_finetune_and_at_0_nothing_happened() -> None:
    whole, none, before, finetuned = (tiny_encoder() for _ in range(4))
    trained_by("wise-ft", whole, alpha=1.0)
    trained_by("wise-ft", none, alpha=0.0)
    trained_by("finetune", finetuned)
    assert_same_state(none.model.state_dict(), before.model.state_dict())
    assert_same_state(whole.model.state_dict(), finetuned.model.state_dict())


@pytest.mark.parametrize("name", MERGING)
def test_validation_sees_the_merged_weights_and_training_goes_on_from_its_own(name: str) -> None:
    encoder, strategy = without_blocks(), make_strategy(name)
    base = encoder.copy()
    context = context_for(encoder, toy_pairs(), anchor=base)
    data = data_for(strategy, context)
    strategy.before_update(context)
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    strategy.before_epoch(0, batches)
    moved(encoder, 0.01)
    encoder.train()
    trained = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    with strategy.deployed():
        encoder.train(False)
        deployed = {name: value.clone() for name, value in encoder.model.state_dict().items()}
    assert_same_state(encoder.model.state_dict(), trained)
    strategy.after_update(context, batches)
    assert_same_state(encoder.model.state_dict(), deployed)
    assert any(not torch.equal(deployed[name], trained[name]) for name in trained)


def test_running_statistics_are_counted_anew_and_not_averaged() -> None:
    encoder = without_blocks()
    context = context_for(encoder, toy_pairs())
    data = data_for(make_strategy("finetune"), context)
    batches = Batches(data.train, encoder, size=16, load_image=data.load_image)
    norm: nn.BatchNorm2d = encoder.model.visual.bn1  # type: ignore[union-attr, assignment]
    norm.running_mean.fill_(1e3)  # type: ignore[union-attr]
    count_statistics(encoder, batches, 0)
    with torch.no_grad():
        pictures = encoder.prepare_images([draw(pair.image_id) for pair in toy_pairs()])
        seen = encoder.model.visual.conv1(pictures)  # type: ignore[union-attr, operator]
    assert norm.running_mean is not None
    assert torch.allclose(norm.running_mean, seen.mean(dim=(0, 2, 3)), atol=1e-4)
    assert norm.momentum == pytest.approx(0.1)
    assert not norm.training


@pytest.mark.parametrize("name", ["ema-merge", "task-arithmetic", "ties"])
def test_what_is_carried_comes_back_from_the_disk_and_merges_alike(name: str, tmp_path: Path) -> None:
    options: Mapping[str, Any] = {"start": "trained"} if name == "ema-merge" else {}
    encoder = tiny_encoder()
    base = encoder.copy()
    first = trained_by(name, encoder, **options)
    write_version(tmp_path / "v", encoder, {}, {name: first.carried()})
    results = []
    for state in (first.carried(), load_state(tmp_path / "v", name)):
        assert state is not None
        second, live = make_strategy(name, **options), encoder.copy()
        second.carry(state)
        context = context_for(live, toy_pairs("en"), anchor=base)
        run_update(second, context, lambda frozen, second=second: data_for(second, frozen))  # type: ignore[misc]
        results.append(live.state() | {f"carried.{k}": v for k, v in second.carried().tensors.items()})
    assert_same_state(*results)


def test_going_back_to_a_base_leaves_what_it_lacks() -> None:
    ours, base = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
    bias = ours.bias.detach().clone()
    assert return_to(ours, base) == ["bias"]
    assert torch.equal(ours.weight, base.weight)
    assert torch.equal(ours.bias, bias)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("wise-ft", {"alpha": 1.5}, "alpha is at least 0 and at most 1"),
        ("wise-ft", {"reference": "first"}, "'previous' or 'base'"),
        ("ema-merge", {"weight": 2}, "weight is at least 0 and at most 1"),
        ("ema-merge", {"start": "last"}, "start is 'merged', 'trained' or 'base'"),
        ("task-arithmetic", {"scale": -1}, "scale is at least 0 and at most 2"),
        ("ties", {"keep": 0}, "keep is above 0"),
    ],
)
def test_unusable_options_are_refused(name: str, given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)
