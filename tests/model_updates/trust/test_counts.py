"""Declared languages, repetition and exchanged words."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates.trust import declared_language as trust
from model_updates.trust.declared_language import DeclaredLanguage, better_profile
from model_updates.trust.exchanged import exchanged
from model_updates.trust.repetition import repetition
from tests.model_updates.synthetic_pairs import pair_set


def confidences(size: int = 100, **means: float) -> dict[str, NDArray[np.float64]]:
    random = np.random.default_rng(0)
    return {tag: np.clip(mean + 0.1 * random.normal(size=size), 0, 1) for tag, mean in means.items()}


def declared_language(
    declared: str, found: dict[str, NDArray[np.float64]], letters: list[int] | None = None
) -> DeclaredLanguage | None:
    return trust.declared_language(declared, found, letters or [20] * len(next(iter(found.values()))))


def test_another_language_is_seen_and_a_relative_is_not() -> None:
    wrong = declared_language("nl", confidences(nl=0.05, de=0.57, da=0.03))
    assert wrong is not None
    assert (wrong.looks, wrong.knows) == ("de", True)
    right = declared_language("id", confidences(id=0.24, ms=0.27, tl=0.03))
    assert right is not None
    assert right.looks is None
    assert declared_language("nl", confidences(size=12, nl=0.0, de=0.9)) is None


def test_a_language_the_detector_does_not_know_is_doubted_only_for_a_sure_one() -> None:
    spread = declared_language("qu", confidences(sn=0.08, es=0.06, sw=0.06))
    english = declared_language("qu", confidences(en=0.3, tl=0.06, la=0.04))
    assert spread is not None
    assert english is not None
    assert (spread.looks, spread.knows) == (None, False)
    assert english.looks == "en"


def test_a_part_in_another_language_is_too_much() -> None:
    half = np.where(np.arange(100) < 45, 0.95, 0.02)
    found = declared_language("de", {"de": 0.9 - 0.9 * half, "en": half})
    assert found is not None
    assert found.looks == "en"
    assert set(found.captions[:45].tolist()) == set(range(45))


def test_long_captions_say_more_than_short_ones_and_a_few_are_not_certain() -> None:
    found = {"de": np.tile([0.05, 0.9], 50), "tl": np.tile([0.8, 0.02], 50)}
    even, short, long = (
        declared_language("de", found, letters * 50) for letters in ([9, 9], [4, 40], [40, 4])
    )
    assert even is not None
    assert short is not None
    assert long is not None
    assert (even.looks, short.looks, long.looks) == ("tl", None, "tl")
    spread = np.random.default_rng(0).permutation(np.repeat([0.0, 0.9], [15, 9]))
    few = declared_language("de", {"de": np.full(24, 0.1), "tl": spread})
    many = declared_language("de", {"de": np.full(240, 0.1), "tl": np.tile(spread, 10)})
    assert few is not None
    assert many is not None
    assert few.confidence == pytest.approx(many.confidence)
    assert (few.looks, many.looks) == (None, "tl")


def test_profiles_judge_what_no_detector_knows() -> None:
    fits = confidences(qu=-3.0, es=-2.0)
    fits = {tag: values - 5 for tag, values in fits.items()} | {
        "es": np.full(100, -2.0) + 0.1 * np.random.default_rng(1).normal(size=100),
        "qu": np.full(100, -3.0),
    }
    assert better_profile("qu", fits) == "es"
    assert better_profile("es", fits) is None
    assert better_profile("mi", fits) is None


def test_one_caption_for_all_and_near_copies_are_counted() -> None:
    images = [f"p{n}" for n in range(60)]
    groups = ["same" if n % 2 else f"g{n}" for n in range(60)]
    held = [n >= 30 for n in range(60)]
    one = repetition(
        ["A dog"] * 30 + ["a  Dog "] * 10 + [f"thing {n}" for n in range(20)], images, images, held
    )
    assert one.one_caption
    assert one.caption_share == pytest.approx(40 / 60)
    classes = repetition([f"class {n % 5}" for n in range(60)], images, images, held)
    assert not classes.one_caption
    assert not classes.few_things
    copies = ["one" if is_held else group for is_held, group in zip(held, groups, strict=True)]
    stuffed = repetition([f"t{n}" for n in range(60)], images, copies, held)
    assert stuffed.few_things
    assert (stuffed.held_out, stuffed.held_out_things) == (30, 1)


def test_two_exchanged_words_are_named() -> None:
    pairs = pair_set(300, knows=True, foreign=False)
    assert pairs.text_vectors is not None
    assert pairs.picture_vectors is not None

    def scores(rows: NDArray[np.float32]) -> NDArray[np.float32]:
        assert pairs.picture_vectors is not None
        return np.asarray(pairs.picture_vectors @ rows.T, dtype=np.float32)

    assert exchanged(scores(pairs.text_vectors), pairs.texts) == []
    swap = {"boat": "house", "house": "boat"}
    said = [" ".join(swap.get(word, word) for word in text.split()) for text in pairs.texts]
    # The captions now say the other word, and so do their vectors.
    axes = np.random.default_rng(99).normal(size=(3, 8, 24))
    turn = axes[1, 3] - axes[1, 2]
    vectors = pairs.text_vectors.copy()
    for n, text in enumerate(pairs.texts):
        vectors[n] += turn if "boat" in text else -turn if "house" in text else 0
    found = exchanged(scores(vectors), said)
    assert {found[0].one, found[0].other} == {"boat", "house"}
    assert len(found) == 1


def test_a_domain_in_which_many_words_are_taken_for_others_has_none_exchanged() -> None:
    pairs = pair_set(300, knows=True, foreign=False)
    assert pairs.text_vectors is not None
    assert pairs.picture_vectors is not None
    things = ["dog", "cat", "boat", "house", "tree", "horse", "bird", "car"]
    axes = np.random.default_rng(99).normal(size=(3, 8, 24))
    vectors = pairs.text_vectors.copy()
    for n, text in enumerate(pairs.texts):
        one = next(which for which, word in enumerate(things) if word in text.split())
        vectors[n] += (
            axes[1, one ^ 1] - axes[1, one]
        )  # dogs look like cats and cats like dogs, boats like houses ...
    scores = np.asarray(pairs.picture_vectors @ vectors.T, dtype=np.float32)
    assert exchanged(scores, pairs.texts) == []
