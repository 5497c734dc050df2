from __future__ import annotations

import faiss
import numpy as np
import pytest

from index import faiss_index
from index.agreement import agreement
from index.errors import DimensionMismatch, ResultCountError, VectorError
from index.faiss_index import FaissVectors
from index.vectors import unit_rows

VECTORS = unit_rows(np.random.default_rng(3).normal(size=(600, 12)))


@pytest.mark.parametrize("kind", ["Flat", "SQfp16", "SQ8"])
def test_exact_search_agrees_with_itself(kind: str) -> None:
    assert agreement(FaissVectors(faiss_index.build(VECTORS, kind)), VECTORS[:100], 10) == 1.0


def test_a_single_searched_list_misses_what_all_lists_find() -> None:
    index = faiss_index.build(VECTORS, "IVF16,Flat")
    faiss.ParameterSpace().set_index_parameter(index, "nprobe", 1)
    narrow = agreement(FaissVectors(index), VECTORS[:100], 10)
    faiss.ParameterSpace().set_index_parameter(index, "nprobe", 16)

    assert 0.1 < narrow < 0.9
    assert agreement(FaissVectors(index), VECTORS[:100], 10) == 1.0


def test_any_of_tied_neighbours_is_right() -> None:
    east, north = [1.0, 0.0], [0.0, 1.0]
    index = faiss_index.build(unit_rows([east] * 50 + [north] * 5), "IVF2,Flat")
    faiss.ParameterSpace().set_index_parameter(index, "nprobe", 1)
    assert agreement(FaissVectors(index), [east], 3) == 1.0
    assert agreement(FaissVectors(index), [north], 10) == 1.0


def test_k_beyond_the_gallery_is_clipped_and_an_empty_gallery_agrees() -> None:
    assert agreement(FaissVectors(faiss_index.build(VECTORS[:4])), VECTORS[:2], 10) == 1.0
    assert agreement(FaissVectors(faiss_index.build(VECTORS[:0])), VECTORS[:2], 10) == 1.0


def test_comparisons_that_mean_nothing_are_refused() -> None:
    index = faiss_index.build(VECTORS)
    with pytest.raises(ResultCountError, match="over 0 results"):
        agreement(FaissVectors(index), VECTORS[:1], 0)
    with pytest.raises(VectorError, match="at least one query"):
        agreement(FaissVectors(index), VECTORS[:0], 5)
    with pytest.raises(DimensionMismatch):
        agreement(FaissVectors(index), np.ones((1, 5)), 5)
