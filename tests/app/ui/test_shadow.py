"""The shadow of a candidate in a real browser: begun and ended on Releases, shown there and on Compare."""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Page, expect

from tests.app.server.served import Served
from tests.app.ui.browsing import IN_A_BROWSER, NARROW_OR_WIDE, choose, does_not_overflow, open_page, settle

pytestmark = IN_A_BROWSER


def _select(page: Page, server: Served, release: str) -> None:
    open_page(page, f"{server.url}/admin/")
    page.get_by_role("tab", name="Releases").click()
    settle(page)
    page.locator("#releases td").filter(has_text=f"{release}-").last.click()
    expect(page.locator("#releases-said")).to_contain_text(f"Selected: {release}-")
    settle(page)


def _until_asked(server: Served, queries: int) -> None:
    deadline = time.monotonic() + 120
    with server.client() as client:
        while time.monotonic() < deadline:
            total = client.get("/v1/releases/r2/shadow").json()["total"]
            if total and total["queries"] >= queries:
                return
            time.sleep(0.1)
    raise AssertionError("the candidate was never asked")


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_candidate_is_asked_in_the_shadow_and_its_report_is_on_both_pages(
    server: Served, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    _select(page, server, "r2")
    page.wait_for_selector("#shadow-start")
    choose(page, "#shadow-share", "every one")
    page.click("#shadow-start")
    expect(page.locator("#release-shadow")).to_contain_text("has been in the shadow since")
    expect(page.locator("#releases")).to_contain_text("◐ shadow")
    before = _asked(server)
    with server.client() as client:
        while not server.serving.shadowing.release:
            time.sleep(0.05)
        for query in ("two red boats", "a house at night", "เรือสีแดงสองลำ"):
            assert client.post("/v1/search", json={"text": query}).status_code == 200
    _until_asked(server, before + 3)
    _select(page, server, "r2")
    expect(page.locator("#release-shadow tbody tr")).to_have_count(3)
    expect(page.locator("#release-shadow")).to_contain_text("Thai")
    does_not_overflow(page)
    page.click("#shadow-stop")
    expect(page.locator("#release-shadow")).to_contain_text("ended it")
    settle(page)
    open_page(page, server.url)
    page.get_by_role("tab", name="Compare").click()
    settle(page)
    choose(page, "#release-b", "r2-")
    page.fill("#compare-query textarea, #compare-query input", "a red boat")
    settle(page)
    page.click("#compare-go")
    expect(page.locator("#compare-shadow")).to_contain_text("of the first 10 pictures")
    does_not_overflow(page)


def _asked(server: Served) -> int:
    with server.client() as client:
        total = client.get("/v1/releases/r2/shadow").json()["total"]
    return int(total["queries"]) if total else 0


def test_what_is_live_is_not_asked_in_its_own_shadow(server: Served, page: Page) -> None:
    _select(page, server, "r1")
    expect(page.locator("#shadow-start")).to_be_hidden()
    expect(page.locator("#release-shadow")).to_be_hidden()


def test_the_angles_between_two_releases_are_drawn_on_compare(measured: Served, page: Page) -> None:
    open_page(page, measured.url)
    page.get_by_role("tab", name="Compare").click()
    settle(page)
    page.click("#turned button.label-wrap")
    settle(page)
    page.click("#compare-drift-measure")
    expect(page.locator("#compare-drift-table tbody tr")).to_have_count(6)
    expect(page.locator("#compare-drift-table")).to_contain_text("ImAM")
    does_not_overflow(page)
