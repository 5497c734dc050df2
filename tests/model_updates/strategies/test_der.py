"""DER: what it stores, what it replays, and what that costs."""

from dataclasses import replace

import pytest
import torch

from model_updates.batches import Batches
from model_updates.errors import BadStrategyOption
from model_updates.pairs import TrainingPair
from model_updates.strategies.der import Der
from tests.model_updates.tiny import context_for, data_for, make_strategy, teach, tiny_encoder, toy_pairs

MEMORY = 6


def der(earlier: Der | None = None, **options: object) -> Der:
    made = make_strategy("der", memory_size=MEMORY, **options)
    assert isinstance(made, Der)
    if earlier is not None:
        made.carry(earlier.carried())
    return made


def test_a_stored_feature_is_the_one_before_the_step_that_inserts_its_pair() -> None:
    encoder, strategy = tiny_encoder(), der()
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    batch = next(iter(Batches(data.train, encoder, size=MEMORY, load_image=None).epoch(0)))
    before = encoder.forward_tokens(batch.tokens, batch.languages).detach()
    strategy.terms(batch)
    with torch.no_grad():
        encoder.model.get_parameter("token_embedding.weight").add_(0.1)
    assert strategy.progress()["reservoir"].tolist() == [MEMORY, *batch.row.tolist()]
    assert torch.allclose(strategy.progress()["features"][:MEMORY], before, atol=1e-6)


def test_replay_costs_nothing_on_features_that_have_not_moved_and_something_on_those_that_have() -> None:
    encoder, first = tiny_encoder(), der()
    teach(encoder, first, toy_pairs())
    strategy = der(first)
    context = context_for(encoder, toy_pairs("en")[:8])
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    kept = [pair.text for pair in data.memory.pairs]
    assert len(kept) == MEMORY
    batches = Batches(
        data.train, encoder, size=8, load_image=None, memory=data.memory, replay=strategy.replay
    )
    batch = next(iter(batches.epoch(0)))
    now = encoder.forward_tokens(batch.tokens, batch.languages).detach()
    for position in batch.replayed.nonzero()[:, 0].tolist():
        strategy._stored[int(batch.row[position]) - 8] = now[position]
    assert float(strategy.terms(batch)["replay"].detach()) < 1e-12
    with torch.no_grad():
        encoder.model.get_parameter("token_embedding.weight").mul_(1.2)
    assert float(strategy.terms(batch)["replay"].detach()) > 1e-6


def test_each_pair_is_offered_once_an_epoch_and_the_count_goes_on_over_updates() -> None:
    encoder, first = tiny_encoder(), der()
    report = teach(encoder, first, toy_pairs())
    assert report.notes[-1] == f"{MEMORY} pairs are kept for replay, of 32 offered."
    second = der(first)
    teach(encoder, second, toy_pairs("en"))
    assert second.carried().facts["seen"] == 64


def test_what_is_kept_comes_from_the_pairs_and_is_replayed_with_its_own_language() -> None:
    encoder, first = tiny_encoder(), der()
    teach(encoder, first, toy_pairs())
    pairs = [TrainingPair(**pair) for pair in first.carried().facts["pairs"]]
    assert set(pairs) <= set(toy_pairs())
    assert list(der(first).memory(context_for(encoder, toy_pairs("en")))) == pairs


@pytest.mark.parametrize("features", ["end", "insertion"])
def test_stored_features_are_those_of_the_end_of_the_update_or_of_the_step_that_took_them_in(
    features: str,
) -> None:
    encoder, strategy = tiny_encoder(), der(features=features)
    teach(encoder, strategy, toy_pairs())
    kept = [TrainingPair(**pair) for pair in strategy.carried().facts["pairs"]]
    now = torch.cat([torch.from_numpy(encoder.text_features([pair.text], pair.language)) for pair in kept])
    moved = float((strategy.carried().tensors["features"] - now).norm())
    assert (moved < 1e-4) == (features == "end")


def test_a_first_update_holds_what_others_taught_before_where_it_is() -> None:
    encoder, strategy = tiny_encoder(), der()
    english = toy_pairs("en")
    before = [torch.from_numpy(encoder.text_features([pair.text], "en"))[0] for pair in english]
    context = replace(context_for(encoder, toy_pairs("de")), open_earlier=lambda: english)
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    assert len(data.memory.pairs) == MEMORY
    for pair, stored in zip(data.memory.pairs, strategy._stored, strict=True):
        assert torch.allclose(stored, before[english.index(pair)], atol=1e-5)


def test_features_are_of_the_end_or_of_the_insertion() -> None:
    with pytest.raises(BadStrategyOption, match="'end' or 'insertion'"):
        der(features="middle")
