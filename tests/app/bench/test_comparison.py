from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from app.bench.comparison import (
    Criterion,
    NotComparable,
    PairedDifference,
    _seed_weights,
    difference,
    is_paired,
    seed_difference,
)
from app.bench.results import Cell
from tests.app.bench.cells import cell, slice_run

FIRST = Criterion("trained", "told", "r1")
THINGS = 80


def _drawn(rng: np.random.Generator, level: NDArray[np.float64]) -> list[int]:
    return [int(hit) for hit in rng.random(len(level)) < level]


def _cells(
    rng: np.random.Generator,
    level: NDArray[np.float64],
    *,
    seeds: int = 3,
    strategy: str = "a",
    wobble: float = 0.0,
) -> list[Cell]:
    """Cells whose queries are found with a chance each; a seed shifts them all."""
    found = []
    for seed in range(seeds):
        chance = np.clip(level + wobble * rng.standard_normal(), 0, 1)
        slices = [
            slice_run([50.0], language=language, since=3, last=_drawn(rng, chance))
            for language in ("de", "fr")
        ]
        found.append(cell(slices, strategy=strategy, seed=seed))
    return found


def test_a_swap_flips_the_sign_and_nothing_else() -> None:
    rng = np.random.default_rng(3)
    level = rng.random(THINGS)
    ours, theirs = _cells(rng, level * 0.9), _cells(rng, level * 0.4, strategy="b")
    there, back = difference(ours, theirs, FIRST), difference(theirs, ours, FIRST)
    assert there is not None
    assert back is not None
    assert there.mean == pytest.approx(-back.mean)
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    assert (there.words, back.words) == ("higher", "lower")
    assert there == difference(ours, theirs, FIRST)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    # 60 worlds with new things and new seeds each; at 95 % fewer than 51 of them by chance: 1 in 3,000.
    held = 0
    for world in range(60):
        rng = np.random.default_rng(world)
        level = rng.random(THINGS)
        ours = _cells(rng, 0.2 + 0.6 * level, seeds=5, wobble=0.05)
        theirs = _cells(rng, 0.1 + 0.6 * level, seeds=5, wobble=0.05, strategy="b")
        found = difference(ours, theirs, FIRST, draws=400)
        assert found is not None
        held += found.low <= 10 <= found.high
    assert held >= 51


@pytest.mark.parametrize("seeds", [3, 5])
def test_where_seeds_alone_differ_the_interval_is_about_students(seeds: int) -> None:
    # 300 worlds; without the widening to Student's quantile 81 and 87 of 100 hold the truth.
    held = 0
    for world in range(300):
        values = np.random.default_rng(world).normal(size=seeds)
        low, high = np.quantile(values @ _seed_weights(seeds, 2000), [0.025, 0.975])
        held += low <= 0 <= high
    assert held >= 276


def test_no_difference_is_not_distinguishable() -> None:
    rng = np.random.default_rng(1)
    level = np.full(THINGS, 0.5)
    found = difference(_cells(rng, level), _cells(rng, level, strategy="b"), FIRST)
    assert found is not None
    assert found.words == "not distinguishable"
    assert not found.is_clear


def test_what_other_draws_could_move_over_zero_is_not_told() -> None:
    near = PairedDifference(2.0, 0.02, 4.0, (0, 1, 2), 80, p=0.049, error=0.05)
    assert near.words == "not distinguishable"
    assert replace(near, error=0.01).words == "higher"
    assert replace(near, mean=-2.0, low=-4.0, high=-0.02).words == "not distinguishable"


def test_ten_times_the_draws_leave_a_third_of_the_error_and_the_same_interval() -> None:
    rng = np.random.default_rng(4)
    level = rng.random(THINGS)
    sides = _cells(rng, 0.2 + 0.6 * level), _cells(rng, 0.1 + 0.6 * level, strategy="b")
    few, many = (difference(*sides, FIRST, draws=draws) for draws in (2000, 20_000))
    assert few is not None
    assert many is not None
    assert 0.15 * few.error < many.error < 0.6 * few.error
    assert (many.low, many.high) == pytest.approx((few.low, few.high), abs=4 * few.error)
    assert many.p == pytest.approx(few.p, abs=0.03)


def test_captions_of_one_thing_count_once() -> None:
    ours = [1, 1, 1, 0, 1, 0, 1, 1]
    alone = _one(ours, range(8)), _one([0, 1, 0, 1, 0, 1, 0, 1], range(8))
    doubled = (
        _one(ours * 2, [*range(8), *range(8)]),
        _one([0, 1, 0, 1, 0, 1, 0, 1] * 2, [*range(8), *range(8)]),
    )
    once, twice = (difference([a], [b], FIRST) for a, b in (alone, doubled))
    assert once is not None
    assert twice is not None
    assert once.things == twice.things == 8
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high))


