from __future__ import annotations

import pytest

from app.bench.figures import curves_of, drift_of, figures_of, matrix_of, over_seeds, series
from model_updates.evaluation import average_recall, bwt, forgetting
from tests.app.bench.cells import cell, slice_run, step

MATRIX = [[80.0], [60.0, 70.0], [50.0, 60.0, 90.0]]
SLICES = [
    slice_run([80, 60, 50], language="de", since=1),
    slice_run([70, 60], language="fr", since=2),
    slice_run([90], language="ja", since=3),
]


def test_one_slice_a_step_gives_what_the_papers_formulas_give() -> None:
    found = figures_of(cell(SLICES))
    assert found["trained/told/r1"] == pytest.approx(average_recall(MATRIX)) == pytest.approx(200 / 3)
    assert found["trained/told/forgetting"] == pytest.approx(forgetting(MATRIX)) == pytest.approx(20)
    assert found["trained/told/bwt"] == pytest.approx(bwt(MATRIX)) == pytest.approx(-20)
    assert found["trained/told/rm"] == pytest.approx(100 / 3)


def test_forgetting_starts_from_the_best_recall_after_the_step_that_taught_it() -> None:
    rising = [slice_run([40, 70, 50], since=1), slice_run([90], since=3)]
    assert figures_of(cell(rising))["trained/told/forgetting"] == pytest.approx(20)
    assert figures_of(cell(rising))["trained/told/bwt"] == pytest.approx(10)


def test_the_base_counts_from_before_the_first_step() -> None:
    with_base = [slice_run([100, 90, 80, 70], language="en", since=0), *SLICES]
    found = figures_of(cell(with_base))
    assert found["trained/told/forgetting"] == pytest.approx((30 + 30 + 10) / 3)
    assert found["trained/told/r1"] == pytest.approx((70 + 50 + 60 + 90) / 4)
    assert found["trained/told/r1_taught"] == pytest.approx(200 / 3)


def test_unseen_and_held_out_slices_are_figures_of_their_own() -> None:
    unseen = slice_run([50, 45, 40, 30], kind="held-out", since=0, unseen=True)
    held_out = slice_run([20, 10, 10], kind="held-out", since=1)
    found = figures_of(cell([*SLICES, unseen, held_out], probe=(40.0, 39.0, 38.0, 30.0)))
    assert found["unseen/told/r1"] == 30
    assert found["unseen/told/r1_drop"] == 20
    assert found["held-out/told/r1"] == 10
    assert found["trained/told/r1"] == pytest.approx(200 / 3)
    assert (found["probe"], found["probe_drop"]) == (30, 10)


def test_a_reference_that_reads_every_slice_early_counts_from_the_same_step() -> None:
    early = slice_run([10, 20, 60, 40], since=2)
    assert series(early, 3, "told") == [60, 40]
    assert figures_of(cell([early]))["trained/told/bwt"] == -20


def test_with_one_step_nothing_can_be_forgotten() -> None:
    found = figures_of(cell([slice_run([80], since=1)], steps=[step("one")]))
    assert "trained/told/forgetting" not in found
    assert found["trained/told/r1"] == 80


def test_costs_add_up_and_a_refused_step_stores_nothing_new() -> None:
    steps = [
        step("one", stored_bytes=10, re_embedded=5),
        step("two", stored_bytes=30, re_embedded=7),
        step("three", stored_bytes=0, refused="No picture changed.", seconds=0.0, cpu_seconds=0.0),
    ]
    found = figures_of(cell(SLICES, steps=steps))
    assert (found["cpu_seconds"], found["seconds"], found["stored_bytes"]) == (4, 6, 30)
    assert (found["re_embedded"], found["refused"], found["peak_bytes"]) == (12, 1, 5_000_000)


def test_drift_is_the_mean_over_the_steps_that_have_it() -> None:
    steps = [step("one"), step("two", drift={"sam_texts": 2.0}), step("three", drift={"sam_texts": 4.0})]
    assert drift_of(cell(SLICES, steps=steps)) == {"drift/sam_texts": 3.0}
    assert drift_of(cell(SLICES)) == {}


def test_seeds_give_a_mean_and_half_of_their_range() -> None:
    cells = [cell([slice_run([r], since=3)], seed=seed) for seed, r in enumerate((50, 60, 64))]
    spread = over_seeds(cells)["trained/told/r1"]
    assert spread.mean == pytest.approx(58)
    assert spread.half_range == pytest.approx(7)
    assert over_seeds(cells[:1])["trained/told/r1"].half_range is None


def test_curves_average_what_is_known_by_each_step() -> None:
    found = curves_of([cell(SLICES)], "trained", "told")
    assert found is not None
    assert found.average == pytest.approx((None, 80, 65, 200 / 3))
    assert found.first == pytest.approx((None, 80, 60, 50))
    assert found.of == "de flat"
    assert curves_of([cell(SLICES)], "held-out", "told") is None


def test_the_matrix_averages_the_seeds_of_one_order_alone() -> None:
    again = [slice_run([60, 40, 30], language="de", since=1), *SLICES[1:]]
    other = [
        slice_run([1, 1, 1], language="fr", since=1),
        slice_run([1, 1], language="de", since=2),
        SLICES[2],
    ]
    cells = [cell(SLICES), cell(other, seed=1), cell(again, seed=2)]
    names, rows = matrix_of(cells, "trained")
    assert names == ["de", "fr", "ja"]
    assert rows == [[None, 70, 50, 40], [None, None, 70, 60], [None, None, None, 90]]
