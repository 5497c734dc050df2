"""Drift: angles by hand, which bin an edge is in, and what rotations of one or both towers do to it."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates.drift import (
    CHANGE_EDGES,
    ROTATION_EDGES,
    Angles,
    Vectors,
    drift,
    embedded,
    retrieved,
    self_angle_changes,
    spread,
)
from model_updates.features import NoCache
from model_updates.pairs import TrainingPair
from tests.model_updates.tiny import DOMAIN, draw, make_strategy, teach, tiny_encoder, toy_pairs

Rows = NDArray[np.float64]


def directions(*degrees: float) -> Rows:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1)


def pairs_of(count: int) -> NDArray[np.int64]:
    return np.stack([np.arange(count)] * 2, axis=1)


def space(count: int = 60, dim: int = 16, seed: int = 0) -> Vectors:
    """Pictures, and texts near enough to theirs that all are found."""
    generator = np.random.default_rng(seed)
    pictures = generator.normal(size=(count, dim))
    return Vectors(pictures, pictures + 0.2 * generator.normal(size=(count, dim)), pairs_of(count))


def rotation(dim: int = 16, seed: int = 3) -> Rows:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


def recall(vectors: Vectors) -> float:
    pictures, texts = (
        rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (vectors.pictures, vectors.texts)
    )
    return float(100 * retrieved(pictures, texts, vectors.pairs)[0].mean())


def test_both_towers_turned_alike_change_no_angle_and_no_search() -> None:
    before, turn = space(), rotation()
    after = replace(before, pictures=before.pictures @ turn, texts=before.texts @ turn)
    found = drift(before, after)
    for angles in (found.sam_pictures, found.sam_texts, found.imam_text_to_image, found.imam_image_to_text):
        assert angles.shares == (100, 0, 0, 0, 0)
        assert angles.mean == pytest.approx(0, abs=1e-6)
    assert found.ram_pictures.shares[-1] > 95
    assert recall(before) == recall(after) == 100
    # Neither tower alone may be the new one: an index of before is of no use.
    assert (found.finds.before, found.finds.after, found.finds.mixed < 20) == (100, 100, True)


def test_one_tower_turned_alone_keeps_its_shape_and_breaks_search() -> None:
    before = space()
    after = replace(before, texts=before.texts @ rotation())
    found = drift(before, after)
    assert found.sam_texts.mean == pytest.approx(0, abs=1e-6)
    assert found.sam_pictures.mean == 0
    assert found.ram_pictures.mean == pytest.approx(0, abs=1e-5)
    assert found.ram_texts.shares[-1] > 95
    assert found.imam_text_to_image.count == 60
    assert found.imam_text_to_image.shares[-1] > 95
    assert (recall(before), recall(after) < 20) == (100, True)
    assert (found.finds.before, found.finds.mixed) == (100, found.finds.after)


def test_the_length_of_a_vector_does_not_matter() -> None:
    before = space()
    longer = replace(before, pictures=before.pictures * 7, texts=before.texts * np.arange(1, 61)[:, None])
    assert drift(before, longer).ram_texts.mean == pytest.approx(0, abs=1e-5)


def test_an_edge_belongs_to_the_bin_below_it() -> None:
    found = spread(np.array([0.0, 5.0, 5.1, 10.0, 15.0, 20.0, 20.1, 180.0]), CHANGE_EDGES)
    assert found.shares == (25, 25, 12.5, 12.5, 25)
    turned = spread(np.array([0.0, 15.0, 30.0, 30.5]), ROTATION_EDGES)
    assert turned.shares == (50, 0, 0, 25, 25)
    assert turned.mean == pytest.approx(75.5 / 4)


def test_of_no_angle_there_is_no_mean() -> None:
    assert spread(np.array([]), CHANGE_EDGES) == Angles(CHANGE_EDGES, (0, 0, 0, 0, 0), None, 0)


def test_self_angles_by_hand() -> None:
    changes = self_angle_changes(directions(0, 30, 90), directions(0, 42, 90))
    assert sorted(changes) == pytest.approx([0, 12, 12])


def test_rotation_and_inter_modal_angles_by_hand() -> None:
    before = Vectors(directions(0, 90), directions(10, 80), pairs_of(2))
    after = Vectors(directions(17, 90), directions(10, 68), pairs_of(2))
    found = drift(before, after)
    assert found.ram_pictures.shares == (50, 50, 0, 0, 0)  # 17 and 0
    assert found.ram_texts.mean == pytest.approx(6)
    # Between text and picture: 10 and 10 before, 7 and 22 after.
    assert found.imam_text_to_image.shares == (50, 0, 50, 0, 0)
    assert found.imam_text_to_image.mean == pytest.approx((3 + 12) / 2)


def test_pairs_that_the_earlier_version_did_not_find_are_left_out() -> None:
    # Text 1 is nearest to picture 0; picture 1 is nearest to text 1 all the same.
    before = Vectors(directions(0, 90), directions(5, 40), pairs_of(2))
    text_finds, picture_finds = retrieved(before.pictures, before.texts, before.pairs)
    assert text_finds.tolist() == [True, False]
    assert picture_finds.tolist() == [True, True]
    found = drift(before, Vectors(directions(0, 90), directions(5, 90), pairs_of(2)))
    assert (found.imam_text_to_image.count, found.imam_image_to_text.count) == (1, 2)
    assert found.imam_text_to_image.mean == pytest.approx(0, abs=1e-6)


def test_of_several_texts_of_a_picture_the_nearest_counts_and_a_tie_with_a_wrong_one_does_not() -> None:
    pairs = np.array([[0, 0], [0, 1], [1, 2]])
    _, picture_finds = retrieved(directions(0, 90), directions(10, 20, 80), pairs)
    assert picture_finds.tolist() == [True, False, True]
    tied, _ = retrieved(directions(0, 20), directions(10), np.array([[0, 0]]))
    assert tied.tolist() == [False]
    alone, _ = retrieved(directions(0, 0), directions(0, 1), pairs_of(2))
    assert alone.tolist() == [False, False]


def test_a_sample_is_the_same_for_the_same_seed_and_bounds_the_work() -> None:
    before, after = space(300), space(300, seed=1)
    some = self_angle_changes(before.pictures, after.pictures, sample=40, seed=5)
    assert len(some) == 40 * 39 // 2
    assert np.array_equal(some, self_angle_changes(before.pictures, after.pictures, sample=40, seed=5))
    assert not np.array_equal(some, self_angle_changes(before.pictures, after.pictures, sample=40, seed=6))


def test_large_galleries_are_ranked_in_blocks_with_the_same_result() -> None:
    many = space(1500)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (many.pictures, many.texts)]
    text_finds, _ = retrieved(unit[0], unit[1], many.pairs)
    cosines = unit[1] @ unit[0].T
    assert np.array_equal(text_finds, cosines.argmax(axis=1) == np.arange(1500))


def test_vectors_of_other_things_are_refused() -> None:
    with pytest.raises(ValueError, match="the same pictures, texts and pairs"):
        drift(space(10), space(11))


def test_versions_are_compared_through_the_cache_on_their_own_routes() -> None:
    before = tiny_encoder()
    after = before.copy()
    pairs = [
        TrainingPair(pair.image_id, pair.text, pair.language, DOMAIN)
        for pair in [*toy_pairs("en"), *toy_pairs("de")]
    ]
    one = embedded(before, pairs, draw, NoCache())
    assert (one.pictures.shape, one.texts.shape, one.pairs.shape) == ((16, 24), (32, 24), (32, 2))
    same = drift(one, embedded(after, pairs, draw, NoCache()))
    spreads = [angles for name, angles in asdict(same).items() if name != "finds"]
    assert all(angles["mean"] in {None, 0} or angles["mean"] < 1e-4 for angles in spreads)
    teach(after, make_strategy("language-tables"), toy_pairs("de"))
    tables = drift(one, embedded(after, pairs, draw, NoCache()))
    assert tables.ram_pictures.mean == pytest.approx(0, abs=1e-4)
    assert tables.ram_texts.mean is not None
    assert tables.ram_texts.mean > 1
    teach(after, make_strategy("finetune", learning_rate=1e-2))
    moved = drift(one, embedded(after, pairs, draw, NoCache()))
    assert moved.ram_pictures.mean is not None
    assert moved.ram_pictures.mean > 1
