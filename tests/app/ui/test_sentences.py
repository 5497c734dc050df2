"""Claims about the engine's sentences in other languages."""

from __future__ import annotations

import re
import string
import time
from collections.abc import Callable

import pytest

from app.desk.errors import AppError
from app.desk.jobs import Forecast
from app.desk.opinions import Votes
from app.query.filters import Filters
from app.query.parts import query_terms
from app.ui import compare_words, update_words
from app.ui.sentences import Sentences
from app.ui.wording import escaped
from app.ui.words import BASE, SENTENCES, Words
from app.words import chunk as chunk_words
from app.words import forecast as forecast_words
from app.words import gate as gate_words
from ingest.errors import BadImage
from ingest.images import decode
from tests.app.gate_reports import HOSTILE, gate_report

LANGUAGES = sorted(set(SENTENCES) - {BASE})


def _places(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_every_sentence_with_the_same_values_and_links(language: str) -> None:
    assert SENTENCES[language].keys() == SENTENCES[LANGUAGES[0]].keys()
    for english, text in SENTENCES[language].items():
        assert _places(text) == _places(english), english
        assert re.findall(r"\]\((.*?)\)", text) == re.findall(r"\]\((.*?)\)", english), english
        assert (text.count("**"), text.count("`")) == (english.count("**"), english.count("`")), english


def _refusal(asked: Callable[[], object]) -> str:
    with pytest.raises((AppError, BadImage)) as refused:
        asked()
    return str(refused.value)


FORECAST = Forecast(
    "evergreen", 900, 3, {"features": 4.0, "train": 90.0, "measure": 7.0}, 2**30, 2**20,
    "No update has run here yet: the live encoder read a few captions and pictures now.",
)  # fmt: skip
SAID = [
    *(f"Standing: {standing} ({meaning})." for standing, meaning in chunk_words.STANDINGS.items()),
    *(f"Row shift · {outcome}" for outcome in chunk_words.OUTCOMES.values()),
    *gate_words.VERDICTS.values(),
    *gate_words.ROLES.values(),
    *update_words.STAGES.values(),
    *forecast_words.forecast_sentences(FORECAST)[1:],
    f"**What it will take:** {forecast_words.forecast_sentences(FORECAST)[0]}",
    compare_words.CHOOSE,
    compare_words.SAME,
    compare_words.BLIND,
    compare_words.NO_ROUND,
    compare_words.NO_ANSWER,
    compare_words.NO_QUERIES,
    compare_words.NOTHING_CHANGED.format(queries=12),
    *(compare_words.voted_line(choice, "r1", "r2") for choice in compare_words.CHOICES),
    compare_words.votes_line(Votes("r1", "r2", 3, 5, 0, 0, 62.5, 30.0, 86.0)),
    compare_words.votes_line(Votes("r1", "r2", 0, 0, 0, 0, None, None, None)),
    _refusal(lambda: query_terms("x" * 501, longest=500)),
    _refusal(lambda: query_terms('a "boat', longest=500)),
    _refusal(lambda: Filters(since="2026-02-01", until="2026-01-01").allowed(None)),  # type: ignore[arg-type]
    _refusal(lambda: decode(b"no picture")),
]
"""What the engine and the screens' own words say, made by what says it."""


@pytest.mark.parametrize("english", SAID)
def test_what_the_engine_says_is_said_in_german_and_in_arabic(english: str) -> None:
    for language in ("de", "ar"):
        plain, markdown = Words(language).said(english), Words(language).said(escaped(english))
        assert plain != english, "changed in English and not in languages/*.json?"
        # All of it: no English word is left but one that German uses, too.
        left = set(re.findall(r"[a-z]{4,}", english)) & set(re.findall(r"[a-z]{4,}", plain))
        assert left <= {"live"}
        assert markdown.replace("\\", "") == plain.replace("\\", "")


TABLE = {
    "Chunk {chunk} is held.": "{chunk} wird zurückgehalten.",
    "Held": "Zurückgehalten",
    "Do this: {why}": "Tu das: {why}",
    "{count} known": "{count} bekannt",
}


def test_a_line_is_said_whole_or_piece_by_piece_and_the_rest_stays_as_it_is() -> None:
    said = Sentences(TABLE).said
    assert said("Chunk `a1` is held. Nobody knows why.") == "`a1` wird zurückgehalten. Nobody knows why."
    assert (
        said("## Held\n\n- **Held**\n| Held up |") == "## Zurückgehalten\n\n- **Zurückgehalten**\n| Held up |"
    )
    assert said("| Held | 3<br>Held |") == "| Zurückgehalten | 3<br>Zurückgehalten |"
    assert said("- ✗ **Held**: Chunk a1 is held.") == "- ✗ **Zurückgehalten**: a1 wird zurückgehalten."
    assert said("3 known · 4 new") == "3 bekannt · 4 new"
    assert said("Do this: Chunk a1 is held.") == "Tu das: a1 wird zurückgehalten."


@pytest.mark.parametrize("verdict", ["promote", "review", "reject"])
def test_what_the_gate_says_of_an_update_is_said_in_german_and_in_arabic(verdict: str) -> None:
    report = gate_report(verdict, unchanged=3)
    reasons = [reason for rule in report.rules for reason in rule.reasons]
    assert len(reasons) > 5
    for language in ("de", "ar"):
        left = [reason for reason in reasons if Words(language).said(reason) == reason]
        assert left == []


def test_words_that_only_end_like_a_template_are_left_alone() -> None:
    said = Sentences(TABLE).said
    for text in ("nothing is known", "Heldenlied", "", "Chunk is held."):
        assert said(text) == text


def test_what_people_wrote_comes_through_unchanged_and_escaped() -> None:
    said = Sentences(TABLE).said(escaped(f"Chunk {HOSTILE} is held."))
    assert said == f"{escaped(HOSTILE)} wird zurückgehalten."


def test_a_very_long_text_is_not_looked_for() -> None:
    assert Sentences(TABLE).said("Chunk " + "a" * 2_000 + " is held.").endswith(" is held.")


def test_a_value_keeps_its_own_direction_among_words_from_right_to_left() -> None:
    said = Sentences({"Chunk `{chunk}` of {name}.": "من {name} الدفعة `{chunk}`."}, right_to_left=True).said
    assert said("Chunk `a1` of ada.") == "من \u2068ada\u2069 الدفعة `a1`."


def test_parts_of_a_line_stay_in_their_places_from_right_to_left() -> None:
    said = Sentences({"{count} found": "وجد {count}"}, right_to_left=True).said
    assert (
        said("12 found · A English · 3 ms")
        == "\u200f\u2068وجد \u206812\u2069\u2069 · \u2068A English\u2069 · \u20683 ms\u2069"
    )


def test_a_line_of_which_nothing_is_known_stays_as_it_is_from_right_to_left() -> None:
    said = Sentences({"{count} found": "وجد {count}"}, right_to_left=True).said
    assert said("One thing. Another · a third.") == "One thing. Another · a third."


def test_a_value_in_code_is_neither_escaped_nor_turned_nor_able_to_end_it() -> None:
    said = Sentences({"Run `undo {name} --now`.": "شغّل `undo {name} --now`."}, right_to_left=True).said
    assert said(escaped("Run `undo r2-a --now`.")) == "شغّل `undo r2-a --now`."
    assert said(escaped("Run `undo a`b --now`.")) == "شغّل `undo a\\`b --now`."


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_made_to_be_slow_is_not(language: str) -> None:
    said = Sentences(SENTENCES[language])
    parts = 20
    texts = [
        "x! " + "a of " * parts + "b votes preferred " * parts + ": " + "e %, 95 % interval f to " * parts,
        "A. " + "✓ " * 1_000,
        *(re.sub(r"\{\w+\}", "1 ", english)[:-1] * 6 for english in SENTENCES[language] if "{" in english),
    ]
    started = time.process_time()
    for text in texts:
        said.said(text[:1_000])
    assert time.process_time() - started < 0.05 * len(texts)
