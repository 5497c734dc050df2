"""The Compare tab in a real browser: blind votes, many queries at once, and those that changed most."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from app.desk.opinions import Votes
from app.ui import compare_words
from tests.app.server.served import Served
from tests.app.ui.browsing import IN_A_BROWSER, NARROW_OR_WIDE, does_not_overflow, is_drawn, open_page, settle

pytestmark = IN_A_BROWSER


@pytest.fixture
def comparing(server: Served, page: Page) -> Page:
    open_page(page, server.url)
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#release-a input")).to_have_value(re.compile("live"))
    settle(page)
    return page


def _write(page: Page, text: str) -> None:
    page.fill("#compare-query textarea, #compare-query input", text)


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_blind_vote_hides_the_releases_until_it_was_given(
    server: Served, comparing: Page, width: int
) -> None:
    page = comparing
    page.set_viewport_size({"width": width, "height": 900})
    _write(page, f"a red boat at {width}")
    page.click("#compare-blind")
    expect(page.locator("#vote-a")).to_be_visible()
    page.wait_for_selector("#compare-b .thumbnail-item img")
    settle(page)
    is_drawn(page, "#compare-a img")
    shown = page.locator(".side").all_inner_texts() + page.locator("#compare-status").all_inner_texts()
    assert not any(re.search(r"r\d-", text) for text in shown), "the names must not be seen yet"
    assert not page.locator("#compare-slices").is_visible()
    labels = page.locator("#compare-a .caption-label, #compare-b .caption-label").all_inner_texts()
    assert all(re.fullmatch(r"\d+", label.strip()) for label in labels), "scores give releases away"
    does_not_overflow(page)
    page.click("#vote-b")
    expect(page.locator("#compare-status")).to_contain_text("You preferred")
    expect(page.locator("#compare-votes svg title")).to_have_text(re.compile("votes preferred"))
    expect(page.locator("#vote-a")).to_be_hidden()
    does_not_overflow(page)
    said = page.inner_text("#compare-status")
    match = re.search(r"You preferred (r\d-\w+)", said)
    assert match is not None
    newest = server.serving.workspace.catalog.feedback.all(limit=1)[0]
    assert (newest.query, newest.by) == (f"a red boat at {width}", "local")
    assert {"a": newest.release, "b": newest.other}[newest.verdict] == match[1]


def test_a_vote_between_a_release_and_itself_is_refused(server: Served, comparing: Page) -> None:
    page = comparing
    live = page.locator("#release-a input").input_value()
    page.click("#release-b input")
    page.locator("[role=option]").filter(has_text=live.split(" ")[0]).first.click()
    settle(page)
    _write(page, "a red boat")
    page.click("#compare-blind")
    expect(page.locator("#compare-status")).to_contain_text("same release")
    expect(page.locator("#vote-a")).to_be_hidden()


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_many_queries_are_asked_at_once_and_one_of_them_is_looked_at(comparing: Page, width: int) -> None:
    page = comparing
    page.set_viewport_size({"width": width, "height": 900})
    page.click("#many button.label-wrap")
    page.fill("#many-queries textarea", f"a red boat\n<b>zwei Boote</b>\n{'x' * 600}")
    settle(page)
    page.click("#many-go")
    expect(page.locator("#many-said")).to_contain_text("3 queries")
    expect(page.locator("#many-said")).to_contain_text("1 refused")
    cells = page.locator("#many-table td")
    expect(cells.filter(has_text="<b>zwei Boote</b>")).to_have_count(1)
    does_not_overflow(page)
    settle(page)
    cells.filter(has_text="a red boat").first.click()
    page.wait_for_selector("#compare-b .thumbnail-item img")
    expect(page.locator("#compare-query textarea, #compare-query input").first).to_have_value("a red boat")
    does_not_overflow(page)


def test_what_changed_most_is_looked_for_or_said_not_to_be_there(comparing: Page) -> None:
    page = comparing
    page.click("#many button.label-wrap")
    settle(page)
    page.click("#many-changed")
    expect(page.locator("#many-said")).to_contain_text(re.compile("changed most|no held-out", re.I))


def _votes(for_a: int, for_b: int, share: float | None, low: float | None, high: float | None) -> Votes:
    return Votes("r1-a", "r2-b", for_a, for_b, 1, 2, share, low, high)


def test_an_interval_that_holds_the_middle_tells_nobody_apart() -> None:
    unsure = compare_words.votes_line(_votes(1, 2, 66.7, 20.8, 93.9))
    assert "2 of 3 votes preferred r2-b to r1-a: 67 %, 95 % interval 21 to 94 %" in unsure
    assert "not enough to tell them apart" in unsure
    assert "1 tie, 2 both bad" in unsure
    assert "apart" not in compare_words.votes_line(_votes(1, 30, 97.0, 84.0, 99.0))
    assert "No votes between" in compare_words.votes_line(_votes(0, 0, None, None, None))
