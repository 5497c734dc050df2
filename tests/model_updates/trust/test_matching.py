"""Are captions of their pictures: estimates, row shifts, and when nobody can tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates.trust.cross_fit import CrossFit, as_one, blocks_of
from model_updates.trust.evidence import ENCODER, WORDS, Evidence, UploadedPairs
from model_updates.trust.matching import REFERENCE, Impression, matching
from model_updates.trust.row_shift import moved, row_shift
from model_updates.trust.word_agreement import likeness, sequences_of, words_of
from tests.model_updates.synthetic_pairs import pair_set, shuffled, with_captions

SIZE = 300
TRAINING = np.arange(SIZE)[np.arange(SIZE) % 5 != 0]
FEW_SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
"""That it is not one lucky draw others show with -m slow."""
PARTS = {"training": TRAINING, "held out": np.arange(SIZE)[np.arange(SIZE) % 5 == 0]}


def area(doubt: NDArray[np.float64], wrong: NDArray[np.bool_]) -> float:
    """The chance that a wrong pair is doubted more than a right one."""
    return float(np.mean(doubt[wrong][:, None] > doubt[~wrong][None]))


def test_words_and_sequences() -> None:
    assert words_of("Ein Hund, zwei-mal!") == ["ein", "hund", "zwei", "mal"]
    assert {"=hund", "<hu", "nd>", "hund>"} <= set(sequences_of("Hund"))
    assert "狗" in sequences_of("红狗")
    close = likeness([["a", "b"], ["a", "b"], ["b", "c"], ["c", "d"], []])
    assert close[0, 1] == pytest.approx(1)
    assert 0 < close[0, 2] < 1
    assert close[0, 3] == 0
    assert close[4, 4] == 0


def test_many_sequences_share_places_and_stay_comparable() -> None:
    bags = [[f"{n}-{k}" for k in range(30)] + [f"of {n // 2}"] for n in range(1_500)]
    close = likeness(bags, seen_in=1)
    assert np.diagonal(close) == pytest.approx(1)
    assert close[0, 1] > 3 * close[0, 2:].mean()


def test_groups_stay_whole_and_classes_tie_nothing() -> None:
    labels = [n // 3 for n in range(90)]
    classes = ["cat", "dog"] * 45
    groups = as_one(labels, classes)
    assert len(set(groups.tolist())) == 30
    blocks = blocks_of(groups)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(90))
    homes = {int(group): number for number, block in enumerate(blocks) for group in groups[block]}
    assert all(homes[int(group)] == number for number, block in enumerate(blocks) for group in groups[block])


def test_cross_fit_is_what_fitting_without_the_block_gives() -> None:
    random = np.random.default_rng(3)
    pictures, captions = (random.normal(size=(60, 5)).astype(np.float32) for _ in range(2))
    kernel, ours = pictures @ pictures.T, captions @ captions.T
    blocks = blocks_of(np.arange(60))
    found = CrossFit(kernel, blocks).scores(ours)[1]
    block = blocks[1]
    rest = np.setdiff1d(np.arange(60), block)
    scale = np.diagonal(kernel).mean()
    fitted = kernel[np.ix_(block, rest)] @ np.linalg.solve(
        kernel[np.ix_(rest, rest)] + 1.5 * scale * np.eye(60 - len(block)), ours[np.ix_(rest, block)]
    )
    assert found == pytest.approx(fitted, abs=2e-3)


# The ends of what is found matched and of what is not, and under -m slow one more on either side.
@pytest.mark.parametrize(
    "share", [0.0, 0.3, *(pytest.param(share, marks=pytest.mark.slow) for share in (0.05, 0.6))]
)
def test_the_mismatched_share_is_estimated_in_a_language_nobody_knows(share: float) -> None:
    pairs, wrong = shuffled(pair_set(SIZE, beside=True), share)
    found = matching(pairs, PARTS)
    assert found.why_told == WORDS
    assert found.mismatch is not None
    assert found.mismatch.share == pytest.approx(wrong.mean(), abs=0.1)
    assert found.found is (Impression.MISMATCHED if share >= 0.3 else Impression.MATCHED)
    if 0 < share < 1:
        assert area(found.mismatch.doubt, wrong) > 0.9


def test_the_doubtful_pairs_are_mostly_wrong_ones() -> None:
    pairs, wrong = shuffled(pair_set(600, knows=True), 0.05)
    judged = matching(pairs, {}).mismatch
    assert judged is not None
    assert len(judged.doubtful) >= 10
    assert wrong[judged.doubtful].mean() >= 0.6


def test_the_encoder_tells_where_it_knows_the_language() -> None:
    clean = pair_set(SIZE, knows=True)
    assert matching(clean, PARTS).found is Impression.MATCHED
    found = matching(shuffled(clean, 0.3)[0], PARTS)
    assert (found.found, found.why_told) == (Impression.MISMATCHED, ENCODER)


def test_unrelated_captions_are_called_so() -> None:
    pairs = shuffled(pair_set(SIZE, beside=True), 1.0)[0]
    assert matching(pairs, PARTS).found is Impression.UNRELATED


def test_nobody_can_tell_where_pictures_show_little() -> None:
    dim = replace(pair_set(SIZE, sees=0.25), beside=())
    found = matching(dim, PARTS)
    assert found.found is Impression.UNTOLD
    assert not found.told
    assert matching(shuffled(dim, 0.3)[0], PARTS).found is Impression.UNTOLD


def test_a_learned_language_does_not_make_a_strange_domain_readable() -> None:
    dim = pair_set(SIZE, sees=0.12, knows=True)
    assert matching(dim, PARTS).found is Impression.UNTOLD


def test_trusted_pairs_of_the_domain_say_what_matched_ones_look_like() -> None:
    pairs = pair_set(SIZE, sees=1.0)
    reference = pair_set(SIZE, seed=5, sees=1.0, foreign=False)
    clean = matching(pairs, PARTS, reference=reference)
    assert (clean.found, clean.why_told) == (Impression.MATCHED, REFERENCE)
    assert matching(shuffled(pairs, 0.4)[0], PARTS, reference=reference).found is Impression.MISMATCHED


@pytest.mark.parametrize("seed", FEW_SEEDS[:3])
def test_a_tenth_is_too_many_where_trusted_pairs_show_that_the_encoder_reads_well(seed: int) -> None:
    pairs, reference = (pair_set(600, seed=n, sees=3.0, knows=True) for n in (seed, seed + 50))
    clean = matching(pairs, {}, reference=reference)
    assert (clean.found, clean.why_told) == (Impression.MATCHED, REFERENCE)
    some = matching(shuffled(pairs, 0.12)[0], {}, reference=reference)
    assert some.found is Impression.MISMATCHED
    assert some.mismatch is not None
    assert some.mismatch.low < 0.15, "the bound alone would let it pass"
    assert some.too_many < some.mismatch.share


def test_a_part_that_is_wrong_is_seen_although_the_whole_is_not() -> None:
    pairs = pair_set(600, beside=True)
    part = np.arange(200)
    order = np.arange(600)
    order[part[:90]] = np.random.default_rng(2).permutation(part[:90])  # 45 % of a third
    found = matching(with_captions(pairs, order), {"first": part, "rest": np.arange(200, 600)})
    assert found.found is Impression.MISMATCHED
    assert found.by_part is not None
    assert found.by_part["first"][0] > 0.3 > found.by_part["rest"][0]


def test_a_training_part_that_differs_from_the_held_out_one_is_not_let_pass() -> None:
    """Where the encoder reads the pictures only a little, no share is believed; that two parts differ still is."""
    pairs = pair_set(600, sees=0.5, knows=True)
    parts = {"training": np.arange(150, 600), "held out": np.arange(150)}
    assert matching(pairs, parts).found is not Impression.MISMATCHED
    order = np.arange(600)
    order[150:] = np.random.default_rng(2).permutation(np.arange(150, 600))
    assert matching(with_captions(pairs, order), parts).found in {Impression.MISMATCHED, Impression.UNRELATED}


def known_by_heart(held_out: float) -> UploadedPairs:
    """A training part that the encoder learned, and a held-out part of which it sees only so much."""
    pairs = pair_set(600, sees=held_out, knows=True)
    assert pairs.picture_vectors is not None
    assert pairs.text_vectors is not None
    pictures = pairs.picture_vectors.copy()
    pictures[150:] = pairs.text_vectors[150:]
    return replace(pairs, picture_vectors=pictures)


def test_what_was_not_learned_beside_what_is_known_by_heart_does_not_look_wrong() -> None:
    parts = {"training": np.arange(150, 600), "held out": np.arange(150)}
    clean = matching(known_by_heart(0.35), parts)
    assert (clean.found, clean.unread) == (Impression.MATCHED, ("held out",))
    assert clean.by_part is not None
    assert clean.by_part["held out"][1] > clean.too_many, "it would be held if it counted"
    readable = known_by_heart(3.0)
    assert matching(readable, parts).unread == ()
    order = np.arange(600)
    order[:60] = np.arange(60)[::-1]
    wrong = matching(with_captions(readable, order), parts)
    assert (wrong.found, wrong.unread) == (Impression.MISMATCHED, ())
    order[:150] = np.roll(np.arange(150), 1)
    assert matching(with_captions(known_by_heart(0.35), order), parts).found is not Impression.MATCHED


def test_few_pairs_are_not_judged() -> None:
    assert matching(pair_set(12, beside=True), {}).found is Impression.FEW


def in_order(pairs: UploadedPairs) -> UploadedPairs:
    """The same pairs sorted, so that neighbours are alike, as in folders by class."""
    return pairs.part(np.argsort(pairs.texts, kind="stable"))


# Each slip in one order and each order for several slips; every slip in both under -m slow.
@pytest.mark.parametrize(
    ("first", "last", "rows", "is_sorted"),
    [
        (0, 299, 1, False),
        (0, 299, -2, True),
        (114, 299, 1, True),
        (75, 299, 3, False),
        (60, 179, -2, True),
        pytest.param(0, 299, 1, True, marks=pytest.mark.slow),
        pytest.param(0, 299, -2, False, marks=pytest.mark.slow),
        pytest.param(114, 299, 1, False, marks=pytest.mark.slow),
        pytest.param(75, 299, 3, True, marks=pytest.mark.slow),
        pytest.param(60, 179, -2, False, marks=pytest.mark.slow),
    ],
)
def test_rows_that_slipped_are_named(first: int, last: int, rows: int, is_sorted: bool) -> None:
    pairs = pair_set(SIZE, beside=True)
    pairs = in_order(pairs) if is_sorted else pairs
    found = matching(with_captions(pairs, moved(SIZE, np.arange(first, last + 1), -rows)), PARTS)
    assert found.found is Impression.MOVED
    assert found.shift is not None
    assert found.shift.rows == rows
    assert found.shift.first == pytest.approx(first, abs=8)
    assert found.shift.last == pytest.approx(last, abs=8)


def test_a_slip_of_training_rows_alone_is_clearer_among_them_than_in_the_whole_table() -> None:
    slipped = with_captions(pair_set(SIZE, beside=True), moved(SIZE, TRAINING, -3))
    found = matching(slipped, PARTS)
    assert found.found is Impression.MOVED
    assert found.shift is not None
    assert found.shift.rows == 3
    assert {found.shift.first, found.shift.last} <= set(TRAINING.tolist())
    assert found.shift.certainty > row_shift(slipped).certainty + 2


def test_a_slip_at_the_end_of_a_long_table_is_found() -> None:
    pairs = pair_set(1_500, knows=True)
    shift = row_shift(with_captions(pairs, moved(1_500, np.arange(1_300, 1_500), -1)))
    assert shift.certainty > 6
    assert shift.rows == 1
    assert shift.first == pytest.approx(1_300, abs=8)


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_pictures_in_order_have_not_slipped(seed: int) -> None:
    for pairs in (pair_set(SIZE, seed=seed, knows=True), pair_set(SIZE, seed=seed, beside=True)):
        assert row_shift(in_order(pairs)).certainty < 3


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_shuffled_captions_have_not_slipped(seed: int) -> None:
    pairs = pair_set(SIZE, seed=seed, beside=True)
    assert matching(shuffled(pairs, 0.6)[0], PARTS).found is Impression.MISMATCHED
    unrelated = matching(shuffled(pairs, 1.0)[0], PARTS)
    assert unrelated.found in {Impression.UNRELATED, Impression.MISMATCHED}


def test_no_group_is_predicted_from_itself() -> None:
    pairs = pair_set(100, beside=True)
    copies = replace(pairs.part(np.repeat(np.arange(100), 2)), images=[f"copy {n}" for n in range(200)])
    evidence = Evidence(copies)
    for block in evidence.blocks:
        assert len({copies.groups[int(at)] for at in block}) == len(block) // 2
