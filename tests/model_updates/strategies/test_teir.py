"""TEIR: lambda by the updates a token was in, counted once each, across restarts too."""

from typing import Any

import numpy as np
import pytest
import torch

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.pairs import TrainingPair
from model_updates.parts.table_rows import start_new_rows
from model_updates.parts.teir import TeirOptions
from model_updates.strategies import STRATEGIES
from model_updates.strategies.teir import Teir
from model_updates.strategy import State, Strategy
from model_updates.towers import token_table
from model_updates.vocabulary import Growth
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def pairs(*texts: str, language: str = "xx") -> list[TrainingPair]:
    shapes = ("circle", "dot")
    return [TrainingPair(f"red {shape}", text, language, "drawn") for text in texts for shape in shapes]


def strategy(state: Teir | None = None, **options: object) -> Teir:
    made = Teir(TeirOptions(epochs=1, batch_size=4, vocabulary=513, **options))  # type: ignore[arg-type]
    if state is not None:
        made.carry(state.carried())
    return made


def row_of(encoder: Encoder, word: str) -> int:
    assert encoder.vocabulary is not None
    (row,) = encoder.vocabulary.encode([word])[0][1:-1]
    return row


def scale_in(
    encoder: Encoder, update: list[TrainingPair], before: Teir | None, word: str
) -> tuple[float, Teir]:
    """Runs one update in the encoder; returns the word's lambda in it, and the strategy with its state."""
    now = strategy(before)
    teach(encoder, now, update)
    return float(now.rows.lambdas[row_of(encoder, word)]), now


def test_a_base_token_in_updates_one_two_and_four_moves_by_a_half_a_third_nothing_and_a_quarter() -> None:
    encoder, state, seen = tiny_encoder(), None, []
    for texts in (["x y"], ["x"], ["y"], ["x"]):
        scale, state = scale_in(encoder, pairs(*texts), state, "x")
        seen.append(scale)
    assert seen == pytest.approx([1 / 2, 1 / 3, 0, 1 / 4])


def test_a_new_token_moves_fully_then_by_a_half() -> None:
    encoder = tiny_encoder()
    first = strategy()
    teach(encoder, first, pairs("y"))
    second = Teir(TeirOptions(epochs=1, batch_size=4, vocabulary=600))
    second.carry(first.carried())
    teach(encoder, second, pairs("qvqv qvqv"))
    row = row_of(encoder, "qvqv")
    assert float(second.rows.lambdas[row]) == 1
    third = strategy(second)
    teach(encoder, third, pairs("qvqv"))
    assert float(third.rows.lambdas[row]) == pytest.approx(1 / 2)
    assert int(third.rows.counts[row]) == 2


def test_start_and_end_never_move() -> None:
    encoder = tiny_encoder()
    table = token_table(encoder.model)
    assert table is not None
    before = table.detach()[:3].clone()
    teach(encoder, strategy(), pairs("x y"))
    after = token_table(encoder.model)
    assert after is not None
    assert torch.equal(after.detach()[:3], before)


@pytest.mark.parametrize("apply_to", ["grad", "update"])
def test_rows_of_absent_tokens_stay_bit_identical(apply_to: str) -> None:
    encoder = tiny_encoder()
    before = token_table(encoder.model)
    assert before is not None
    old = before.detach().clone()
    used = strategy(apply_to=apply_to)
    teach(encoder, used, toy_pairs())
    after = token_table(encoder.model)
    assert after is not None
    still = used.rows.lambdas[: len(old)] == 0
    assert torch.equal(after.detach()[: len(old)][still], old[still])
    moved = (after.detach()[: len(old)][~still] != old[~still]).any(dim=1)
    assert moved.all()


def test_an_occurrence_counts_once_however_often_a_text_says_it() -> None:
    encoder, used = tiny_encoder(), strategy()
    teach(encoder, used, pairs("x x x", "x x"))
    assert int(used.rows.counts[row_of(encoder, "x")]) == 2  # the base vocabulary's one, and this update's


def test_the_counts_alone_are_carried_and_the_temperature_is_progress() -> None:
    encoder, used = tiny_encoder(), strategy()
    assert used.progress() == {}
    used.before_update(context_for(encoder, pairs("x")))
    assert set(used.progress()) == {"log_scale"}
    teach(tiny_encoder(), used, toy_pairs())
    assert (set(used.carried().tensors), used.progress()) == ({"counts"}, {})


