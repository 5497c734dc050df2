"""The rule that chooses an epoch."""

import numpy as np
import pytest

from model_updates.validation import Score, _error, better, near


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([(10, 2), (20, 3), (18, 3), (12, 2)], 3),  # 18 is within 3 of 20, 12 is not
        ([(10, 2), (20, 3), (16, 3), (17, 3)], 4),  # exactly one error away
        ([(20, 3), (18, 3), (30, 3), (26, 3)], 3),  # the third took the second's right away
        ([(5, 0), (5, 0)], 2),  # equal, and no spread: the later
        ([(5, 0), (4.9, 9)], 1),  # the error that counts is the best one's
    ],
)
def test_the_latest_epoch_within_one_standard_error_of_the_best_is_kept(
    scores: list[tuple[float, float]], kept: int
) -> None:
    best, chosen = None, 0
    for epoch, (mean, error) in enumerate(scores, start=1):
        score = Score(mean, error)
        best = better(best, score)
        if near(score, best):
            chosen = epoch
    assert chosen == kept


def test_the_error_counts_pictures_not_captions() -> None:
    hits, one_each = np.array([0.0, 100.0, 0.0, 100.0]), np.arange(4)
    assert _error(hits, one_each) == pytest.approx(50 / 2)  # the population's 50 over the root of 4
    repeated, five_each = np.repeat(hits, 5), np.repeat(one_each, 5)
    assert _error(repeated, five_each) == pytest.approx(_error(hits, one_each))
