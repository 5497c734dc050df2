"""Items of text and picture that find their own kind: mAP@N as the paper defines it."""

import numpy as np
import pytest

from model_updates.fusion.retrieval import fusion_features, mean_features, relevances, retrieval_map
from model_updates.search_encoder import Rows
from tests.model_updates.tiny import draw, make_strategy, teach, tiny_encoder, toy_pairs


def at_angles(*degrees: float) -> Rows:
    radians = np.deg2rad(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_what_is_near_comes_first_and_all_that_is_right_is_counted() -> None:
    gallery, classes = at_angles(50, 10, 40, 20, 30), ["b", "a", "b", "b", "a"]
    found, totals = relevances(at_angles(0), gallery, ["a"], classes, [None], 5)
    assert found == [[True, False, True, False, False]]
    assert totals == [2]


def test_an_average_precision_counts_no_deeper_than_there_are_right_items() -> None:
    features = at_angles(0, 10, 20, 30, 40, 50)
    # Right, wrong, right among five: N' = 2, one hit in it, at the first place.
    assert retrieval_map(features, list("aababb"), [5], queries=[0])[5] == pytest.approx(100.0)
    # Three right ones, at 1, 3 and 5: N' = 3, hits at 1 and 3.
    assert retrieval_map(features, list("aababa"), [5], queries=[0])[5] == pytest.approx(
        100 * (1 + 2 / 3) / 2
    )


def test_a_query_does_not_find_itself() -> None:
    features = at_angles(0, 1, 90)
    assert retrieval_map(features, ["a", "b", "a"], [1], queries=[0]) == {1: 0.0}
    assert retrieval_map(features, ["a", "a", "b"], [1, 2], queries=[0]) == {1: 100.0, 2: 100.0}


def test_an_encoder_that_maps_everything_to_one_vector_finds_nothing() -> None:
    assert retrieval_map(at_angles(0, 0, 0, 0), ["a", "b", "a", "b"], [1])[1] == 0.0


def test_the_stand_in_is_the_mean_of_both_vectors() -> None:
    assert np.allclose(mean_features(5 * at_angles(0), 2 * at_angles(90)), at_angles(45), atol=1e-6)


def test_fusion_features_are_unit_and_in_the_order_of_the_items_whatever_their_language() -> None:
    encoder = tiny_encoder()
    with pytest.raises(ValueError, match="no fusion encoder"):
        fusion_features(encoder, toy_pairs(), draw)
    teach(encoder, make_strategy("ctp", fusion=True))
    items = [*toy_pairs("en")[:3], *toy_pairs("de")[:3], *toy_pairs("en")[3:5]]
    features = fusion_features(encoder, items, draw)
    assert features.shape == (8, 32)
    assert np.allclose(np.linalg.norm(features, axis=1), 1, atol=1e-5)
    assert np.allclose(features[4:5], fusion_features(encoder, items[4:5], draw), atol=1e-4)
    assert np.allclose(features[6:7], fusion_features(encoder, items[6:7], draw), atol=1e-4)
    whole = fusion_features(encoder, items, draw, whole=True)
    assert whole.shape == features.shape
    assert not np.allclose(whole, features, atol=1e-2)
