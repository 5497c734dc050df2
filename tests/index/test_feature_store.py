from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from index.errors import DimensionMismatch, VectorError
from index.feature_store import READ_BATCH, FeatureStore
from ingest.storage import Store

TOWER, OTHER_TOWER = "a" * 64, "b" * 64


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[FeatureStore]:
    with Store.open(tmp_path / "vectors.lmdb") as store:
        yield FeatureStore(store)


def test_features_come_back_bit_for_bit_in_the_order_asked(cache: FeatureStore) -> None:
    raw = np.random.default_rng(0).normal(scale=30, size=(5, 8)).astype(np.float32)
    assert cache.put(TOWER, "image", ["a", "b", "c", "d", "e"], raw) == 5

    rows, mask = cache.get(TOWER, "image", ["d", "missing", "a", "d"], 8)

    np.testing.assert_array_equal(mask, [True, False, True, True])
    np.testing.assert_array_equal(rows, raw[[3, 0, 3]])
    assert rows.dtype == np.float32
    assert rows.flags.writeable


def test_towers_and_kinds_never_share_features(cache: FeatureStore) -> None:
    cache.put(TOWER, "image", ["a"], [[1.0, 2.0]])

    for tower, kind in ((OTHER_TOWER, "image"), (TOWER, "text:de")):
        rows, mask = cache.get(tower, kind, ["a"], 2)
        assert not mask.any()
        assert rows.shape == (0, 2)


def test_the_same_features_again_are_not_new(cache: FeatureStore) -> None:
    assert cache.put(TOWER, "image", ["a"], [[1.0, 2.0]]) == 1
    assert cache.put(TOWER, "image", ["a", "b"], [[1.0, 2.0], [3.0, 4.0]]) == 1


def test_more_ids_than_one_read_batch_keep_their_order(cache: FeatureStore) -> None:
    count = READ_BATCH + 3
    ids = [str(number) for number in range(count)]
    cache.put(TOWER, "image", ids, np.arange(count, dtype=np.float32)[:, None])

    rows, mask = cache.get(TOWER, "image", ids[::-1], 1)

    assert mask.all()
    np.testing.assert_array_equal(rows[:, 0], np.arange(count)[::-1])


def test_nothing_asked_gives_no_rows_of_the_right_width(cache: FeatureStore) -> None:
    rows, mask = cache.get(TOWER, "image", [], 6)
    assert (rows.shape, mask.shape) == ((0, 6), (0,))


def test_a_cached_row_of_another_dimension_is_refused_naming_both(cache: FeatureStore) -> None:
    cache.put(TOWER, "image", ["a"], [[1.0, 2.0]])
    with pytest.raises(DimensionMismatch, match=r"holds 2-dimensional .* 3 dimensions were asked for"):
        cache.get(TOWER, "image", ["a"], 3)


def test_features_that_are_not_finite_or_not_counted_are_refused_whole(cache: FeatureStore) -> None:
    with pytest.raises(VectorError, match="row 1 first"):
        cache.put(TOWER, "image", ["a", "b"], [[1.0], [np.nan]])
    with pytest.raises(VectorError, match="2 ids came with 1 vectors"):
        cache.put(TOWER, "image", ["a", "b"], [[1.0]])

    assert not cache.get(TOWER, "image", ["a", "b"], 1)[1].any()
