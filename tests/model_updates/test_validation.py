"""The rule that chooses an epoch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model_updates.inserts import domain
from model_updates.pair_sets import PictureRows
from model_updates.parts.adapters import FeatureHead
from model_updates.strategy import Tolerance
from model_updates.validation import Score, _error, better, near, validation_scores
from tests.model_updates.tiny import context_for, data_for, draw, make_strategy, tiny_encoder, toy_pairs


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
        if near(score, best, Tolerance()):
            chosen = epoch
    assert chosen == kept


@pytest.mark.parametrize(
    ("best", "near_enough", "too_low"),
    [
        (Score(50, 3, picture=1), 44, 43.9),  # two errors are more than two pictures
        (Score(100, 0, picture=5), 90, 89.9),  # all found: no error at all
    ],
)
def test_a_strategy_may_tolerate_more(best: Score, near_enough: float, too_low: float) -> None:
    more = Tolerance(errors=2, pictures=2)
    assert near(Score(near_enough, 1), best, more)
    assert not near(Score(too_low, 1), best, more)
    assert not near(Score(near_enough, 1), best, Tolerance())
    assert Tolerance(errors=2) | Tolerance(pictures=2) == more


def test_the_error_counts_pictures_not_captions() -> None:
    hits, one_each = np.array([0.0, 100.0, 0.0, 100.0]), np.arange(4)
    assert _error(hits, one_each) == pytest.approx(50 / 2)  # the population's 50 over the root of 4
    repeated, five_each = np.repeat(hits, 5), np.repeat(one_each, 5)
    assert _error(repeated, five_each) == pytest.approx(_error(hits, one_each))


def test_new_and_known_pairs_are_looked_up_among_the_pictures_of_both() -> None:
    pairs = toy_pairs("en")
    encoder, strategy = tiny_encoder(), make_strategy("finetune")
    rows = data_for(strategy, context_for(encoder, pairs)).train
    new, known = rows.select(range(4)), rows.select(range(4, len(pairs)))
    alone, nothing = validation_scores(encoder, new, None, strategy, draw)
    beside, sampled = validation_scores(encoder, new, known, strategy, draw)
    everything, _ = validation_scores(encoder, rows, None, strategy, draw)
    assert nothing is None
    assert alone is not None
    assert alone.picture == pytest.approx(100 / 4)
    assert beside is not None
    assert sampled is not None
    assert everything is not None
    assert beside.mean < alone.mean, "twelve more pictures stand in the way"
    assert everything.mean == pytest.approx((4 * beside.mean + 12 * sampled.mean) / 16)
    assert validation_scores(encoder, rows.select([]), known, strategy, draw) == (None, None)


def test_an_epoch_is_looked_at_as_it_would_be_deployed() -> None:
    # A domain's head drops half of its features in training, and would score by luck.
    encoder, strategy = tiny_encoder(), make_strategy("finetune")
    head = FeatureHead(domain("elsewhere"), FeatureHead.configuration(encoder.trunk_dim, encoder.dim))
    encoder.inserts.append(head)
    rows = data_for(strategy, context_for(encoder, toy_pairs("en"))).train
    encoder.train()
    validation_scores(encoder, rows, None, strategy, draw)
    assert (encoder.model.training, head.training) == (False, False)


def test_the_length_of_a_pictures_feature_changes_no_score() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("cll-clip")
    assert "image" not in strategy.touches, "its pictures come as features that were made before"
    rows = data_for(strategy, context_for(encoder, toy_pairs("en"))).train
    features = rows.pictures.features
    lengths = 2.0 ** (torch.arange(len(features)) % 7 - 3)  # powers of two round nothing
    stretched = replace(rows, pictures=PictureRows(rows.pictures.trunk, lambda: features * lengths[:, None]))
    plain, _ = validation_scores(encoder, rows, None, strategy, draw)
    assert validation_scores(encoder, stretched, None, strategy, draw)[0] == plain
    assert plain is not None
    assert 0 < plain.mean < 100
