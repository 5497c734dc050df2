"""What every engine that keeps a segment's vectors is asked for: one suite, which each of them runs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import faiss
import numpy as np
import pytest
from numpy.typing import NDArray

from index.faiss_index import FaissVectors
from index.tuning import build_tuned
from index.vector_index import VectorIndex
from index.vectors import unit_rows
from tests.index.engines import engine_for

COUNT, DIM, K, CLOUDS = 24_000, 24, 10, 60
EXACT = ("Flat", "SQfp16", "SQ8")


def clustered(count: int, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).normal(size=(CLOUDS, DIM))
    return unit_rows(centres[np.arange(count) % CLOUDS] + 0.4 * rng.normal(size=(count, DIM)))


ROWS, QUERIES = clustered(COUNT, 1), clustered(40, 2)


@pytest.fixture(
    scope="module",
    params=[
        *EXACT,
        "IVF64,SQfp16",
        "HNSW32",
        *(pytest.param(f"pgvector {kind}", marks=pytest.mark.postgres) for kind in ("Flat", "SQfp16")),
        pytest.param("milvus Flat", marks=pytest.mark.milvus),
    ],
)
def index(request: pytest.FixtureRequest) -> Iterator[VectorIndex]:
    engine, _, kind = str(request.param).rpartition(" ")
    stored = FaissVectors(build_tuned(ROWS, kind, lambda: QUERIES, is_asked=True)[0])
    if not engine:
        yield stored
        return
    with engine_for(engine, f"contract of {kind}") as keeping:
        keeping.begin()
        keeping.make("a" * 64, stored, kind, lambda: QUERIES)
        yield keeping.known()["a" * 64]


def share(found: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    return sum(len({*a} & {*b}) for a, b in zip(found.tolist(), right.tolist(), strict=True)) / right.size


def exactly(
    index: VectorIndex, k: int, allowed: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """What numpy finds among the vectors as they are stored."""
    scores = QUERIES @ index.vectors(np.arange(index.count)).T
    if allowed is not None:
        scores[:, ~allowed] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, axis=1), order


def test_it_holds_what_it_was_given(index: VectorIndex) -> None:
    assert (index.count, index.dim) == (COUNT, DIM)
    rows = np.array([11_999, 0, 5, 0])
    assert np.allclose(index.vectors(rows), ROWS[rows], atol=0.01)
    assert index.vectors(np.empty(0, dtype=np.int64)).shape == (0, DIM)


def test_it_finds_what_comparing_all_finds(index: VectorIndex) -> None:
    scores, found = index.search(QUERIES, K)
    right_scores, right = exactly(index, K)
    assert scores.dtype == np.float32
    assert share(found, right) >= 0.97
    assert np.allclose(index.exact(QUERIES, K)[0], right_scores, atol=1e-6)
    assert share(index.exact(QUERIES, K)[1], right) >= 0.999  # rounding may settle a draw otherwise


def test_scores_fall_and_are_products_with_what_is_stored(index: VectorIndex) -> None:
    scores, found = index.search(QUERIES, K)
    assert (np.diff(scores, axis=1) <= 0).all()
    stored = index.vectors(found.ravel()).reshape(*found.shape, DIM)
    assert np.allclose(scores, np.einsum("qd,qkd->qk", QUERIES, stored), atol=1e-6)


@pytest.mark.parametrize("allowed_share", [0.6, 0.001, 0.9])
def test_of_a_filter_the_best_that_is_allowed_is_found(index: VectorIndex, allowed_share: float) -> None:
    allowed = np.random.default_rng(3).random(COUNT) < allowed_share
    k = min(K, int(allowed.sum()))
    _, found = index.search(QUERIES, k, allowed)
    assert allowed[found].all()
    assert share(found, exactly(index, k, allowed)[1]) >= 0.97


def test_a_filter_that_leaves_what_is_far_away_still_finds_it(index: VectorIndex) -> None:
    scores = QUERIES[0] @ ROWS.T
    allowed = scores <= np.sort(scores)[21_000]  # all but the nearest eighth
    _, found = index.search(QUERIES[:1], K, allowed)
    assert allowed[found].all()
    assert share(found, exactly(index, K, allowed)[1][:1]) >= 0.9


def test_a_filter_that_leaves_half_of_the_clouds_finds_what_is_nearest_in_them(index: VectorIndex) -> None:
    allowed = np.arange(COUNT) % CLOUDS >= CLOUDS // 2  # and not the clouds of half of the queries
    _, found = index.search(QUERIES, K, allowed)
    assert allowed[found].all()
    is_in_lists = isinstance(index, FaissVectors) and isinstance(index.index, faiss.IndexIVF)
    assert share(found, exactly(index, K, allowed)[1]) >= (0.8 if is_in_lists else 0.95)


def test_a_deep_search_finds_most_and_nothing_twice(index: VectorIndex) -> None:
    _, found = index.search(QUERIES[:4], 2000)
    assert share(found, exactly(index, 2000)[1][:4]) >= (
        0.9 if index.engine_name != "FAISS" else 0.3
    )  # of some lists
    assert all(len({*one}) == 2000 for one in found.tolist())


def test_threads_that_search_at_once_find_the_same(index: VectorIndex) -> None:
    alone = index.search(QUERIES, K)[1]
    with ThreadPoolExecutor(4) as pool:
        together = [*pool.map(lambda n: index.search(QUERIES[n : n + 1], K)[1][0], range(len(QUERIES)))]
    assert np.array_equal(np.array(together), alone)
