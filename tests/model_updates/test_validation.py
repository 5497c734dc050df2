"""The rule that chooses an epoch."""

import pytest

from model_updates.validation import Score, better, near


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
