"""The Check step: a verdict in one line and its button in view without scrolling, all else folded below."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

from app.ui.report_words import check_view
from app.ui.words import Words
from tests.app.gate_reports import chunk_with_findings
from tests.app.server.served import Served
from tests.app.ui.browsing import IN_A_BROWSER, choose, does_not_overflow, open_page, settle, unfold

pytestmark = IN_A_BROWSER


def test_the_verdict_is_one_line() -> None:
    ready = replace(chunk_with_findings("new"), report={})
    assert check_view(ready, 0) == "## Ready to teach\\: 1185 captions in German\\."
    assert check_view(ready, 8).endswith(" 8 more wait for your word\\.")
    assert check_view(ready, 1).endswith(" 1 more waits for your word\\.")
    both = replace(ready, languages={"de": 1000, "en": 185})
    assert check_view(both, 0) == "## Ready to teach\\: 1185 captions in 2 languages\\."
    assert "a check found “row shift”" in check_view(chunk_with_findings(), 0)
    assert "nothing of it counts" in check_view(replace(ready, standing="withdrawn"), 3)
    assert "no captions" in check_view(replace(ready, pairs=0, languages={}), 0)
    assert "Deutsch" in check_view(ready, 0, Words("de"))


@pytest.mark.parametrize("screen", [(390, 844), pytest.param((1440, 900), marks=pytest.mark.slow)])
def test_the_button_is_in_view_and_details_are_folded(
    server: Served, page: Page, screen: tuple[int, int]
) -> None:
    page.set_viewport_size({"width": screen[0], "height": screen[1]})
    open_page(page, f"{server.url}/admin/")
    choose(page, "#known", "scenes")
    page.click("#use-known")
    expect(page.locator("#check-verdict h2")).to_contain_text("Ready to teach")
    expect(page.locator("#go-on")).to_be_enabled()
    settle(page)
    expect(page.locator("#go-on")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    for folded in ("#report-summary", "#word-why", "#finding-0"):
        expect(page.locator(folded)).to_be_hidden()
    unfold(page, "What was taken in")
    expect(page.locator("#report-summary table")).to_be_visible()
    does_not_overflow(page)
