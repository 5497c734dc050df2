"""Which rows of a token table move, by how much, and how new ones start."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model_updates.parts.table_rows import (
    ScaledRows,
    occurring_rows,
    start_new_rows,
    table_statistics,
    teir_scale,
)
from model_updates.vocabulary import Growth


def scaled(table: nn.Parameter, scale: Tensor, *, decay: float = 0.0, apply_to: str = "grad") -> ScaledRows:
    return ScaledRows(table, gradient_scale=scale, decay_scale=scale, weight_decay=decay, apply_to=apply_to)


def test_sgd_with_half_lambda_gives_the_worked_value() -> None:
    # (1 - lr * beta * lambda) * theta - lr * lambda * g = (1 - .025) * 1 - .1
    table = nn.Parameter(torch.ones(1, 1))
    rows = scaled(table, torch.tensor([0.5]), decay=0.5)
    optimizer = torch.optim.SGD([table], lr=0.1)
    table.grad = torch.full((1, 1), 2.0)
    rows.after_backward(0.1)
    optimizer.step()
    rows.after_step()
    assert table.item() == pytest.approx(0.875, abs=1e-7)


@pytest.mark.parametrize("apply_to", ["grad", "update"])
@pytest.mark.parametrize("kind", [{"foreach": True}, {"foreach": False}, {"fused": True}])
def test_rows_at_zero_stay_bit_identical_and_collect_no_moments(apply_to: str, kind: dict[str, bool]) -> None:
    torch.manual_seed(0)
    table = nn.Parameter(torch.randn(6, 4))
    before = table.detach().clone()
    scale = torch.tensor([0.0, 1.0, 0.5, 0.0, 1 / 3, 0.0])
    rows = scaled(table, scale, decay=0.05, apply_to=apply_to)
    optimizer = torch.optim.AdamW([table], lr=1e-2, weight_decay=0.0, **kind)  # type: ignore[arg-type]
    for _ in range(200):
        table.grad = torch.randn(6, 4)
        rows.after_backward(1e-2)
        optimizer.step()
        rows.after_step()
    still = scale == 0
    assert torch.equal(table[still], before[still])
    assert not torch.equal(table[~still], before[~still])
    assert not optimizer.state[table]["exp_avg"][still].any()
    assert not optimizer.state[table]["exp_avg_sq"][still].any()


def test_scaling_the_gradient_does_not_shorten_adams_first_step_but_scaling_the_update_halves_it() -> None:
    steps = {}
    for apply_to in ("grad", "update"):
        table = nn.Parameter(torch.zeros(2, 1))
        rows = scaled(table, torch.tensor([1.0, 0.5]), apply_to=apply_to)
        optimizer = torch.optim.AdamW([table], lr=0.1, eps=0.0, weight_decay=0.0)
        table.grad = torch.full((2, 1), 0.3)
        rows.after_backward(0.1)
        optimizer.step()
        rows.after_step()
        steps[apply_to] = table.detach().flatten().tolist()
    assert steps["grad"] == pytest.approx([-0.1, -0.1])
    assert steps["update"] == pytest.approx([-0.1, -0.05])


def test_a_row_without_gradient_decays_by_the_rate_in_every_step() -> None:
    table = nn.Parameter(torch.ones(2, 1, dtype=torch.float64))
    rows = ScaledRows(
        table, gradient_scale=torch.ones(2), decay_scale=torch.tensor([1.0, 0.5]), weight_decay=0.05
    )
    for _ in range(1000):
        table.grad = torch.zeros(2, 1, dtype=torch.float64)
        rows.after_backward(5e-5)
    expected = [(1 - 5e-5 * 0.05) ** 1000, (1 - 5e-5 * 0.05 * 0.5) ** 1000]
    # One factor is a float32 number near 1: off by 3e-8 a step at most, 3e-5 after a thousand.
    assert table.detach().flatten().tolist() == pytest.approx(expected, abs=3e-5)


def test_a_row_that_nothing_uses_shrinks_by_3_and_a_half_percent_in_the_papers_14454_steps() -> None:
    table = nn.Parameter(torch.ones(1, 1, dtype=torch.float64))
    every = torch.ones(1, dtype=torch.float64)
    rows = ScaledRows(table, gradient_scale=every, decay_scale=every, weight_decay=0.05)
    table.grad = torch.zeros_like(table)
    for _ in range(14_454):
        rows.after_backward(5e-5)
    assert table.item() == pytest.approx(0.96451, abs=1e-5)


def test_new_rows_follow_the_given_mean_and_deviation() -> None:
    table = nn.Parameter(torch.zeros(1000, 32))
    growth = Growth(np.arange(1000), np.full(1000, -1))
    start_new_rows(table, growth, mean=0.3, std=0.02, generator=torch.Generator().manual_seed(5))
    mean, std = table_statistics(table)
    # n = 32,000 draws: five standard errors leave a false alarm of about one in a million.
    assert mean == pytest.approx(0.3, abs=5 * 0.02 / math.sqrt(32_000))
    assert std == pytest.approx(0.02, abs=5 * 0.02 / math.sqrt(2 * 32_000))


def test_a_new_row_with_a_source_is_its_copy() -> None:
    table = nn.Parameter(torch.randn(4, 3))
    table.data[2:] = 0
    growth = Growth(np.array([2, 3]), np.array([1, -1]))
    start_new_rows(table, growth, mean=0.0, std=1.0, generator=torch.Generator().manual_seed(0))
    assert torch.equal(table[2], table[1])
    assert not torch.equal(table[3], table[1])


def test_lambda_counts_updates_not_occurrences() -> None:
    occurs = torch.tensor([True, True, True, False])
    counts = torch.tensor([0, 1, 2, 7])
    assert teir_scale(occurs, counts).tolist() == pytest.approx([1, 1 / 2, 1 / 3, 0])


def test_start_and_end_never_occur() -> None:
    mask = occurring_rows([[1, 5, 5, 2], [1, 7, 2]], 9, (1, 2))
    assert torch.nonzero(mask).flatten().tolist() == [5, 7]


def test_no_text_marks_no_row() -> None:
    assert not occurring_rows([], 4, (1, 2)).any()
