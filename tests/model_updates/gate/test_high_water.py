"""The best of many versions, without the luck of having measured best."""

import numpy as np

from model_updates.gate.high_water import high_water

THINGS = 150
CLUSTERS = [f"thing {n}" for n in range(THINGS)]


def versions(
    levels: list[float], rng: np.random.Generator
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Versions that share what is hard and differ by chance by 0.15 a caption."""
    hard = rng.normal(0.0, 0.3, THINGS)
    return [level + hard + rng.normal(0.0, 0.15 / 2**0.5, THINGS) for level in levels]


def test_nine_equal_versions_have_no_lucky_best() -> None:
    lifts, naive = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = versions([0.5] * 9, rng)
        shared = np.mean([scores.mean() for scores in found])
        lifts.append(100 * (high_water(found, CLUSTERS).level - shared))
        naive.append(100 * (max(scores.mean() for scores in found) - shared))
    assert np.mean(naive) > 1.1
    assert np.mean(lifts) < 0.25


def test_a_version_that_was_better_for_certain_is_the_high_water() -> None:
    lost = []
    for seed in range(30):
        found = versions([0.50, 0.48, 0.46], np.random.default_rng(seed))
        lost.append(100 * (found[0].mean() - high_water(found, CLUSTERS).level))
    assert abs(np.mean(lost)) < 1.0


def test_its_scores_are_per_caption_and_live_wins_ties() -> None:
    scores = np.random.default_rng(0).random(THINGS)
    water = high_water([scores, scores.copy()], CLUSTERS)
    assert water.best == 0
    assert np.allclose(water.scores, scores)
    assert water.level == np.float64(scores.mean())
