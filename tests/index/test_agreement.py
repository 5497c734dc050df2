from __future__ import annotations

import faiss
import numpy as np
import pytest

from index import faiss_index
from index.agreement import agreement
from index.errors import DimensionMismatch, ResultCountError, VectorError
from index.vectors import unit_rows

VECTORS = unit_rows(np.random.default_rng(3).normal(size=(600, 12)))


def test_exact_search_agrees_with_itself() -> None:
    assert agreement(faiss_index.build(VECTORS), VECTORS, VECTORS[:100], 10) == 1.0


def test_an_index_over_other_vectors_agrees_about_as_much_as_chance() -> None:
    # 10 of 600 by chance are 1.7 %; over 1,000 answers above 5 % has a probability below 1e-9.
    shuffled = VECTORS[np.random.default_rng(4).permutation(600)]
    assert agreement(faiss_index.build(shuffled), VECTORS, VECTORS[:100], 10) < 0.05


def test_a_single_searched_list_misses_what_all_lists_find() -> None:
    index = faiss_index.build(VECTORS, "IVF16,Flat")
    faiss.ParameterSpace().set_index_parameter(index, "nprobe", 1)
    narrow = agreement(index, VECTORS, VECTORS[:100], 10)
    faiss.ParameterSpace().set_index_parameter(index, "nprobe", 16)

    assert narrow < 0.9
    assert agreement(index, VECTORS, VECTORS[:100], 10) == 1.0


def test_any_of_tied_neighbours_is_right() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    gallery = unit_rows([east] * 50 + [north])
    # This index holds the same points in an order that makes it answer with other positions.
    assert agreement(faiss_index.build(gallery), gallery[::-1].copy()[[*range(1, 51), 0]], [east], 3) == 1.0


def test_worse_answers_count_only_beyond_the_tolerance() -> None:
    gallery = unit_rows([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    swapped = faiss_index.build(gallery[[1, 0, 2]])

    assert agreement(swapped, gallery, [[1.0, 0.0]], 1) == 0.0
    assert agreement(swapped, gallery, [[1.0, 0.0]], 1, tolerance=0.01) == 1.0


def test_k_beyond_the_gallery_is_clipped_and_an_empty_gallery_agrees() -> None:
    empty = VECTORS[:0]
    assert agreement(faiss_index.build(VECTORS[:4]), VECTORS[:4], VECTORS[:2], 10) == 1.0
    assert agreement(faiss_index.build(empty), empty, VECTORS[:2], 10) == 1.0


def test_comparisons_that_mean_nothing_are_refused() -> None:
    index = faiss_index.build(VECTORS)
    with pytest.raises(ResultCountError, match="over 0 results"):
        agreement(index, VECTORS, VECTORS[:1], 0)
    with pytest.raises(VectorError, match="holds 600 vectors and is compared with 10"):
        agreement(index, VECTORS[:10], VECTORS[:1], 5)
    with pytest.raises(VectorError, match="at least one query"):
        agreement(index, VECTORS, VECTORS[:0], 5)
    with pytest.raises(DimensionMismatch):
        agreement(index, VECTORS, np.ones((1, 5)), 5)
