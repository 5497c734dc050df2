"""Claims about the words of the Search tab."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.desk.hits import Found, HitCaption, SearchAnswer, SearchRequest, Timing
from app.desk.pictures import Item
from app.ui import search_words
from app.ui.address import asked_of
from app.ui.words import ENGLISH


def _answer(
    *ids: str, language: str = "de", detected: Any = (("de", 0.93), ("en", 0.07)), **more: Any
) -> SearchAnswer:
    hits = tuple(Found(image_id, 0.5 - rank / 100, rank) for rank, image_id in enumerate(ids, start=1))
    timing, recalls = Timing(0.004, 0.001), {"de": 87.0}
    return SearchAnswer(
        "r3-1a2b3c4d", 7, "rote Boote", language, detected, "", timing, hits, recalls=recalls, **more
    )


def _line(answer: SearchAnswer, first: int = 0, count: int = 2) -> str:
    return search_words.answer_line(answer, first, count, ENGLISH)


def test_the_answer_line_says_language_with_its_recall_release_and_time() -> None:
    line = _line(_answer("a", "b", relevance="weak"))
    for expected in ("2 pictures", "weak matches", "German, R@10 87 (0.93)", "`r3-1a2b3c4d`", "5 ms"):
        assert expected in line


def test_an_unsure_detection_names_both_languages() -> None:
    line = _line(_answer("a", language="de + nl", detected=(("de", 0.51), ("nl", 0.49))))
    assert "German, R@10 87 (0.51) or Dutch (0.49)" in line


def test_a_chosen_language_is_not_called_detected() -> None:
    assert "language: German" in _line(_answer("a", detected=(("de", 1.0),)))


def test_a_later_page_says_where_it_lies() -> None:
    assert "pictures 25–48 of 120" in _line(_answer("a", searched=120), first=24, count=24)


@pytest.mark.parametrize(("tag", "said"), [("th", "**Thai** is not learned yet"), ("und", "in no language")])
def test_words_in_no_learned_language_are_told_what_helps(tag: str, said: str) -> None:
    notes = search_words.notes(_answer("a", unlearned=tag), ENGLISH)
    assert said in notes
    assert "(/admin/)" in notes
    assert search_words.notes(_answer("a"), ENGLISH) == ""


def test_a_note_of_the_engine_is_shown_literally() -> None:
    assert search_words.notes(replace(_answer("a"), note="<b>"), ENGLISH) == "\\<b\\>"


def test_the_details_show_every_caption_as_a_search_for_exactly_its_words() -> None:
    captions = (HitCaption("de", 'ein <b>"Boot"</b> - rot'), HitCaption("ja", "赤い船"))
    known = Item("f" * 64, "photo", "test", "abc123", 640, 480, "JPEG", True, captions)
    hit = Found("f" * 64, 0.31234, 1)
    picture, facts = search_words.picture_details(hit, 2, known, ["de"], "http://here", ENGLISH)
    assert f"http://here/v1/images/{'f' * 64}" in picture
    for expected in (
        '`de` [ein \\<b\\>\\"Boot',
        "`ja` [赤い船]",
        "0.3123",
        "640 × 480",
        "photo",
        "test",
        "abc123",
    ):
        assert expected in facts
    german, japanese = (line.rpartition("](")[2][:-1] for line in facts.splitlines() if "](?" in line)
    assert asked_of(german)[0] == SearchRequest(text='"ein <b> Boot </b> - rot"', language="de")
    # Nobody has learned it, so that it is not named: a menu could not show it.
    assert asked_of(japanese)[0] == SearchRequest(text='"赤い船"')


def test_what_an_address_asked_for_and_is_gone_is_named() -> None:
    assert search_words.missing([], ENGLISH) == ""
    assert "**\\<x\\>**" in search_words.missing(["<x>"], ENGLISH)
