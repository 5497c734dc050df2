"""What is taken off a reading's cosines: half of its tenth-best."""

from __future__ import annotations

import numpy as np
import pytest

from model_updates.readings import NEIGHBOUR, PART, background


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
