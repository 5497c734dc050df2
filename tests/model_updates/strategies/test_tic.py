"""TiC's buffer: what it holds of each chunk, and what an update costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model_updates.errors import BadStrategyOption
from model_updates.pairs import TrainingPair
from model_updates.strategies.tic import Tic, TicOptions, quotas
from tests.model_updates.tiny import (
    DOMAIN,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


@pytest.mark.parametrize(
    ("buffer", "size", "chunks", "expected"),
    [
        ("equal", 12, 1, [12]),
        ("equal", 12, 3, [4, 4, 4]),
        ("equal", 13, 3, [5, 4, 4]),
        ("exp", 12, 1, [12]),
        ("exp", 12, 2, [6, 6]),
        ("exp", 12, 3, [3, 3, 6]),
        ("exp", 16, 4, [2, 2, 4, 8]),
        ("exp", 1, 3, [0, 0, 1]),
    ],
)
def test_parts_of_a_buffer_are_equal_or_halve_with_age(
    buffer: str, size: int, chunks: int, expected: list[int]
) -> None:
    assert quotas(buffer, size, chunks) == expected
    assert sum(expected) == size


def after_chunks(buffer: str, counts: list[int], size: int = 8) -> Tic:
    """A buffer that has seen chunks of so many pairs, each in a process of its own."""
    strategy = make_strategy("tic", buffer=buffer, memory_size=size)
    for number, count in enumerate(counts):
        pairs = [TrainingPair(f"{number}:{n}", str(n), "en", DOMAIN) for n in range(count)]
        earlier = strategy.carried()
        strategy = make_strategy("tic", buffer=buffer, memory_size=size)
        if earlier.facts:
            strategy.carry(earlier)
        strategy.after_update(context_for(tiny_encoder(), pairs), [])  # type: ignore[arg-type]
    assert isinstance(strategy, Tic)
    return strategy


@pytest.mark.parametrize(
    ("buffer", "counts", "expected"),
    [
        ("equal", [20, 20, 20], [3, 3, 2]),
        ("exp", [20, 20, 20], [2, 2, 4]),
        ("equal", [3, 20], [3, 4]),
        ("all", [20, 20], []),
    ],
)
def test_the_buffer_holds_its_part_of_each_chunk(buffer: str, counts: list[int], expected: list[int]) -> None:
    kept = after_chunks(buffer, counts).memory(context_for(tiny_encoder(), toy_pairs()))
    held = [sum(pair.image_id.startswith(f"{number}:") for pair in kept) for number in range(len(counts))]
    assert [count for count in held if count] == expected
    assert len(set(kept)) == len(kept) <= 8


def test_what_stays_of_an_old_chunk_was_there_before() -> None:
    before, after = (
        set(after_chunks("equal", counts).memory(context_for(tiny_encoder(), toy_pairs())))
        for counts in ([20, 20], [20, 20, 20])
    )
    old = {pair for pair in after if not pair.image_id.startswith("2:")}
    assert old <= before


def test_with_all_every_earlier_pair_is_learned_again_once() -> None:
    strategy = make_strategy("tic", buffer="all")
    context = replace(
        context_for(tiny_encoder(), toy_pairs()), open_earlier=lambda: [*toy_pairs("en"), *toy_pairs()]
    )
    assert list(strategy.memory(context)) == toy_pairs("en")


@pytest.mark.parametrize(
    ("options", "epochs"),
    [
        ({"fixed_compute": True}, 6),
        ({"fixed_compute": True, "replay": "beside"}, 6),
        ({"fixed_compute": False}, 12),
    ],
)
def test_a_longer_epoch_is_made_less_often(options: dict[str, bool], epochs: int) -> None:
    encoder, first = tiny_encoder(), make_strategy("tic", memory_size=16)
    teach(encoder, first, toy_pairs("en"))
    second = make_strategy("tic", epochs=12, memory_size=16, **options)
    second.carry(first.carried())
    context = context_for(encoder, toy_pairs())
    data = data_for(second, context)
    second.before_update(context)
    second.take(data)
    schedule = second.schedule(encoder)
    assert schedule.epochs == epochs
    assert (schedule.betas, schedule.eps, schedule.weight_decay) == ((0.9, 0.98), 1e-6, 0.2)


def test_an_unknown_buffer_is_refused() -> None:
    with pytest.raises(BadStrategyOption, match="'all', 'equal' or 'exp'"):
        TicOptions(buffer="half")
