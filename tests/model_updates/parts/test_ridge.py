"""Ridge regression from sums: any order, any withdrawal, and what it shows of pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from model_updates.inserts import domain
from model_updates.parts import ridge
from model_updates.parts.ridge import Captioned, Sums, products, standard
from model_updates.parts.ridge_head import NOISES, RidgeHead, among_captions, best_noise, whitening
from tests.model_updates.tiny import tiny_encoder

FEATURES, WIDTHS = 24, (6, 5)


def drawn(seed: int, pictures: int = 9, captions: int = 14) -> tuple[Tensor, Tensor, Tensor]:
    """Features of pictures, targets, and the picture of each target."""
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(pictures, FEATURES, generator=generator)
    picture = torch.cat(
        [torch.arange(pictures), torch.randint(pictures, (captions - pictures,), generator=generator)]
    )
    targets = functional.normalize(torch.randn(captions, sum(WIDTHS), generator=generator) + 1, dim=-1)
    return features, targets, picture


def sums(seed: int) -> Sums:
    return Sums.of(*drawn(seed))


def added(parts: Sequence[Sums]) -> Sums:
    total = Sums.none(FEATURES, sum(WIDTHS))
    for part in parts:
        total += part
    return total


def assert_fits_alike(ours: Sums, theirs: Sums) -> None:
    for strength in (0.5, 30.0):
        one, other = ours.solved(strength), theirs.solved(strength)
        assert torch.allclose(one.weight, other.weight, atol=1e-5)
        assert torch.allclose(one.bias, other.bias, atol=1e-5)


def together(seeds: Sequence[int]) -> Sums:
    """The sums of all pairs of some chunks, taken at once."""
    features, targets, pictures, seen = [], [], [], 0
    for seed in seeds:
        a, y, picture = drawn(seed)
        features.append(a)
        targets.append(y)
        pictures.append(picture + seen)
        seen += len(a)
    return Sums.of(torch.cat(features), torch.cat(targets), torch.cat(pictures))


def test_products_of_several_blocks_are_those_of_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ridge, "ROWS", 7)
    generator = torch.Generator().manual_seed(0)
    for rows in (0, 6, 7, 50):
        a, b = torch.randn(rows, 5, generator=generator), torch.randn(rows, 3, generator=generator)
        found = products(a, b)
        assert found.dtype == torch.float64
        assert torch.allclose(found, a.double().T @ b.double(), atol=1e-5)


@settings(deadline=None, max_examples=40)
@given(order=st.permutations(range(5)), withdrawn=st.sets(st.integers(0, 4), max_size=4))
def test_any_order_and_any_withdrawal_give_what_the_rest_gives_at_once(
    order: list[int], withdrawn: set[int]
) -> None:
    left = [seed for seed in range(5) if seed not in withdrawn]

    taken_away = added([sums(seed) for seed in order])
    for seed in withdrawn:
        taken_away -= sums(seed)

    assert_fits_alike(taken_away, together(left))
    assert torch.allclose(taken_away.spread, together(left).spread)


def test_it_is_ridge_regression() -> None:
    features, targets, picture = drawn(0)
    rows, strength = features.double()[picture], 3.0
    centred = rows - rows.mean(dim=0)
    # The same as least squares with a row of sqrt(strength) for each coefficient.
    held = torch.cat([centred, strength**0.5 * torch.eye(FEATURES, dtype=torch.float64)])
    wanted = torch.cat(
        [targets.double() - targets.double().mean(dim=0), torch.zeros(FEATURES, targets.shape[1])]
    )
    expected = np.linalg.lstsq(held.numpy(), wanted.numpy(), rcond=None)[0]

    fit = Sums.of(features, targets, picture).solved(strength)

    assert np.allclose(fit.weight.numpy(), expected, atol=1e-5)
    assert torch.allclose(rows.float().mean(dim=0) @ fit.weight + fit.bias, targets.mean(dim=0), atol=1e-5)


def test_one_decomposition_serves_all_strengths() -> None:
    for one, strength in zip(sums(1).solved_for([0.1, 2.0, 40.0]), [0.1, 2.0, 40.0], strict=True):
        assert torch.allclose(one.weight, sums(1).solved(strength).weight, atol=1e-5)


def test_mapped_targets_are_those_of_mapped_pairs() -> None:
    features, targets, picture = drawn(2)
    by = torch.randn(sum(WIDTHS), 4, generator=torch.Generator().manual_seed(3)).double()
    mapped = (targets.double() - targets.double().mean(dim=0)) @ by

    ours, theirs = Sums.of(features, targets, picture).mapped(by), Sums.of(features, mapped, picture)

    assert_fits_alike(ours, theirs)
    assert torch.allclose(ours.spread, theirs.spread, atol=1e-5)


def test_whitened_captions_differ_alike_in_every_direction() -> None:
    generator = torch.Generator().manual_seed(4)
    captions = torch.randn(4000, 6, generator=generator) * torch.tensor([9.0, 5, 3, 2, 1, 0.5]) + 7
    own = Sums.of(torch.zeros(4000, 1), captions, torch.arange(4000))

    def spreads(least: float) -> float:
        white = (captions.double() - captions.double().mean(dim=0)) @ whitening(own, least)
        values = torch.linalg.eigvalsh(torch.cov(white.T))
        return float(values[-1] / values[0])

    assert spreads(0.0) < spreads(1.0) < spreads(1e6)
    assert abs(spreads(1e6) / (9 / 0.5) ** 2 - 1) < 0.2


def test_pictures_have_as_much_of_what_captions_have_in_common_as_captions() -> None:
    centre = torch.tensor([0.3, -0.2, 0.0, 0.1])
    rows = among_captions(torch.randn(20, 4, generator=torch.Generator().manual_seed(5)), centre)

    assert torch.allclose(rows.norm(dim=-1), torch.ones(20), atol=1e-6)
    assert torch.allclose(rows @ centre, centre.square().sum().expand(20), atol=1e-6)
    nothing = among_captions(torch.eye(4), torch.zeros(4))
    assert torch.allclose(nothing, torch.eye(4))


def head(seeds: Sequence[int]) -> RidgeHead:
    config = {"trunk": FEATURES, "widths": list(WIDTHS), "shares": [1.0, 0.5]}
    made = RidgeHead.build(domain("photographs"), config, tiny_encoder().model)
    made.fit([_one_space(seeds, place) for place in range(2)])
    return made


def _one_space(seeds: Sequence[int], place: int) -> Captioned:
    parts = [drawn(seed) for seed in seeds]
    starts = np.cumsum([0, *(len(features) for features, _, _ in parts)])
    return Captioned(
        torch.cat([standard(features) for features, _, _ in parts]),
        torch.cat(
            [
                functional.normalize(torch.split(targets, list(WIDTHS), dim=-1)[place], dim=-1)
                for _, targets, _ in parts
            ]
        ),
        torch.cat([picture + int(start) for start, (_, _, picture) in zip(starts, parts, strict=False)]),
    )


def test_a_head_is_the_same_in_any_order_of_chunks_and_each_space_has_its_share() -> None:
    trunk = drawn(9)[0]

    def base(rows: Tensor) -> Tensor:
        return rows[:, : sum(WIDTHS)]

    ours, theirs = (head(order).around_head(base, trunk) for order in ([0, 1, 2], [2, 0, 1]))

    assert torch.allclose(ours, theirs, atol=1e-5)
    first, second = torch.split(ours, list(WIDTHS), dim=-1)
    assert torch.allclose(first.norm(dim=-1), torch.ones(9), atol=1e-5)
    assert torch.allclose(second.norm(dim=-1), torch.full((9,), 0.5), atol=1e-5)


def test_pictures_like_one_that_was_taught_get_what_its_captions_say() -> None:
    generator = torch.Generator().manual_seed(6)
    themes = torch.randn(4, FEATURES, generator=generator)
    # A theme's captions have nothing to do with the direction of its features, as long as there are two of each sign.
    rows = torch.cat([themes, -themes]).repeat_interleave(30, dim=0)
    rows = rows + 0.3 * torch.randn(rows.shape, generator=generator)
    captions = functional.normalize(torch.randn(4, WIDTHS[0], generator=generator), dim=-1).repeat(2, 1)
    said = Captioned(standard(rows), captions.repeat_interleave(30, dim=0), torch.arange(len(rows)))
    config = {"trunk": FEATURES, "widths": [WIDTHS[0]], "shares": [1.0]}
    made = RidgeHead.build(domain("photographs"), config, tiny_encoder().model)
    made.fit([said])

    def found(head: RidgeHead) -> float:
        new = torch.cat([themes, -themes]) + 0.3 * torch.randn(8, FEATURES, generator=generator)
        seen = head.around_head(lambda trunk: torch.zeros(len(trunk), WIDTHS[0]), new)
        return float(((seen @ captions[:4].T).argmax(dim=1) == torch.arange(8) % 4).float().mean())

    assert found(made) == 1.0
    # Without the kernel nothing is left of it; and what is saved is all of it.
    assert {"axes", "like", "left"} <= made.state_dict().keys()
    again = RidgeHead.build(domain("photographs"), made.config, tiny_encoder().model)
    again.load_state_dict(made.state_dict())
    assert again.digest() == made.digest()
    made.left.zero_()
    assert found(made) < 0.8


def test_a_head_of_before_there_was_a_kernel_is_what_it_was() -> None:
    config = {"trunk": FEATURES, "widths": [WIDTHS[0]], "shares": [1.0]}
    old = RidgeHead.build(domain("photographs"), config, tiny_encoder().model)

    assert not {"axes", "like", "left"} & old.state_dict().keys()
    assert old.config == config
    one = Captioned(standard(drawn(1)[0][:1]), torch.eye(WIDTHS[0])[:1], torch.zeros(1, dtype=torch.int64))
    old.fit([one])  # a single picture has no axes
    assert old.config == config | {"axes": 0, "like": 0}


def test_the_noise_is_the_one_that_misses_least_what_is_left_out() -> None:
    generator = torch.Generator().manual_seed(7)
    themes = torch.randn(12, FEATURES, generator=generator)
    rows = themes.repeat_interleave(5, dim=0) + 0.2 * torch.randn(60, FEATURES, generator=generator)
    kernel = torch.exp(-torch.cdist(functional.normalize(rows), functional.normalize(rows)).square())
    said = torch.randn(12, 6, generator=generator).repeat_interleave(5, dim=0)
    noise = torch.randn(60, 6, generator=generator)

    def missed(rest: Tensor, strength: float) -> float:
        total = 0.0
        for out in range(60):
            kept = [n for n in range(60) if n != out]
            inside = kernel[kept][:, kept] + strength * torch.eye(59)
            guess = kernel[out, kept] @ torch.linalg.solve(inside, rest[kept])
            total += float((guess - rest[out]).square().sum())
        return total

    for rest in (said, said + 2 * noise, noise):
        best = min(NOISES, key=lambda one, rest=rest: missed(rest, one))  # type: ignore[misc]
        assert best_noise(kernel, rest, torch.ones(60)) == best
    assert best_noise(kernel, said, torch.ones(60)) < best_noise(kernel, noise, torch.ones(60))