def test_one_thing_in_two_languages_counts_once() -> None:
    a, b = [1, 1, 1, 0, 1, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1]
    both = [
        cell([slice_run([1], language=tag, since=3, last=bits) for tag in ("de", "fr")], strategy=name)
        for name, bits in (("a", a), ("b", b))
    ]
    one = difference([_one(a, range(8))], [_one(b, range(8))], FIRST)
    two = difference(both[:1], both[1:], FIRST)
    assert one is not None
    assert two is not None
    assert (two.low, two.high, two.things) == pytest.approx((one.low, one.high, 8))


def _one(bits: list[int], clusters: object) -> Cell:
    return cell([slice_run([50], since=3, last=bits, clusters=list(clusters))])  # type: ignore[call-overload]


def test_backward_transfer_pairs_what_each_query_lost() -> None:
    kept = slice_run([100, 75], since=2, learned=[1, 1, 1, 1], last=[1, 1, 1, 0])
    lost = slice_run([100, 25], since=2, learned=[1, 1, 1, 1], last=[1, 0, 0, 0])
    newest = slice_run([100], language="ja", since=3, learned=[1, 1, 1, 1], last=[1, 1, 1, 1])
    found = difference([cell([kept, newest])], [cell([lost, newest])], Criterion("trained", "told", "bwt"))
    assert found is not None
    assert found.mean == pytest.approx(50)


def test_clusters_numbered_differently_by_seed_are_known_for_the_same_things() -> None:
    bits = ([1, 1, 0, 1], [0, 1, 0, 0])
    cells = [
        [cell([slice_run([1], since=3, last=own, clusters=numbers)], seed=seed) for seed, numbers in said]
        for own in bits
        for said in [[(0, [0, 1, 2, 3]), (1, [9, 8, 7, 6])]]
    ]
    found = difference(cells[0], cells[1], FIRST)
    assert found is not None
    assert found.things == 4


def test_other_captions_are_refused() -> None:
    ours, theirs = (cell([slice_run([50], since=3, digest=digest)]) for digest in ("x", "y"))
    with pytest.raises(NotComparable, match="were not asked the same captions"):
        difference([ours], [theirs], FIRST)
    swapped = cell([slice_run([50], since=3, digest="x", clusters=[3, 2, 1, 0])])
    with pytest.raises(NotComparable, match="count the things"):
        difference([ours], [swapped], FIRST)


def test_no_common_seed_or_no_slice_of_the_kind_is_no_difference() -> None:
    ours, theirs = cell([slice_run([50], since=3)]), cell([slice_run([50], since=3)], seed=1)
    assert difference([ours], [theirs], FIRST) is None
    assert difference([ours], [ours], Criterion("held-out", "told", "r1")) is None


def test_figures_of_seeds_take_three_to_say_anything() -> None:
    ours = [cell([slice_run([r], since=3)], seed=seed) for seed, r in enumerate((60, 64, 62))]
    theirs = [cell([slice_run([r], since=3)], seed=seed) for seed, r in enumerate((50, 52, 51))]
    found = seed_difference(ours, theirs, "trained/told/r1")
    assert found is not None
    assert found.mean == pytest.approx(11)
    assert found.high - found.mean == pytest.approx(4.3027 * 1 / 3**0.5, abs=1e-3)
    assert found.p == pytest.approx(0.0027, abs=1e-4)  # t = 19.05 with two degrees of freedom
    few = seed_difference(ours[:2], theirs[:2], "trained/told/r1")
    assert few is not None
    assert not few.is_clear


def test_rm_is_compared_by_query_where_cells_know_it() -> None:
    def one(six: list[int] | None, strategy: str) -> list[Cell]:
        return [cell([slice_run([50], since=3, six=six)], strategy=strategy, seed=seed) for seed in range(3)]

    ours, theirs = one([6, 3, 3, 0], "a"), one([3, 3, 0, 0], "b")
    found = difference(ours, theirs, Criterion("trained", "told", "rm"))
    assert found is not None
    assert found.mean == pytest.approx(25)  # (3 + 0 + 3 + 0) of 4 x 6
    assert found.things == 4
    assert is_paired(ours, "rm")
    assert not is_paired(one(None, "a"), "rm")


def test_many_languages_take_about_a_second() -> None:
    rng = np.random.default_rng(0)

    def big(strategy: str) -> list[Cell]:
        level = np.full(300, 0.5)
        slices = [slice_run([50], language=f"l{n}", since=3, last=_drawn(rng, level)) for n in range(36)]
        return [cell(slices, seed=seed, strategy=strategy) for seed in range(3)]

    ours, theirs = big("a"), big("b")
    began = time.process_time()
    difference(ours, theirs, FIRST)
    assert time.process_time() - began < 5  # about 0.1 s; a loop over draws would take a minute
