"""Slices read together: many harmless ones pass, one that lost much is not talked down."""

import numpy as np
import pytest

from model_updates.gate.shrinkage import normal_tail, one_sided, posterior, share


def test_the_worst_of_sixty_harmless_slices_is_no_loss() -> None:
    drops = np.random.default_rng(0).normal(0.0, 1.2, 60)
    alone = share([drops.max()], [1.2])
    together = share(drops, np.full(60, 1.2))
    assert drops.max() + 1.645 * 1.2 > 4.0  # a bound on the slice alone is near the policy
    assert together.bound(0.95).max() < 1.5
    assert together.bound(0.95).max() < alone.bound(0.95)[0]


def test_a_slice_that_lost_by_itself_is_not_talked_down_by_the_others() -> None:
    drops = np.random.default_rng(1).normal(0.0, 1.2, 60)
    drops[7] = 8.0
    together = share(drops, np.full(60, 1.2))
    assert together.odd[7] > 0.99
    assert together.beyond(5.0)[7] > 0.9
    assert np.delete(together.beyond(5.0), 7).max() < 0.01


def test_a_common_loss_is_seen_by_all() -> None:
    drops = np.random.default_rng(2).normal(4.0, 1.2, 30)
    together = share(drops, np.full(30, 1.2))
    assert together.bound(0.95).min() > 3.5


def test_what_is_suspected_from_elsewhere_counts() -> None:
    drops, errors = [0.0, 0.1, -0.2, 3.5], np.full(4, 1.2)
    before = share(drops, errors).beyond(5.0)[3]
    suspected = share(drops, errors, suspected=[0.0, 0.0, 0.0, 1.0]).beyond(5.0)[3]
    assert suspected > 2 * before


def test_a_bound_is_where_the_chance_beyond_it_is_what_was_asked() -> None:
    together = share([1.0, 2.0, -1.0], [0.5, 1.0, 2.0])
    for level in (0.95, 0.995):
        bound = together.bound(level)
        assert together.beyond(bound[:, None]) == pytest.approx(np.full(3, 1 - level), rel=0.02)


def test_belief_and_measurement_meet_by_their_precision() -> None:
    mean, deviation = posterior(4.0, 1.0, center=0.0, spread=1.0)
    assert [mean, deviation] == pytest.approx([2.0, 0.5**0.5])
    assert normal_tail(one_sided(0.95)) == pytest.approx(0.05)
