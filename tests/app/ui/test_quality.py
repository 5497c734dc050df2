"""The Quality tab in a real browser, and what its drawings say."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from app.desk.verdicts import Measure, QualityTable, SliceLine, VersionColumn
from app.ui import quality_plots
from tests.app.server.served import Served
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    NARROW_OR_WIDE,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    settle,
)
from tests.app.ui.visible import is_seen

pytestmark = IN_A_BROWSER


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_pressed_cell_shows_the_captions_that_moved_with_their_pictures(
    measured: Served, page: Page, width: int
) -> None:
    with measured.client() as client:
        for _ in range(3):
            client.post("/v1/search", json={"text": "เรือสีแดงสองลำ", "k": 2})
    measured.serving.languages_asked.flush()
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, f"{measured.url}/admin/")
    page.get_by_role("tab", name="Quality").click()
    expect(page.locator("#quality-recall tbody tr")).to_have_count(2)
    expect(page.locator("#quality-advice")).to_contain_text("Thai is asked for and not learned")
    expect(page.locator("#quality-trend svg title")).to_have_text(re.compile("Recall by language"))
    does_not_overflow(page)
    settle(page)
    cell = page.locator("#quality-change button").first
    cell.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#quality-moved")).to_contain_text("Measured just now")
    settle(page)
    is_drawn(page, "#quality-cards img")
    does_not_overflow(page)
    choose(page, "#quality-metric", "R@1")
    expect(page.locator("#quality-recall .cell").first).to_contain_text(re.compile(r"^\d+\.\d$"))


def test_drift_is_measured_between_two_releases(measured: Served, page: Page) -> None:
    open_page(page, f"{measured.url}/admin/")
    page.get_by_role("tab", name="Quality").click()
    expect(page.locator("#quality-recall tbody tr")).to_have_count(2)
    settle(page)
    page.click("#drift button.label-wrap")
    page.click("#drift-measure")
    expect(page.locator("#drift-table")).to_contain_text("texts turned (RAM)")
    expect(page.locator("#drift-table tbody tr")).to_have_count(6)
    settle(page)
    is_seen(page.locator("#drift-table .share"))
    does_not_overflow(page)


def _table(*recalls: dict[str, float]) -> QualityTable:
    columns = tuple(
        VersionColumn(f"v{n}", f"r{n}-x", "2026", "", ("en",), True, n == len(recalls))
        for n in range(1, len(recalls) + 1)
    )
    languages = sorted({language for one in recalls for language in one})
    lines = tuple(
        SliceLine(
            language,
            "<photo>",
            tuple(Measure(one[language], 9, 9) if language in one else None for one in recalls),
        )
        for language in languages
    )
    return QualityTable("t2i_r10", "own", columns, lines, None, None)


def test_a_trend_needs_two_versions_and_begins_where_a_language_was_measured() -> None:
    assert quality_plots.trend_plot(_table({"en": 50.0})) is None
    drawn = quality_plots.trend_plot(_table({"en": 50.0}, {"en": 40.0, "de": 90.0}))
    assert drawn is not None
    assert drawn.count("<polyline") == 2
    assert drawn.count("<circle") == 3
    assert "German 90" in drawn


def test_a_slice_that_only_some_versions_measured_makes_no_trend() -> None:
    """English finds what it found; the second version also measured a domain in which more is found."""
    table = _table({"en": 18.0}, {"en": 18.0})
    drawings = SliceLine("en", "drawings", (None, Measure(40.0, 9, 9)))
    drawn = quality_plots.trend_plot(replace(table, lines=(*table.lines, drawings)))
    assert drawn is not None
    assert "English 18" in drawn
    (way,) = re.findall(r'points="([^"]+)"', drawn)
    assert len({spot.split(",")[1] for spot in way.split()}) == 1, "a level line"
    assert "Compared on the 1 of 2 slices that every version that knows the language has measured" in drawn


def test_names_from_outside_are_escaped_and_old_columns_are_left_out() -> None:
    drawn = quality_plots.recall_table(_table(*({"en": float(n)} for n in range(1, 16))))
    assert "en/&lt;photo&gt;" in drawn
    assert "r3-x" not in drawn
    assert "r15-x" in drawn
    assert "3 oldest versions" in drawn
