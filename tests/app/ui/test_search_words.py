"""Claims about the words of the Search tab, and about the pictures as HTML."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from app.desk.hits import (
    Choices,
    Found,
    FoundCaption,
    HitCaption,
    LearnedLanguage,
    ReadPart,
    SearchAnswer,
    SearchRequest,
    SeenAt,
    Timing,
)
from app.ui import search_words
from app.ui.address import asked_of
from app.ui.search_filters import FilterRow, known
from app.ui.words import ENGLISH, Words

LEARNED = tuple(LearnedLanguage(tag, None) for tag in ("en", "de", "fr", "ja"))
CHOICES = Choices("r3", 1234, False, LEARNED, ("en",), ("scenes",), (), ("two red boats", "a - b"))


def _answer(*ids: str, **more: Any) -> SearchAnswer:
    hits = tuple(Found(image_id, 0.5 - rank / 100, rank) for rank, image_id in enumerate(ids, start=1))
    asked: dict[str, Any] = {
        "language": "de",
        "detected": (("de", 0.93), ("en", 0.07)),
        "parts": (ReadPart("text", "rote Boote", 1.0),),
        "searched": 1234,
        "recalls": {"de": 87.0},
    }
    timing = Timing(0.004, 0.001)
    return SearchAnswer("r3-1a2b3c4d", 7, "rote Boote", note="", timing=timing, hits=hits, **asked | more)


def _browsed(**more: Any) -> SearchAnswer:
    return _answer("a", parts=(), language="", detected=(), recalls={}, **more)


def _said(
    answer: SearchAnswer, say: Words = ENGLISH, asked: SearchRequest | None = None, choices: Choices = CHOICES
) -> tuple[str, str]:
    """What is seen above an answer, and what only shows when the sign is pressed."""
    said = search_words.above(answer, asked or SearchRequest(), choices, say, [])
    hidden = re.search("<details class=.?about.*?</details>", said)
    assert hidden is not None
    text = said.replace(hidden[0], "")
    return _text(text), _text(hidden[0])


def _text(markup: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", markup)).split())


def test_facts_of_an_answer_stand_behind_a_sign_and_nothing_is_said_of_its_worth() -> None:
    seen, hidden = _said(_answer("a", "b", relevance="weak"))
    assert seen == "1,234 pictures · best matches first · read as German"
    for fact in ("r3-1a2b3c4d", "R@10 87 (0.93)", "5 ms", "1,234 of 1,234"):
        assert fact in hidden
    assert "weak" not in seen + hidden


def test_a_language_that_was_chosen_is_not_called_detected() -> None:
    assert "language: German" in _said(_answer("a", detected=(("de", 1.0),)))[1]


def test_what_is_browsed_is_counted_with_languages_and_words_to_begin_with() -> None:
    seen, hidden = _said(_browsed())
    assert seen == "1,234 pictures · 4 languages Try two red boats a - b"
    assert "R@10" not in hidden
    few = replace(CHOICES, learned=LEARNED[:2], pictures=1)
    assert _said(_browsed(searched=1), choices=few)[0].startswith("1 picture · English, German")
    assert _said(_browsed(searched=12))[0].startswith("12 of 1,234 pictures")
    assert "Try" not in _said(_browsed(), asked=SearchRequest(domains=["scenes"]))[0]
    german = _said(_browsed(), Words("de"))[0]
    assert german.startswith("1.234 Bilder")


def test_an_example_means_its_words_whatever_is_in_them() -> None:
    markup = search_words.above(_browsed(), SearchRequest(), CHOICES, ENGLISH, [])
    links = [html.unescape(one) for one in re.findall(r'<a href="([^"]*)" class="chip', markup)]
    assert [asked_of(one)[0].text for one in links] == ["two red boats", '"a - b"']


def test_the_other_order_is_offered_where_it_is_known_when_pictures_were_taken() -> None:
    assert "By date" not in _said(_browsed())[0]
    (hit,) = _browsed().hits
    dated = replace(_browsed(), hits=(replace(hit, taken="2024-05-01T10:00:00"),))
    assert "By date taken" in _said(dated)[0]
    assert "By date added" in _said(_browsed(), asked=SearchRequest(sort="taken"))[0]
    found = replace(_answer("a"), hits=dated.hits)
    assert "By date" not in _said(found)[0]


@pytest.mark.parametrize(("tag", "said"), [("th", "Thai is not learned yet"), ("und", "in no language")])
def test_words_in_no_learned_language_are_told_what_helps(tag: str, said: str) -> None:
    seen, _ = _said(_answer("a", unlearned=tag))
    assert said in seen
    assert "Write the same in English" in seen


def test_what_an_engine_a_file_or_a_person_says_is_shown_literally() -> None:
    hostile = "<img src=x onerror=alert(1)>"
    captions = (FoundCaption(hostile, "en", 0.5, ("a",)),)
    answer = replace(_answer("a", captions=captions), note=hostile, release=hostile)
    choices = replace(CHOICES, examples=(hostile,))
    drawn: str = search_words.above(answer, SearchRequest(), choices, ENGLISH, [hostile])
    drawn += search_words.above(_browsed(), SearchRequest(), choices, ENGLISH, [])
    hit = Found("a", None, 1, captions=(HitCaption("en", hostile),))
    drawn += "".join(search_words.tiles([hit], f'?text="{hostile}', ENGLISH))
    assert "<img src=x" not in drawn
    assert drawn.count("onerror") == drawn.count("onerror=alert(1)&gt;") + drawn.count("onerror%3Dalert")


def test_a_picture_is_as_wide_as_it_is_beside_its_height_and_comes_in_several_sizes() -> None:
    hits = [
        Found("a", None, 1, width=900, height=600),
        Found("b", None, 2, width=9000, height=600),
        Found("c", None, 3, width=120, height=100),
        Found("d", None, 4),
    ]
    large, panorama, small, unknown = search_words.tiles(hits, "", ENGLISH)
    assert 'style="--ratio:1.5000"' in large
    at = "v1/images/a/thumbnail"
    assert f'srcset="{at} 256w, {at}?size=400 400w, {at}?size=640 640w"' in large
    assert 'width="900" height="600"' in large
    assert 'style="--ratio:3.0000"' in panorama
    assert "srcset" not in small
    assert 'style="--ratio:1.0000"' in unknown


@pytest.mark.parametrize(
    ("hit", "name"),
    [
        ({"captions": (HitCaption("de", "ein Boot"),)}, "ein Boot"),
        ({"sources": (SeenAt("file", "/photos/sea/boat.jpg"),)}, "boat.jpg"),
        ({"sources": (SeenAt("member", "/photos.zip", "sea/boat.jpg"),)}, "boat.jpg"),
        ({}, "A picture without a caption"),
    ],
)
def test_a_picture_has_a_name_for_who_cannot_see_it(hit: dict[str, Any], name: str) -> None:
    (tile,) = search_words.tiles([Found("a", None, 1, **hit)], "?text=boat", ENGLISH)
    assert f'alt="{name}"' in tile
    assert 'href="?text=boat&amp;picture=a"' in tile
    (alone,) = search_words.tiles([Found("a", None, 1, **hit)], "", ENGLISH)
    assert 'href="?picture=a"' in alone


def test_what_an_address_asked_for_and_is_gone_is_named() -> None:
    assert search_words.missing([], ENGLISH) == ""
    assert "left out: a, b." in search_words.missing(["a", "b"], ENGLISH)


def test_a_search_without_its_filters_keeps_its_words() -> None:
    asked = SearchRequest(text="boat", language="de", domains=["x"], dedup=True)
    assert asked_of(search_words.without_filters(asked))[0] == SearchRequest(text="boat", language="de")
    assert search_words.without_filters(SearchRequest(domains=["x"])) == "?"


def test_a_language_that_no_menu_has_is_shown_where_an_address_asks_for_it() -> None:
    asked, missing = known(
        SearchRequest(language="en-gb", languages=["EN", "pt_br"], domains=["gone"]), CHOICES
    )
    assert (asked.language, asked.languages, asked.domains, missing) == (
        "en-GB",
        ["en", "pt-BR"],
        None,
        ["gone"],
    )
    row = FilterRow.__new__(FilterRow)  # a page of its own would leave its event loop open
    row.parts = {"language": gr.Dropdown(), "languages": gr.Dropdown(multiselect=True)}
    shown = row.shown(asked, CHOICES, ENGLISH)
    for part in row.parts.values():
        update = shown[part]
        offered = {value for _, value in update["choices"]}
        assert offered.issuperset([update["value"]] if isinstance(update["value"], str) else update["value"])
