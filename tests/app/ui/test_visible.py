"""What is drawn can be seen, on a light page and on a dark one: bars, dots, lines and cells, not only their words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests.app.server.served import Served
from tests.app.ui.browsing import IN_A_BROWSER, choose, open_page, settle, unfold
from tests.app.ui.visible import is_seen

pytestmark = IN_A_BROWSER


def _in_both_themes(page: Page) -> Iterator[None]:
    for is_dark in (False, True):
        # What Gradio does with `?__theme=dark`.
        page.evaluate("dark => document.body.classList.toggle('dark', dark)", is_dark)
        page.wait_for_timeout(400)  # colours fade over
        yield


def test_the_bars_and_dots_of_a_gate_report_are_seen(judged: Served, page: Page) -> None:
    open_page(page, f"{judged.url}/admin/")
    choose(page, "#past", "Rejected")
    page.click("#read-past")
    page.wait_for_selector("#update-verdict h2")
    unfold(page, "How sure that is")
    forest = page.locator("#update-forest .broad svg")
    for _ in _in_both_themes(page):
        for part in (".bar", ".dot", ".axis", ".limit", "text"):
            is_seen(forest.locator(part))
    for style in ("display: none", "opacity: 0.1", "stroke-width: 0", "stroke: var(--body-background-fill)"):
        page.evaluate(
            "style => { (window.spoiled ||= document.head.appendChild(document.createElement('style')))"
            ".textContent = `svg.chart .bar { ${style} !important; fill: none !important }`; }",
            style,
        )
        with pytest.raises(AssertionError):  # what a style hides is not taken for seen
            is_seen(forest.locator(".bar"))


def test_the_lines_and_dots_of_lineage_and_trends_are_seen(measured: Served, page: Page) -> None:
    open_page(page, f"{measured.url}/admin/")
    page.get_by_role("tab", name="Releases").click()
    settle(page)
    lineage = page.locator("#lineage .broad svg")
    for _ in _in_both_themes(page):
        for part in (".node", ".line", "text"):
            is_seen(lineage.locator(part))
    page.get_by_role("tab", name="Quality").click()
    settle(page)
    trend = page.locator("#quality-trend svg")
    for _ in _in_both_themes(page):
        for part in (".trend", ".dot", "text"):
            is_seen(trend.locator(part))
        is_seen(page.locator("#quality-recall .cell"), contrast=1.0)
