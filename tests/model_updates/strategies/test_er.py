"""ER: what is replayed, and what holds it."""

from dataclasses import replace

import pytest
import torch

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.strategies.er import Er
from tests.model_updates.tiny import context_for, data_for, make_strategy, teach, tiny_encoder, toy_pairs

MEMORY = 6


def er(earlier: Er | None = None, **options: object) -> Er:
    made = make_strategy("er", memory_size=MEMORY, **options)
    assert isinstance(made, Er)
    if earlier is not None:
        made.carry(earlier.carried())
    return made


def second_update(**options: object) -> tuple[Encoder, Er, Batch]:
    """A strategy with pairs in its memory, and the first batch of its second update."""
    encoder, first = tiny_encoder(), er()
    teach(encoder, first, toy_pairs())
    strategy = er(first, **options)
    context = context_for(encoder, toy_pairs("en")[:8])
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    batches = Batches(
        data.train, encoder, size=8, load_image=None, memory=data.memory, replay=strategy.replay
    )
    return encoder, strategy, next(iter(batches.epoch(0)))


def test_what_is_replayed_is_held_at_its_english_captions() -> None:
    encoder, strategy, batch = second_update()
    assert int(batch.replayed.sum()) == MEMORY
    text = encoder.forward_tokens(batch.tokens, batch.languages).detach()
    there = replace(batch, english_features=text)
    assert float(strategy.terms(there)["replay"].detach()) == 0
    away = replace(batch, english_features=text + 0.5)
    assert float(strategy.terms(away)["replay"].detach()) == pytest.approx(0.25, rel=1e-4)


def test_a_kept_pair_without_english_is_held_nowhere() -> None:
    _, strategy, batch = second_update()
    without = replace(batch, has_english=torch.zeros(len(batch.row), dtype=torch.bool))
    assert float(strategy.terms(without)["replay"].detach()) == 0


def test_the_memory_joins_the_contrastive_term_unless_it_is_told_not_to() -> None:
    encoder, joined, batch = second_update()
    alone = second_update(replay_in_contrastive=False)[1]
    current = [n for n, replayed in enumerate(batch.replayed.tolist()) if not replayed]
    text = encoder.forward_tokens(batch.tokens, batch.languages)
    expected = joined.cross_modal(text[current], batch.select(current))
    assert float(alone.terms(batch)["cross-modal"].detach()) == pytest.approx(float(expected.detach()))
    assert float(joined.terms(batch)["cross-modal"].detach()) != pytest.approx(float(expected.detach()))


def test_pairs_and_count_go_on_over_updates() -> None:
    encoder, first = tiny_encoder(), er()
    teach(encoder, first, toy_pairs())
    pairs = [TrainingPair(**pair) for pair in first.carried().facts["pairs"]]
    assert (len(pairs), set(pairs) <= set(toy_pairs())) == (MEMORY, True)
    second = er(first)
    report = teach(encoder, second, toy_pairs("en"))
    assert report.notes[-1] == f"{MEMORY} pairs are kept for replay, of 64 offered."