def test_what_is_carried_inside_an_update_does_not_hold_the_update_yet() -> None:
    encoder, used = tiny_encoder(), strategy()
    used.before_update(context_for(encoder, pairs("x")))
    assert int(used.carried().tensors["counts"][row_of(encoder, "x")]) == 1


def test_rows_that_another_strategy_added_in_between_are_new_to_teir() -> None:
    encoder, first = tiny_encoder(), strategy()
    teach(encoder, first, pairs("x"))
    assert encoder.vocabulary is not None
    encoder.vocabulary.grow_shared([("j", "j</w>")])
    second = strategy(first)
    teach(encoder, second, pairs("jj"))
    assert float(second.rows.lambdas[row_of(encoder, "jj")]) == 1


def test_parts_can_be_switched_off() -> None:
    encoder, used = tiny_encoder(), strategy(scale_gradient=False, scale_decay=False)
    teach(encoder, used, pairs("x"))
    gradient, decay = used.rows.scales(len(used.rows.counts))
    assert gradient.eq(1).all()
    assert decay.eq(1).all()


def composed(name: str, earlier: Strategy | None = None, **options: object) -> Any:
    made = make_strategy(name, **options)
    if earlier is not None:
        made.carry(earlier.carried())
    return made


def test_the_state_of_both_is_kept_apart_and_comes_back() -> None:
    encoder, first = tiny_encoder(), composed("teir+oewc")
    teach(encoder, first, toy_pairs())
    assert set(first.carried().tensors) == {"counts", "host.fisher"}
    second = composed("teir+oewc", first)
    assert_same_state(second.carried().tensors, first.carried().tensors)
    alone = make_strategy("oewc")
    teach(tiny_encoder(), alone, toy_pairs())
    assert set(alone.carried().tensors) == {"fisher"}


def test_counts_of_versions_made_before_are_read() -> None:
    used = strategy()
    used.carry(State({"counts": torch.arange(5)}))
    assert used.rows.counts.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["teir+er", "teir+der"])
def test_rows_of_replayed_pairs_may_move_but_do_not_count(name: str) -> None:
    encoder, first = tiny_encoder(), composed(name, memory_size=50)
    teach(encoder, first, pairs("x"))
    row = row_of(encoder, "x")
    assert int(first.beside.counts[row]) == 2
    second = composed(name, first, memory_size=50)
    report = teach(encoder, second, pairs("y"))
    assert float(second.beside.lambdas[row]) == pytest.approx(1 / 3)
    assert int(second.beside.counts[row]) == 2
    assert any("for replayed pairs alone" in note for note in report.notes)


def test_the_options_of_both_are_options_of_the_composed() -> None:
    given = {"memory_size": "7", "apply_to": "update", "initialise": "no", "vocabulary": 600}
    options = options_of(STRATEGIES["teir+der"], given)
    assert (options.memory_size, options.apply_to, options.initialise, options.vocabulary) == (
        7,
        "update",
        False,
        600,
    )
    for wrong in ({"memory_size": 0}, {"apply_to": "both"}, {"vocabulary": 3}):
        with pytest.raises(BadStrategyOption):
            options_of(STRATEGIES["teir+der"], wrong)


def test_new_rows_are_drawn_like_the_trained_table() -> None:
    table = torch.randn(400, 32, generator=torch.Generator().manual_seed(1)) * 0.3 + 0.05
    mean, std = strategy().rows.first_values(table)
    assert (mean, std) == pytest.approx((float(table.mean()), float(table.std())), rel=1e-5)
    parameter = torch.nn.Parameter(torch.zeros(600, 32))
    growth = Growth(np.arange(600), np.full(600, -1))
    start_new_rows(parameter, growth, mean=mean, std=std, generator=torch.Generator().manual_seed(2))
    drawn, entries = parameter.detach(), parameter.numel()
    assert float(drawn.mean()) == pytest.approx(mean, abs=3 * std / entries**0.5)
    assert float(drawn.std()) == pytest.approx(std, abs=3 * std / (2 * entries) ** 0.5)
    assert strategy(initialise=False).rows.first_values(table) == (0.0, 0.02)
