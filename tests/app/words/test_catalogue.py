"""Claims about the catalogues of what is said, and about saying it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from app.words.catalogue import BASE, HEADER, LANGUAGES, Messages, Words, messages
from ingest.sentence import PLACE, joined, phrase

OTHERS = sorted(set(LANGUAGES) - {BASE})
KNOWN: Messages = {
    ("", "Chunk {chunk} of {name} is held."): "{name}: {chunk} wird zurückgehalten.",
    ("", "held"): "zurückgehalten",
    ("", "name"): "Name",
    (HEADER, "name"): "Namen",
    ("", "Run `undo {name} --now` for {name}."): "شغّل `undo {name} --now` من {name}.",
    ("", "{count} found"): "{count} gefunden",
}
GERMAN, ARABIC = Words("de", KNOWN), Words("ar", KNOWN)
HOSTILE = some.text(some.sampled_from("{}%\\\n*[]()<>`'\"!0:x a"), max_size=12)


def test_there_are_six_languages_beside_english_one_of_them_from_right_to_left() -> None:
    assert OTHERS == ["ar", "de", "es", "fr", "ja", "zh"]


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_has_the_places_links_and_marks_of_its_english(language: str) -> None:
    known = messages(language)
    assert len(known) > 1_000
    for (_, english), text in known.items():
        assert set(PLACE.findall(text)) == set(PLACE.findall(english)), english
        assert re.findall(r"\]\((.*?)\)", text) == re.findall(r"\]\((.*?)\)", english), english
        assert (text.count("**"), text.count("`")) == (english.count("**"), english.count("`")), english


def test_a_sentence_is_said_by_its_template_and_a_word_whole() -> None:
    assert GERMAN.said(phrase("Chunk {chunk} of {name} is held.", chunk="a1", name="ada")) == (
        "ada: a1 wird zurückgehalten."
    )
    assert GERMAN("{count} found", count=3) == "3 gefunden"
    assert GERMAN.said("held") == "zurückgehalten"
    for unknown in ("Chunk a1 of ada is held.", "held up", ""):
        assert GERMAN.said(unknown) == unknown


def test_what_a_catalogue_lacks_is_said_in_english_and_what_is_in_it_is_not() -> None:
    why = phrase("{count} found", count=3)
    assert GERMAN("Nobody translated this: {why}", why=why) == "Nobody translated this: 3 gefunden"
    assert GERMAN.said(joined((why, why), " · ")) == "3 gefunden · 3 gefunden"


def test_english_is_the_sentence_itself() -> None:
    sentence = phrase("{count} found", count=3)
    assert Words().said(sentence) is sentence
    assert Words()("{count} found", count=3) == "3 found"


def test_words_of_ours_in_a_sentence_are_said_too_and_what_people_wrote_is_not() -> None:
    said = GERMAN("Chunk {chunk} of {name} is held.", chunk="held", name="held")
    assert said == "held: zurückgehalten wird zurückgehalten."


def test_a_header_may_say_something_else_than_the_word() -> None:
    assert (GERMAN.header("name"), GERMAN.said("name")) == ("Namen", "Name")
    assert GERMAN.header("held") == "zurückgehalten"


@given(HOSTILE, HOSTILE)
def test_values_are_filled_in_without_being_interpreted(chunk: str, name: str) -> None:
    said = GERMAN("Chunk {chunk} of {name} is held.", chunk=chunk, name=name)
    assert said == name + ": " + chunk + " wird zurückgehalten."
    arabic = ARABIC("Chunk {chunk} of {name} is held.", chunk=chunk, name=name)
    assert arabic == f"\u200f\u2068{name}\u2069: \u2068{chunk}\u2069 wird zurückgehalten."


def test_a_value_keeps_its_own_direction_among_words_from_right_to_left_and_code_stays_what_it_is() -> None:
    said = ARABIC("Run `undo {name} --now` for {name}.", name="r2-a")
    assert said == "شغّل `undo r2-a --now` من \u2068r2-a\u2069."


def test_parts_of_a_line_stay_in_their_places_from_right_to_left() -> None:
    parts = (phrase("{count} found", count=12), "A English")
    assert ARABIC.said(joined(parts, " · ")) == "\u200f\u206812\u2069 gefunden · \u2068A English\u2069"
