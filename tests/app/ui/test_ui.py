"""Claims about the words on the screens, and about what their functions refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.desk.hits import Choices, Compared, Found, HitCaption, LearnedLanguage, SearchAnswer, Timing
from app.desk.slices import SliceSummary, recalls_of
from app.ui import compare_words, search_words, update_words, wording
from app.ui.theme import STYLE_SHEET, perennial_theme
from app.words.language_names import name_in, own_name
from ingest.records import JobRecord

UI = Path(wording.__file__).parent


def _answer(**hits: str) -> SearchAnswer:
    """An answer of pictures with a caption each, or none."""
    found = tuple(
        Found(image_id, 0.5 - rank / 100, rank, captions=(HitCaption("en", text),) if text else ())
        for rank, (image_id, text) in enumerate(hits.items(), start=1)
    )
    detected = (("de", 0.93), ("en", 0.07))
    return SearchAnswer("r3-1a2b3c4d", 7, "rote Boote", "de", detected, "", Timing(0.004, 0.001), found)


def _compared(**slices: tuple[SliceSummary, ...]) -> Compared:
    return Compared(_answer(x="", y="a boat"), _answer(y="a boat", z=""), 0.5, (), slices)


def _slice(language: str, captions: int, r10: float, view: str = "own") -> SliceSummary:
    recalls = {"t2i_r1": r10 / 2, "t2i_r5": r10 / 1.5, "t2i_r10": r10}
    return SliceSummary(language, "photo", captions, captions, recalls, view)


def test_the_language_menu_names_languages_in_themselves_with_recall() -> None:
    slices = (
        _slice("de", 100, 90.0),
        _slice("de", 300, 86.0),
        _slice("de", 900, 1.0, "mixed"),
        _slice("en", 10, 50.0),
    )
    recalls = recalls_of(slices)
    learned = tuple(LearnedLanguage(tag, recalls.get(tag)) for tag in ("en", "de", "ja"))
    choices = Choices("r1", 3, False, learned, (), (), ())
    assert search_words.language_choices(choices) == [
        ("Any language", "auto"),
        ("English · R@10 50", "en"),
        ("Deutsch · R@10 87", "de"),
        ("日本語", "ja"),
    ]
    more = replace(choices, readable=("hi", "cs", "mg"))
    assert search_words.language_choices(more)[4:] == [("Malagasy", "mg"), ("Čeština", "cs"), ("हिन्दी", "hi")]


@pytest.mark.parametrize(
    ("tag", "own", "english", "german"),
    [
        ("de", "Deutsch", "German", "Deutsch"),
        ("pt-BR", "Português (BR)", "Portuguese (BR)", "Portugiesisch (BR)"),
        ("ka", "ქართული", "Georgian", "Georgisch"),
        ("qaa", "qaa", "qaa", "qaa"),
        ("no such", "no such", "no such", "no such"),
    ],
)
def test_a_language_is_named_in_itself_and_in_the_language_of_the_reader(
    tag: str, own: str, english: str, german: str
) -> None:
    assert (own_name(tag), name_in(tag, "en"), name_in(tag, "de")) == (own, english, german)


@pytest.mark.parametrize(
    ("before", "now", "mark"), [(3, 1, "▲2"), (1, 2, "▼1"), (4, 4, "="), (None, 5, "new")]
)
def test_a_rank_move_points_where_the_picture_went(before: int | None, now: int, mark: str) -> None:
    assert compare_words.rank_move(before, now) == mark


def test_the_right_gallery_shows_moves_against_the_left_one() -> None:
    compared = _compared()
    left, right = compare_words.compared_pictures(compared, "http://here")
    assert [one.note for one in left] == ["1 · 0.490", "2 · 0.480"]
    assert [one.note for one in right] == ["1 ▲1", "2 new"]
    assert right[0].thumbnail == "http://here/v1/images/y/thumbnail"
    assert [one.words for one in right] == ["a boat", "A picture without a caption"]
    line = compare_words.status_line(compared)
    assert "50 % overlap" in line
    assert "A detected: German (0.93)" in line
    assert "B 5 ms" in line


def test_slices_that_only_one_release_measured_show_a_dash() -> None:
    b = (_slice("en", 10, 40.0), _slice("de", 5, 60.0))
    rows = compare_words.compared_slices(_compared(a=(_slice("en", 10, 50.0),), b=b))
    assert [row[0] for row in rows] == ["de/photo", "en/photo"]
    assert rows[0][-3:] == ["–", "60.0", "–"]
    assert rows[1][-3:] == ["50.0", "40.0", "−10.0"]
    assert all(len(row) == len(compare_words.COMPARED_HEADERS) for row in rows)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](https://evil.example/x.png)",
        "[click](javascript:alert(1))",
        "https://evil.example and www.evil.example",
        "&lt;b&gt; `code` **bold** _it_ ~~x~~",
        "# heading\n\n- list\n| a | b |",
        "$$x^2$$",
    ],
)
def test_text_from_outside_is_shown_literally(text: str) -> None:
    from markdown_it import MarkdownIt

    shown = (
        MarkdownIt("commonmark", {"html": True, "linkify": False})
        .enable("table")
        .render(wording.escaped(text))
    )
    import html

    assert html.unescape(shown.removeprefix("<p>").removesuffix("</p>\n")) == " ".join(text.split())


@pytest.mark.parametrize(
    ("headers", "scheme", "base"),
    [
        ({"host": "127.0.0.1:7860"}, "http", "http://127.0.0.1:7860"),
        ({"host": "s.example", "origin": "https://s.example"}, "http", "https://s.example"),
        ({"host": "s.example", "origin": "https://evil.example"}, "http", "http://s.example"),
        ({"host": "s.example", "x-forwarded-proto": "https"}, "http", "https://s.example"),
    ],
)
def test_thumbnails_come_from_where_the_browser_reached_us(
    headers: dict[str, str], scheme: str, base: str
) -> None:
    assert wording.base_address(headers, scheme) == base


def test_progress_shows_stage_bar_message_and_losses() -> None:
    stage = {
        "name": "train",
        "message": "epoch 2 of 10",
        "fraction": 0.25,
        "details": {"terms": {"cross_modal": 1.5}},
    }
    shown = update_words.progress_view("running", stage)
    assert "## Learning" in shown
    assert "██████░░░░░░░░░░░░░░░░░░" in shown
    assert "25 %" in shown
    assert "1.500" in shown
    assert "Waiting" in update_words.progress_view("queued", {})


def test_the_menu_of_past_updates_has_those_that_were_judged_in_their_order() -> None:
    def job(name: str, kind: str, **result: Any) -> JobRecord:
        return JobRecord(name, kind, "rejected", {}, {}, result, None, None, "2026-11-25T10:00", None, None)

    judged = {"gate": {"verdict": "reject"}, "verdict": "reject"}
    jobs = [
        job("j4", "update", **judged),
        job("j3", "ingest"),
        job("j2", "update"),
        job("j1", "update", **judged),
    ]
    assert [name for _, name in update_words.past_choices(jobs)] == ["j4", "j1"]


def test_an_intake_lists_only_what_was_not_accepted() -> None:
    report = {
        "new_pairs": 8, "known_pairs": 0, "new_images": 4, "held": 1, "rejected": 1, "english_share": 0.5,
        "per_slice": {"de/photo": {"train": 6, "validation": 1, "test": 1}}, "notes": ["a note"],
        "rows": [
            {"where": "row 1", "outcome": "accepted", "code": "ok", "sentence": "The picture is turned."},
            {"where": "row 2", "outcome": "rejected", "code": "image_missing", "sentence": "There is none."},
        ],
    }  # fmt: skip
    text, rows = update_words.intake_view(report), update_words.report_rows(report)
    assert rows == [["rejected", "row 2", "image missing", "There is none."]]
    assert "| de\\/photo | 6 | 1 | 1 |" in text
    assert "50 %" in text


def test_no_screen_that_shows_uploads_uses_raw_html() -> None:
    # The demo's guide shows drawn pictures with captions of ours, and escapes even those; `drawn` takes only what
    # its own `tag` has escaped, as `read_table` does.
    sources = {
        path.name: path.read_text(encoding="utf-8")
        for path in UI.glob("*.py")
        if path.name not in {"demo.py", "drawn.py", "read_table.py"}
    }
    assert len(sources) > 7
    assert [
        name for name, source in sources.items() if "gr.HTML" in source or "sanitize_html=False" in source
    ] == []


def test_nothing_of_the_theme_comes_from_elsewhere() -> None:
    assert "http" not in STYLE_SHEET.read_text(encoding="utf-8")
    assert perennial_theme()._stylesheets == []
