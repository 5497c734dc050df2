"""What is taken off a reading's cosines, half of its tenth-best; and what a picture scores by several."""

from __future__ import annotations

import numpy as np
import pytest

from model_updates.readings import NEIGHBOUR, PART, added, background, fused


def test_it_is_half_of_the_tenth_best_in_any_order() -> None:
    ordered = np.linspace(0.9, 0.0, 31, dtype=np.float32)
    shuffled = np.random.default_rng(0).permutation(ordered)

    found = background(np.stack([ordered, shuffled, shuffled - 0.5]))

    assert found == pytest.approx(
        [PART * ordered[NEIGHBOUR - 1]] * 2 + [PART * (ordered[NEIGHBOUR - 1] - 0.5)]
    )


def test_the_ten_best_say_the_same_as_the_whole_gallery() -> None:
    cosines = np.random.default_rng(1).uniform(-1, 1, (4, 200)).astype(np.float32)

    assert np.array_equal(background(np.sort(cosines, axis=1)[:, ::-1][:, :NEIGHBOUR]), background(cosines))


def test_where_fewer_were_found_it_is_the_last_of_them() -> None:
    few = np.asarray([[0.5, 0.3, -np.inf], [0.4, -np.inf, -np.inf], [-np.inf] * 3], dtype=np.float32)

    assert background(few) == pytest.approx([PART * 0.3, PART * 0.4, 0.0])
    assert background(np.empty((2, 0), dtype=np.float32)).tolist() == [0.0, 0.0]


def test_a_score_is_the_mean_of_what_the_readings_say_by_their_chances() -> None:
    scale, chances = 20.0, np.asarray([0.75, 0.25])
    cosines = np.asarray([[0.5, 0.4, 0.3], [0.5, -np.inf, 0.45]], dtype=np.float32)
    lowered = np.log(chances / chances[0]).astype(np.float32) / np.float32(scale)

    found = fused(cosines, lowered, scale)

    by_hand = np.log(chances @ np.exp(scale * cosines.astype(np.float64))) / scale
    assert found == pytest.approx(by_hand, abs=1e-6)
    assert found[0] == pytest.approx(0.5), "all say the same"
    assert (found <= cosines.max(axis=0) + 1e-6).all()
    assert fused(cosines[:1], lowered[:1], scale) == pytest.approx(cosines[0])


def test_readings_add_up_as_numpy_adds_logarithms() -> None:
    random = np.random.default_rng(0)
    a, b = random.uniform(-1, 1, size=(2, 40, 50)).astype(np.float32)
    b[:, :5] = a[:, :5]
    for scale in (1.0, 30.0, 100.0):
        wanted = np.logaddexp(scale * a.astype(np.float64), scale * b.astype(np.float64)) / scale
        assert added(a, b, scale) == pytest.approx(wanted, abs=2e-7)
        lowered = np.asarray([0.0, -0.01, -0.3], dtype=np.float32)
        several = np.stack([a[0], b[0], np.full_like(a[0], -np.inf)])
        weights = scale * lowered.astype(np.float64)
        told = np.logaddexp.reduce(scale * several.astype(np.float64) + weights[:, None], axis=0)
        assert fused(several, lowered, scale) == pytest.approx(
            (told - np.logaddexp.reduce(weights)) / scale, abs=1e-7
        )
    nowhere = np.full((2, 3), -np.inf, dtype=np.float32)
    assert np.isneginf(fused(nowhere, lowered[:2], 30.0)).all()
