"""Surprise: its arithmetic by hand, what a profile measures of its own captions, and that it travels."""

from __future__ import annotations

import math
from dataclasses import astuple

import pytest

from ingest.samples import scenes
from model_updates.language_profiles import LanguageProfile, from_bytes, letters_of, taught_profiles, to_bytes
from model_updates.surprise import DRIFT, FEWEST, Surprise

DRAWN = list(scenes.all_scenes())[::40]
GERMAN = [scenes.caption(scene, "de") for scene in DRAWN]


def test_deviations_are_those_computed_by_hand() -> None:
    # Forty texts of 10 letters: half of them surprise by 10, half by 30 nats. A letter's mean is 2, its variance 10.
    known = Surprise.measured([(10, 10.0), (10, 30.0)] * 20)

    assert astuple(known) == pytest.approx((40, 400, 800, 400))
    assert known.deviations(10, 20.0) == pytest.approx(0.0)
    assert known.deviations(5, 30.0) == pytest.approx(20 / math.sqrt(5 * 10 + (5 * DRIFT) ** 2))


def test_the_longer_a_text_the_more_a_steady_surprise_counts_but_not_without_end() -> None:
    known = Surprise.measured([(10, 10.0), (10, 30.0)] * 20)
    found = [known.deviations(n, 3.0 * n) or 0.0 for n in (5, 20, 80, 10**6)]

    assert found == sorted(found)
    assert found[-1] == pytest.approx(1 / DRIFT, rel=1e-3)


def test_of_few_texts_nothing_is_said() -> None:
    few = Surprise.measured([(10, 20.0)] * (FEWEST - 1))

    assert few.deviations(10, 100.0) is None
    assert (few + few).deviations(10, 100.0) is not None
    assert Surprise().deviations(10, 100.0) is None


def test_teaching_measures_captions_before_they_are_learned() -> None:
    taught = taught_profiles({}, {"de": GERMAN})["de"]
    whole = LanguageProfile.learned_from(GERMAN)
    seen = [-whole.log_likelihood(letters_of(text)) / (len(letters_of(text)) - 1) for text in set(GERMAN)]

    assert taught.surprise.texts == pytest.approx(len(set(map(letters_of, GERMAN))) / 5, abs=1)
    assert taught.surprise.total / taught.surprise.letters > sum(seen) / len(seen)


def test_the_same_caption_on_many_pictures_does_not_count_as_known_before() -> None:
    once = taught_profiles({}, {"de": sorted(set(GERMAN))})["de"]
    often = taught_profiles({}, {"de": GERMAN * 3})["de"]

    assert often.surprise.texts == once.surprise.texts


def test_fewer_captions_surprise_more() -> None:
    few, many = (taught_profiles({}, {"de": texts})["de"].surprise for texts in (GERMAN[::4], GERMAN))

    assert few.total / few.letters > many.total / many.letters


def test_it_grows_with_each_teaching_and_travels_with_the_profile() -> None:
    first = taught_profiles({}, {"de": GERMAN[::2]})
    both = taught_profiles(first, {"de": GERMAN[1::2]})

    assert both["de"].surprise.texts > first["de"].surprise.texts
    assert from_bytes(to_bytes(both))["de"].surprise == both["de"].surprise
