"""ACIL and RanPAC: one head for all pictures, as if every chunk had come at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.features import NoCache
from model_updates.pairs import TrainingPair
from model_updates.parts.random_head import OneHead
from model_updates.parts.ridge import Fit, Sums
from model_updates.strategies.acil import Acil, recursion
from model_updates.strategies.ranpac import missed, solved
from model_updates.strategy import State
from model_updates.trainer import run_update
from tests.model_updates.domains import NEW_IDS, known_pairs, new_pairs
from tests.model_updates.tiny import context_for, draw, make_strategy, tiny_encoder

both = pytest.mark.parametrize("name", ["acil", "ranpac"])


def taught(name: str, *chunks: Sequence[TrainingPair]) -> tuple[Encoder, State]:
    """A tiny encoder that learned chunks one after another, each beside nothing but what was carried."""
    encoder, state = tiny_encoder(), State()
    for chunk in chunks:
        strategy = make_strategy(name, base_pairs=0)
        strategy.carry(state)
        context = replace(
            context_for(encoder, chunk, languages=frozenset({"en"})), load_image=draw, open_known=known_pairs
        )

        def gathered(frozen: object, strategy: object = strategy, chunk: object = chunk) -> object:
            return gather(chunk, (), strategy=strategy, context=frozen, load_image=draw, cache=NoCache())  # type: ignore[arg-type]

        run_update(strategy, context, gathered)  # type: ignore[arg-type]
        state = strategy.carried()
    return encoder, state


def vectors(encoder: Encoder) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return encoder.encode_images([draw(image_id) for image_id in NEW_IDS])


@both
def test_what_a_card_sees_in_half_precision_meets_the_head_in_full(name: str) -> None:
    encoder, _ = taught(name, new_pairs())
    trunk = torch.randn(3, encoder.trunk_dim)

    found = encoder.project(trunk.bfloat16())

    assert found.dtype == torch.float32
    assert torch.allclose(found, encoder.project(trunk), rtol=0.05, atol=0.05)


@both
def test_neither_the_order_of_chunks_nor_how_they_are_cut_matters(name: str) -> None:
    first, second, third = new_pairs()[:3], new_pairs()[3:5], new_pairs()[5:]

    at_once = vectors(taught(name, new_pairs())[0])

    assert np.allclose(vectors(taught(name, first, second, third)[0]), at_once, atol=1e-5)
    assert np.allclose(vectors(taught(name, third, first, second)[0]), at_once, atol=1e-5)
    assert not np.allclose(vectors(taught(name, first)[0]), at_once, atol=1e-3)


@both
def test_what_the_encoder_knows_is_learned_with_the_first_chunk_alone(name: str) -> None:
    strategy = make_strategy(name)
    context = replace(context_for(tiny_encoder(), new_pairs()), open_known=known_pairs)

    assert list(strategy.memory(context)) == known_pairs()
    strategy.carry(taught(name, new_pairs())[1])
    assert list(strategy.memory(context)) == []
    assert isinstance(strategy, OneHead)


def test_the_recursion_gives_what_least_squares_gives_for_all_rows_at_once() -> None:
    generator = torch.Generator().manual_seed(0)
    rows, targets = (torch.randn(600, width, generator=generator).double() for width in (7, 3))
    inverse, weight = recursion(torch.eye(7).double() / 5.0, torch.zeros(7, 3).double(), rows, targets)

    gram = rows.T @ rows + 5.0 * torch.eye(7).double()
    assert torch.allclose(weight, torch.linalg.solve(gram, rows.T @ targets))
    assert torch.allclose(inverse, torch.linalg.inv(gram))
    assert Acil.Options().strength == 1000.0


def test_the_strength_is_the_one_that_errs_least_on_pictures_apart() -> None:
    generator = torch.Generator().manual_seed(1)
    features, truth = torch.randn(400, 40, generator=generator), torch.randn(40, 2, generator=generator)
    noise = torch.randn(400, 2, generator=generator)

    def fitted(targets: torch.Tensor) -> torch.Tensor:
        halves = (
            Sums.of(features[half], targets[half], torch.arange(200))
            for half in (slice(200), slice(200, 400))
        )
        return solved(*halves).weight

    # What features foretell exactly is held back by nothing much, and noise by so much that next to nothing is said.
    assert torch.allclose(fitted(features @ truth), truth, atol=0.05)
    assert fitted(noise).abs().max() < 0.05


def test_the_error_from_sums_is_the_error_over_the_pairs() -> None:
    generator = torch.Generator().manual_seed(2)
    features, targets = (torch.randn(30, width, generator=generator) for width in (5, 2))
    fit = Fit(torch.randn(5, 2, generator=generator), torch.randn(2, generator=generator))

    squared = (features @ fit.weight + fit.bias - targets).square().sum()
    assert missed(fit, Sums.of(features, targets, torch.arange(30))) == pytest.approx(
        float(squared), rel=1e-5
    )
