"""The words behind a gain: counted, in the captions' own spelling, and left out where they would say too much."""

from __future__ import annotations

import numpy as np

from app.learning.gained_words import FEWEST, gained_words

DOGS = ["A dog on a beach.", "The brown dog runs", "Two men and a dog, outside", "a dog with a ball"]
BEACHES = ["People at the beach", "An empty beach", "Waves on the beach at night"]
OTHERS = ["A red car", "The blue car", "A house on a hill", "a boat", "Snow in the park", "A woman reads"]
TEXTS = [*DOGS, *BEACHES, *OTHERS]


def _found(*texts: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.array([text in texts for text in TEXTS])


def test_the_words_of_which_most_more_captions_are_found_come_first() -> None:
    assert gained_words(TEXTS, _found(), _found(*DOGS, *BEACHES), "en") == ("beach", "dog")
    assert gained_words(TEXTS, _found("A red car"), _found("A red car", *DOGS), "en") == ("dog",)


def test_a_word_that_lost_as_much_as_it_won_is_not_told() -> None:
    assert gained_words(TEXTS, _found(*DOGS[:2]), _found(*DOGS[2:]), "en") == ()


def test_too_few_captions_or_a_gain_of_everything_tell_no_word() -> None:
    few = DOGS[: FEWEST - 1]
    assert gained_words(TEXTS, _found(), _found(*few), "en") == ()
    assert gained_words(TEXTS, _found(), _found(*TEXTS), "en") == ()


def test_words_that_say_nothing_are_left_out_in_every_listed_language() -> None:
    czech = ["pes na pláži", "malý pes na trávě", "velký pes na ulici", *OTHERS]
    found = np.array([text in czech[:3] for text in czech])
    assert gained_words(czech, ~found & found, found, "cs-CZ") == ("pes",)


def test_a_word_is_written_as_inside_a_sentence() -> None:
    german = ["Ein Hund rennt", "Der Hund am Strand", "Zwei Hunde und ein Hund", *OTHERS]
    found = np.array([text in german[:3] for text in german])
    assert gained_words(german, found & ~found, found, "de") == ("Hund",)


def test_nothing_is_told_where_words_cannot_be_told_apart_or_weighed() -> None:
    japanese = ["犬が走る", "犬が走る", "犬が走る", *OTHERS]
    found = np.array([text == "犬が走る" for text in japanese])
    assert gained_words(japanese, found & ~found, found, "ja") == ()
    assert gained_words(TEXTS, _found(), _found(*DOGS), "xx") == ()
