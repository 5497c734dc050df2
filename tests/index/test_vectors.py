from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from index.errors import DimensionMismatch, VectorError
from index.vectors import finite_rows, unit_rows


def test_rows_become_unit_float32_and_contiguous() -> None:
    rows = unit_rows(np.asfortranarray([[3.0, 4.0], [0.0, -2.0]]))

    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.0, -1.0]], rtol=1e-6)
    assert rows.dtype == np.float32
    assert rows.flags.c_contiguous


def test_the_callers_array_is_never_changed() -> None:
    given = np.array([[3.0, 4.0]], dtype=np.float32)
    unit_rows(given)[0, 0] = 9
    np.testing.assert_array_equal(given, [[3.0, 4.0]])


def test_rows_whose_squares_leave_float32_keep_their_direction() -> None:
    rows = unit_rows(np.array([[3e30, 4e30], [3e-11, 4e-11]], dtype=np.float32))
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0.6, 0.8]], rtol=1e-6)


def test_no_rows_are_fine_and_keep_their_dimension() -> None:
    assert unit_rows(np.empty((0, 7))).shape == (0, 7)


@pytest.mark.parametrize(
    ("array", "sentence"),
    [
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.array([[1, 2], [np.nan, 1]]), "1 of 2 vectors hold NaN or infinite numbers, row 1 first"),
        (np.array([[np.inf, 1.0]]), "row 0 first"),
        (np.array([[1e39, 1.0]]), "row 0 first"),
        (np.array([[1.0, 0.0], [0.0, 0.0]]), "1 of 2 vectors have length zero, row 1 first"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.array([[1j, 1.0]]), "real numbers"),
        (np.empty((2, 0)), "at least one dimension"),
    ],
)
def test_an_unfit_array_is_refused_with_what_is_wrong(array: ArrayLike, sentence: str) -> None:
    with pytest.raises(VectorError, match=sentence):
        unit_rows(array)


def test_another_dimension_is_refused_naming_both() -> None:
    with pytest.raises(DimensionMismatch, match=r"Expected 512-dimensional .* have 768"):
        unit_rows(np.ones((1, 768)), dim=512)


def test_raw_rows_keep_their_length_and_may_be_zero() -> None:
    np.testing.assert_array_equal(finite_rows([[0.0, 0.0], [3.0, 4.0]]), [[0, 0], [3, 4]])
