"""Oracles: worked numbers of the metrics' specification, then brute force over sorted lists."""

import json
from collections import Counter

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates.evaluation import (
    Shown,
    SliceResult,
    average_precision_at_n,
    average_recall,
    bwt,
    bwt_incclip,
    caption_ranks,
    forgetting,
    image_ranks,
    map_at_n,
    mean_recall,
    pd,
    rank_slice,
)
from model_updates.gate.bootstrap import holm_levels, paired_bootstrap

TRIANGLE = [[0.8], [0.6, 0.7], [0.5, 0.6, 0.9]]


def unit_rows(rows: int, *, dim: int = 8, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def ranked(images: NDArray[np.float32], texts: NDArray[np.float32], of: NDArray[np.int64]) -> SliceResult:
    ids = tuple(f"image{i}" for i in range(len(images)))
    return SliceResult("en", "photo", ids, of, *rank_slice(images, texts, of))


def test_a_collapsed_encoder_finds_nothing_and_a_perfect_one_everything() -> None:
    ones = np.full((12, 4), 0.5, dtype=np.float32)
    assert set(ranked(ones, ones, np.arange(12)).recalls().values()) == {0.0}
    eye = np.eye(12, dtype=np.float32)
    assert set(ranked(eye, eye, np.arange(12)).recalls().values()) == {100.0}


def test_ranks_match_a_pessimistic_sort() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        similarities = rng.integers(0, 4, size=(9, 5)).astype(np.float64)  # many ties
        of = rng.integers(0, 5, size=9)
        expected = [
            sorted((-row[i], i == own) for i in range(5)).index((-row[own], True))
            for row, own in zip(similarities, of, strict=True)
        ]
        assert caption_ranks(similarities, of).tolist() == expected
        ranks, images = image_ranks(similarities, of)
        for rank, image in zip(ranks, images, strict=True):
            order = sorted((-similarities[c, image], of[c] == image) for c in range(9))
            assert rank == next(position for position, (_, is_own) in enumerate(order) if is_own)
        assert images.tolist() == sorted(set(of.tolist()))


@pytest.mark.parametrize("chunk", [1, 3, 7, 1000])
def test_ranking_in_blocks_equals_ranking_the_whole_matrix(chunk: int) -> None:
    images, texts = unit_rows(20), unit_rows(33, seed=1)
    of = np.random.default_rng(2).integers(0, 20, size=33)
    text_ranks, ranks_of_images, positions = rank_slice(images, texts, of, chunk=chunk)
    whole = texts @ images.T
    assert text_ranks.tolist() == caption_ranks(whole, of).tolist()
    assert ranks_of_images.tolist() == image_ranks(whole, of)[0].tolist()
    assert positions.tolist() == image_ranks(whole, of)[1].tolist()


def test_styles_of_one_thing_take_no_more_places_than_one_of_them() -> None:
    shown = [0, 1, 1, 1, 2, 1]  # the last is a second picture of its thing in the first domain
    domains = ["a", "a", "b", "c", "a", "a"]
    scores = np.array([[5.0, 9, 8, 7, 6, 1], [5, 9, 1, 2, 3, 8], [5, 1, 9, 8, 3, 2]])
    own = np.array([0, 0, 0])
    assert caption_ranks(scores, own).tolist() == [4, 2, 2]
    # One thing in three styles and another; two pictures of one style count twice; two of different styles once.
    assert Shown.of(shown, domains).ranks(scores, own).tolist() == [2, 2, 1]
    single = Shown.of(range(6), domains)
    assert single.ranks(scores, own).tolist() == caption_ranks(scores, own).tolist()
    assert single.ranks(scores, own, tolerance=9.0).tolist() == [5, 5, 5]


def test_things_are_counted_as_a_plain_loop_counts_them() -> None:
    random = np.random.default_rng(0)
    for pictures, things, styles in ((1, 1, 1), (40, 5, 3), (90, 60, 2), (300, 2, 2)):
        shown, style = random.integers(0, things, pictures), random.integers(0, styles, pictures)
        scores = random.integers(0, 30, size=(20, pictures)).astype(np.float32)  # many are equal
        own = random.integers(0, pictures, 20)
        wanted = []
        for row, place in zip(scores, own, strict=True):
            ahead = Counter(
                (shown[n], style[n]) for n in range(pictures) if n != place and row[n] >= row[place]
            )
            most = {thing: max(ahead[thing, other] for other in range(styles)) for thing in range(things)}
            wanted.append(sum(most.values()))
        assert Shown.of(shown.tolist(), [str(n) for n in style]).ranks(scores, own).tolist() == wanted


def test_recall_does_not_depend_on_the_order_of_the_gallery() -> None:
    images, texts = unit_rows(20), unit_rows(20, seed=1)
    order = np.random.default_rng(3).permutation(20)
    straight = ranked(images, texts, np.arange(20)).recalls()
    assert ranked(images[order], texts, np.argsort(order)).recalls() == straight


def test_an_image_is_found_by_its_best_caption_and_its_captions_do_not_compete() -> None:
    similarities = np.array([[0.9, 0.0], [0.9, 0.0], [0.1, 0.5]])
    of = np.array([0, 0, 1])
    assert image_ranks(similarities, of)[0].tolist() == [0, 0]
    assert caption_ranks(similarities, of).tolist() == [0, 0, 0]


def test_a_recall_that_cannot_miss_says_so() -> None:
    wrong = unit_rows(3)
    backwards = ranked(wrong, -wrong, np.arange(3))
    assert backwards.text_ranks.tolist() == [2, 2, 2]
    found = backwards.recalls()
    assert (found["t2i_r1"], found["t2i_r5"], found["t2i_r10"]) == (0, 100, 100)
    assert backwards.caveat == "Pictures to choose from: only 3, so any encoder reaches 100 in R@5, R@10."
    said = {n: ranked(unit_rows(n), unit_rows(n), np.arange(n)).caveat for n in (5, 6, 10, 11)}
    assert [said[n].split(" in ")[-1] for n in (5, 6, 10, 11)] == ["R@5, R@10.", "R@10.", "R@10.", ""]


def test_nan_is_refused() -> None:
    images = unit_rows(3)
    broken = images.copy()
    broken[1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        rank_slice(images, broken, np.arange(3))
    with pytest.raises(ValueError, match="NaN"):
        rank_slice(broken, images, np.arange(3))


@pytest.mark.parametrize("of", [[0, 3], [-1, 0], []])
def test_captions_that_point_outside_the_gallery_are_refused(of: list[int]) -> None:
    with pytest.raises(ValueError, match="(?i)caption"):
        rank_slice(unit_rows(3), unit_rows(len(of)), np.array(of, dtype=np.int64))


def test_query_scores_average_to_the_recalls() -> None:
    result = ranked(unit_rows(40), unit_rows(80, seed=1), np.repeat(np.arange(40), 2))
    recalls = result.recalls()
    for metric in ("t2i_r1", "t2i_r5", "t2i_r10"):
        assert 100 * result.query_scores(metric).mean() == pytest.approx(recalls[metric])
    three = [recalls[metric] for metric in ("t2i_r1", "t2i_r5", "t2i_r10")]
    assert 100 * result.query_scores("t2i_mean").mean() == pytest.approx(sum(three) / 3)
    assert result.chance("t2i_r5") == pytest.approx(5 / 40)
    assert result.chance("t2i_mean") == pytest.approx(16 / 3 / 40)
    with pytest.raises(ValueError, match="t2i_mean"):
        result.query_scores("i2t_r1")


def test_a_slice_result_survives_json() -> None:
    result = ranked(unit_rows(6), unit_rows(9, seed=1), np.arange(9) % 6)
    back = SliceResult.from_json(json.loads(json.dumps(result.to_json())))
    assert back.to_json() == result.to_json()
    assert back.recalls() == result.recalls()


def test_metrics_over_tasks_have_their_worked_values() -> None:
    assert average_recall(TRIANGLE) == pytest.approx(2 / 3)
    assert forgetting(TRIANGLE) == pytest.approx(0.2)
    assert bwt(TRIANGLE) == pytest.approx(-0.2)
    assert bwt_incclip(TRIANGLE) == pytest.approx(-0.116667, abs=1e-6)
    assert mean_recall([43.43, 72.10, 80.08, 43.39, 71.15, 79.06]) == pytest.approx(64.87, abs=0.005)
    assert pd(67.73, 60.31) == pytest.approx(7.42)


def test_metrics_over_tasks_are_undefined_for_one_task() -> None:
    assert average_recall([[0.8]]) == 0.8
    assert forgetting([[0.8]]) is None
    assert bwt([[0.8]]) is None
    assert bwt_incclip([[0.8]]) is None


def test_what_lies_right_of_the_diagonal_is_never_read() -> None:
    nan = float("nan")
    square = [[0.8, nan, nan], [0.6, 0.7, nan], [0.5, 0.6, 0.9]]
    for metric in (average_recall, forgetting, bwt, bwt_incclip):
        assert metric(square) == metric(TRIANGLE)


def test_forgetting_counts_from_the_best_moment_not_the_first() -> None:
    assert forgetting([[0.5], [0.9, 0.1], [0.6, 0.1, 0.0]]) == pytest.approx(0.15)


def test_average_precision_divides_by_the_hits_found() -> None:
    found = [True, False, True, False, False]
    assert average_precision_at_n(found, 5) == pytest.approx(0.83333, abs=1e-5)
    assert average_precision_at_n(found, 5, relevant_in_gallery=2) == 1.0
    assert average_precision_at_n([False] * 5, 5) == 0.0
    assert map_at_n([found, [False] * 5], 5) == pytest.approx(0.416667, abs=1e-5)
    assert map_at_n([], 5) is None


def test_the_bootstrap_agrees_with_drawing_images_one_by_one() -> None:
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 60, size=150)
    a, b = (rng.integers(0, 2, size=150).astype(np.float64) for _ in range(2))
    result = paired_bootstrap(a, b, clusters, seed=1, samples=4000)
    difference, names = a - b, np.unique(clusters)
    slow = []
    for _ in range(2000):
        drawn = np.concatenate([difference[clusters == c] for c in rng.choice(names, len(names))])
        slow.append(drawn.mean())
    assert result.difference == pytest.approx(difference.mean())
    assert result.means.std() == pytest.approx(np.std(slow), rel=0.08)
    assert result.interval(0.9)[0] == pytest.approx(np.quantile(slow, 0.05), abs=0.015)


def test_captions_of_one_image_count_as_one_observation() -> None:
    rng = np.random.default_rng(0)
    once = rng.integers(-1, 2, size=100).astype(np.float64)
    five_times = np.repeat(once, 5)
    zeros = np.zeros(500)
    clustered = paired_bootstrap(five_times, zeros, np.repeat(np.arange(100), 5), seed=0).means.std()
    naive = paired_bootstrap(five_times, zeros, np.arange(500), seed=0).means.std()
    assert clustered / naive == pytest.approx(5**0.5, rel=0.1)


def test_one_sided_bounds_miss_about_as_often_as_they_say() -> None:
    # 400 trials at 5 %: mean 20, standard deviation 4.4; outside 4..40 by chance less than once in 10,000.
    rng = np.random.default_rng(7)
    misses = 0
    for trial in range(400):
        change = rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.75, 0.15], size=200)
        misses += (
            paired_bootstrap(change, np.zeros(200), np.arange(200), seed=trial, samples=500).low(0.95) > 0.05
        )
    assert 4 <= misses <= 40


def test_the_bootstrap_is_reproducible_and_refuses_unpaired_queries() -> None:
    a, b, clusters = np.ones(5), np.zeros(5), np.arange(5)
    first, again = (paired_bootstrap(a, b, clusters, seed=3).means for _ in range(2))
    assert np.array_equal(first, again)
    with pytest.raises(ValueError, match="same queries"):
        paired_bootstrap(a, b[:4], clusters, seed=0)


def test_holm_levels_follow_the_worked_example() -> None:
    levels = holm_levels([0.01, 0.04, 0.03, 0.005], 0.05)
    assert levels == pytest.approx([0.05 / 3, 0.05 / 2, 0.05 / 2, 0.05 / 4])
