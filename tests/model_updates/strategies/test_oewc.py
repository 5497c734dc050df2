"""oEWC: what a move costs, how importance adds up, and whose gradient is squared."""

import pytest
import torch
from torch import Tensor

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.strategies.oewc import Oewc, OewcOptions, mean_of_squared_sample_gradients
from model_updates.towers import token_table
from tests.model_updates.tiny import context_for, data_for, make_strategy, teach, tiny_encoder, toy_pairs


def oewc(earlier: Oewc | None = None, **options: object) -> Oewc:
    made = make_strategy("oewc", **options)
    assert isinstance(made, Oewc)
    if earlier is not None:
        made.carry(earlier.carried())
    return made


def table_of(encoder: Encoder) -> Tensor:
    table = token_table(encoder.model)
    assert table is not None
    return table


def test_moving_an_entry_of_importance_2_by_a_half_costs_500() -> None:
    encoder, first = tiny_encoder(), oewc()
    teach(encoder, first)
    strategy = oewc(first)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    batch = next(iter(Batches(data.train, encoder, size=8, load_image=None).epoch(0)))
    strategy._importance["table"].zero_()[7, 3] = 2.0
    assert float(strategy.terms(batch)["consolidation"].detach()) == 0
    with torch.no_grad():
        table_of(encoder)[7, 3] += 0.5
    assert float(strategy.terms(batch)["consolidation"].detach()) == pytest.approx(500, rel=1e-5)


def test_an_unchanged_table_pays_nothing_and_is_pulled_nowhere() -> None:
    encoder, first = tiny_encoder(), oewc()
    teach(encoder, first)
    strategy = oewc(first, cross_modal=1e-9, cross_lingual=0.0)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    batch = next(iter(Batches(data.train, encoder, size=8, load_image=None).epoch(0)))
    penalty = strategy.terms(batch)["consolidation"]
    (gradient,) = torch.autograd.grad(penalty, table_of(encoder))
    assert float(penalty.detach()) == 0
    assert not gradient.any()


def test_importance_adds_up_and_rows_that_are_new_begin_at_nothing() -> None:
    fishers = {}
    for gamma in (0.0, 1.0):
        encoder, first = tiny_encoder(), oewc()
        teach(encoder, first, toy_pairs("en"))
        before = first.carried().tensors["fisher"]
        second = oewc(first, gamma=gamma)
        teach(encoder, second, toy_pairs())
        fishers[gamma] = second.carried().tensors["fisher"]
    assert len(fishers[1.0]) > len(before)
    assert torch.allclose((fishers[1.0] - fishers[0.0])[: len(before)], before, atol=1e-7)
    assert torch.equal(fishers[1.0][len(before) :], fishers[0.0][len(before) :])


def test_a_texts_own_gradient_is_squared_alone() -> None:
    encoder, strategy = tiny_encoder(), oewc(cross_modal=0.0)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    table, width = table_of(encoder), 8
    batches = list(Batches(data.train, encoder, size=width, load_image=None).epoch(0))

    def loss(rows: list[int], number: int) -> Tensor:
        chosen = batches[number].select(rows)
        assert chosen.has_english is not None
        return strategy.cross_lingual(strategy.text_features(chosen), chosen, chosen.has_english)

    one_by_one = [
        torch.autograd.grad(loss([row], number), table)[0].square()
        for number in range(len(batches))
        for row in range(width)
    ]
    expected = torch.stack(one_by_one).mean(dim=0)
    together = mean_of_squared_sample_gradients(
        table, encoder.model, ((loss(list(range(width)), n), width) for n in range(len(batches)))
    )
    assert expected.any()
    assert torch.allclose(together, expected, rtol=1e-4, atol=1e-9)


def test_the_batch_square_is_smaller_than_the_texts_own() -> None:
    sums = []
    for mode in ("batch", "sample"):
        encoder, strategy = tiny_encoder(), oewc(fisher_mode=mode)
        teach(encoder, strategy)
        sums.append(float(strategy.carried().tensors["fisher"].sum()))
    assert 0 < sums[0] < sums[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"strength": -1.0}, "strength is not negative"),
        ({"gamma": 1.5}, "gamma is at least 0 and at most 1"),
        ({"fisher_mode": "row"}, "'batch' or 'sample'"),
    ],
)
def test_unusable_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        OewcOptions(**given)  # type: ignore[arg-type]
