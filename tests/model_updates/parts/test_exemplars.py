"""Exemplars: which pairs are taken, how much room a chunk has, and what comes back."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from model_updates.pairs import TrainingPair
from model_updates.parts.exemplars import (
    herding_order,
    kmeans_order,
    pair_features,
    proportional,
)
from model_updates.strategies import STRATEGIES
from tests.model_updates.tiny import (
    DOMAIN,
    context_for,
    draw,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

EXEMPLARS = ("mof", "kmeans", "icarl")


def at_degrees(*angles: float) -> Tensor:
    """Unit vectors in the plane."""
    return torch.tensor([[math.cos(math.radians(a)), math.sin(math.radians(a))] for a in angles])


def test_herding_of_unit_vectors_at_0_60_and_90_degrees() -> None:
    assert herding_order(at_degrees(0, 60, 90), 3) == [1, 0, 2]
    assert herding_order(at_degrees(0, 60, 90), 2) == [1, 0]


def test_the_first_of_a_herd_are_a_smaller_herd() -> None:
    rows = torch.nn.functional.normalize(
        torch.randn(40, 6, generator=torch.Generator().manual_seed(0)), dim=1
    )
    assert herding_order(rows, 12)[:5] == herding_order(rows, 5)


def test_the_mean_of_a_herd_is_nearer_to_the_mean_of_all_than_that_of_random_ones() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(200, 8, generator=generator) + 0.5, dim=1)

    def strayed(places: list[int]) -> float:
        return float((rows[places].mean(dim=0) - rows.mean(dim=0)).norm())

    random = [strayed(torch.randperm(200, generator=generator)[:10].tolist()) for _ in range(50)]
    assert strayed(herding_order(rows, 10)) < min(random)


@pytest.mark.parametrize("order", [herding_order, lambda rows, count: kmeans_order(rows, count, 0)])
def test_no_pair_is_taken_twice_and_all_can_be_taken(order: Any) -> None:
    rows = at_degrees(0, 0, 0, 90, 90, 45)
    for count in range(7):
        taken = order(rows, count)
        assert len(taken) == len(set(taken)) == count


def test_of_three_clusters_each_gives_its_middle_and_the_largest_comes_first() -> None:
    rows = at_degrees(0, 1, 2, 3, 4, 100, 101, 102, 200)
    for seed in range(20):
        taken = kmeans_order(rows, 3, seed)
        if taken == [2, 6, 8]:
            return
    pytest.fail("no start finds three clusters that are far apart")


@pytest.mark.parametrize(
    ("counts", "size", "expected"),
    [
        ([100, 100], 20, [10, 10]),
        ([300, 100], 20, [15, 5]),
        ([10, 10, 10], 10, [4, 3, 3]),
        ([1, 99], 10, [0, 10]),
        ([3, 2], 10, [3, 2]),
        ([7], 4, [4]),
    ],
)
def test_chunks_have_room_by_their_size(counts: list[int], size: int, expected: list[int]) -> None:
    parts = proportional(counts, size)
    assert parts == expected
    assert sum(parts) == min(size, sum(counts))


def test_a_pair_stands_where_picture_and_text_do_together() -> None:
    encoder = tiny_encoder()
    pairs = [*toy_pairs("en")[:3], *toy_pairs()[2:5]]
    rows = pair_features(encoder, pairs, draw)
    for row, pair in zip(rows, pairs, strict=True):
        image = encoder.encode_images([draw(pair.image_id)], DOMAIN)[0]
        text = encoder.encode_texts([pair.text], pair.language)[0]
        expected = (image + text) / np.linalg.norm(image + text)
        assert np.allclose(row.numpy(), expected, atol=1e-5)


def after(name: str, chunks: list[list[TrainingPair]], size: int) -> Any:
    """What a strategy keeps after several updates, each in a process of its own."""
    encoder, strategy = tiny_encoder(), make_strategy(name, memory_size=size, epochs=1)
    for chunk in chunks:
        carried = strategy.carried()
        strategy = make_strategy(name, memory_size=size, epochs=1)
        if carried.facts:
            strategy.carry(carried)
        teach(encoder, strategy, chunk)
    return strategy


@pytest.mark.parametrize("name", EXEMPLARS)
def test_a_chunk_is_cut_from_the_end_of_its_order(name: str) -> None:
    first, second = toy_pairs("en"), toy_pairs()
    alone = list(after(name, [first], 8).kept.kept)
    both = list(after(name, [first, second], 8).kept.kept)
    assert len(alone) == 8
    assert set(alone) <= set(first)
    assert both[:4] == alone[:4]
    assert set(both[4:]) <= set(second)
    assert len(both) == 8


@pytest.mark.parametrize("name", EXEMPLARS)
def test_the_exemplars_are_those_of_the_encoder_that_the_update_left(name: str) -> None:
    encoder = tiny_encoder()
    strategy: Any = make_strategy(name, memory_size=5)
    teach(encoder, strategy, toy_pairs())
    rows = pair_features(encoder, toy_pairs(), draw)
    order = {"mof": herding_order, "icarl": herding_order, "kmeans": kmeans_order}[name]
    assert list(strategy.kept.kept) == [toy_pairs()[n] for n in order(rows, 5, 3)]


def test_chunks_that_others_taught_before_have_their_part_too() -> None:
    strategy = make_strategy("mof", memory_size=6)
    context = dataclasses.replace(
        context_for(tiny_encoder(), toy_pairs()), open_earlier=lambda: toy_pairs("en"), load_image=draw
    )
    kept = strategy.memory(context)
    assert len(kept) == 6
    assert set(kept) <= set(toy_pairs("en"))
    assert list(strategy.memory(context)) == list(kept), "asked twice, the same"


def test_icarl_holds_every_feature_to_what_it_was() -> None:
    report = teach(tiny_encoder(), make_strategy("icarl"))
    assert set(report.history[0]) == {"contrastive", "distillation"}
    report = teach(tiny_encoder(), make_strategy("icarl", from_scratch=True))
    assert set(report.history[0]) == {"contrastive"}


def test_they_are_registered_as_memories() -> None:
    assert {STRATEGIES[name].family.name for name in EXEMPLARS} == {"MEMORY"}
