"""Claims about tables that are read: what people wrote is text in them, and a pressed row names itself."""

from __future__ import annotations

import html
import json
import re

from app.desk.releases import ListedRelease
from app.ui.read_table import ReadTable
from app.ui.wording import RELEASE_HEADERS, release_rows
from app.ui.words import ENGLISH, Words
from tests.app.gate_reports import HOSTILE


def _release(*languages: str) -> ListedRelease:
    return ListedRelease(
        id="r3-1a2b3c4d",
        live=True,
        parent=None,
        version="v1",
        generation="g1",
        strategy=None,
        verdict=None,
        mode=None,
        images_embedded=None,
        languages=languages,
        created="2026-11-25T10:00:00+00:00",
        pruned=None,
    )


def test_what_people_wrote_is_text_in_every_cell() -> None:
    table = ReadTable("chunks", "All chunks", ["chunk", "name"], picks=[1])
    shown = table.of([["c1", HOSTILE], ["c2", '"><b>']], ENGLISH)
    assert HOSTILE not in shown
    assert "<b>" not in shown
    assert html.escape(HOSTILE) in shown


def test_a_row_names_itself_by_its_cells_and_one_of_them_is_a_button() -> None:
    table = ReadTable("canaries", "Canaries", ["query", "language", "picture"], picks=[0, 1])
    shown = table.of([["two boats", "en", "ab12"]], ENGLISH)
    (picked,) = re.findall(r'data-pick="([^"]*)"', shown)
    assert json.loads(html.unescape(picked)) == ["two boats", "en"]
    assert shown.count("<button") == 1
    assert '<button type="button">two boats</button>' in shown
    assert 'data-into="canaries-pick"' in shown


def test_a_table_that_is_only_read_has_no_button_and_speaks_the_readers_language() -> None:
    table = ReadTable("history", "All commits, newest first", ["commit", "time (UTC)"])
    assert table.picked is None
    shown = table.of([["1", "2026"]], Words("de"))
    assert "<button" not in shown
    assert Words("de").header("time (UTC)") in shown
    assert f'aria-label="{Words("de").said("All commits, newest first")}"' in shown
    assert table.of([], ENGLISH) == ""


def test_many_languages_of_a_release_are_a_number_whose_title_lists_them() -> None:
    table = ReadTable("releases", "All releases", RELEASE_HEADERS, picks=[1])
    few, many = (
        table.of(release_rows([_release(*tags)]), ENGLISH)
        for tags in (("en", "de"), ["ar", "de", "en", "es", "fr", "it"])
    )
    assert "<td>en, de</td>" in few
    assert '<span title="Arabic, German, English, Spanish, French, Italian">6 languages</span>' in many
