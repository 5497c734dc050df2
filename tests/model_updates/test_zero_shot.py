"""Zero-shot probes: prompt ensembles, accuracies with ties against the encoder, and degradation."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model_updates.evaluation import pd
from model_updates.search_encoder import unit
from model_updates.zero_shot import (
    PROMPTS,
    Probe,
    ZeroShotResult,
    class_vectors,
    classify,
    measure,
    performance_degradation,
)
from tests.model_updates.tiny import SHAPES, draw, image_ids, make_strategy, teach, tiny_encoder, toy_pairs

PROBE = Probe(
    "shapes",
    tuple(image_ids()),
    tuple(SHAPES.index(image_id.split()[1]) for image_id in image_ids()),
    SHAPES,
)


def result(right: int, of: int = 10_000, digest: str = "same") -> ZeroShotResult:
    ranks = np.concatenate([np.zeros(right, dtype=np.int64), np.ones(of - right, dtype=np.int64)])
    return ZeroShotResult("probe", digest, ("a", "b"), np.zeros(of, dtype=np.int64), ranks)


def test_the_papers_drop_from_67_73_to_60_31_is_7_42() -> None:
    assert pd(67.73, 60.31) == pytest.approx(7.42)
    assert performance_degradation([result(6773), result(6510), result(6031)]) == pytest.approx([2.63, 7.42])


def test_degradation_is_negative_where_an_encoder_gained() -> None:
    assert performance_degradation([result(5000), result(6000)]) == pytest.approx([-10.0])


def test_results_of_different_probes_are_not_compared() -> None:
    with pytest.raises(ValueError, match="different probes"):
        performance_degradation([result(1), result(1, digest="other")])
    with pytest.raises(ValueError, match="before the first update"):
        performance_degradation([])


def test_a_class_is_the_mean_of_its_prompts_made_unit() -> None:
    encoder = tiny_encoder()
    vectors = class_vectors(encoder, PROBE)
    texts = [prompt.format("square") for prompt in PROMPTS]
    by_hand = encoder.encode_texts(texts, "en").mean(axis=0)
    assert np.allclose(vectors[1], by_hand / np.linalg.norm(by_hand), atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_the_nearest_class_wins_whatever_the_lengths_of_features() -> None:
    classes = unit(np.eye(3, dtype=np.float32))
    images = unit(np.array([[5, 1, 0], [0, 0.1, 0.2], [0, 3, 2]], dtype=np.float32))
    assert classify(images, classes, [0, 2, 1]).tolist() == [0, 0, 0]
    assert classify(images, classes, [1, 1, 0]).tolist() == [1, 1, 2]


def test_an_encoder_that_maps_everything_to_one_vector_is_never_right() -> None:
    same = np.ones((4, 3), dtype=np.float32) / np.sqrt(3, dtype=np.float32)
    assert classify(same, same[:3], [0, 1, 2, 0]).tolist() == [2, 2, 2, 2]


def test_nan_is_refused() -> None:
    broken = np.full((1, 3), np.nan, dtype=np.float32)
    with pytest.raises(ValueError, match="NaN"):
        classify(broken, np.eye(3, dtype=np.float32), [0])


def test_teaching_shapes_raises_their_accuracy_and_pd_says_so() -> None:
    encoder = tiny_encoder()
    before = measure(encoder, PROBE, draw)
    teach(encoder, make_strategy("finetune", epochs=40, learning_rate=2e-3), toy_pairs("en"))
    after = measure(encoder, PROBE, draw)
    assert before.chance == 25.0
    assert after.accuracy > before.accuracy + 25
    assert performance_degradation([before, after]) == [before.accuracy - after.accuracy]
    assert after.accuracy_at(4) == 100.0


def test_what_was_measured_can_be_looked_at_by_class_and_written_down() -> None:
    labels = np.array([0, 0, 1])
    found = ZeroShotResult("p", "d", ("a", "b", "c"), labels, np.array([0, 1, 0]))
    assert found.by_class() == {"a": 50.0, "b": 100.0}
    assert found.query_scores.tolist() == [1.0, 0.0, 1.0]
    assert json.loads(json.dumps(found.to_json()))["ranks"] == [0, 1, 0]


@pytest.mark.parametrize(
    "change",
    [
        {"labels": (4,) * 16},
        {"image_ids": (), "labels": ()},
        {"labels": (0,) * 3},
        {"classes": ("circle",) * 4},
        {"prompts": ()},
        {"prompts": ("a picture",)},
    ],
)
def test_an_unusable_probe_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="probe 'shapes'"):
        replace(PROBE, **change)


def test_another_list_of_classes_is_another_probe() -> None:
    assert replace(PROBE).digest == PROBE.digest
    assert replace(PROBE, classes=(*SHAPES, "star")).digest != PROBE.digest
    assert replace(PROBE, prompts=("{}",)).digest != PROBE.digest
