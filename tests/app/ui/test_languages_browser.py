"""The pages in a browser that speaks another language than English."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from app.ui.words import LABELS, TABLES
from tests.app.server.served import Served
from tests.app.ui.browsing import IN_A_BROWSER, WAIT_MS, ask, does_not_overflow

pytestmark = IN_A_BROWSER
HITS = "#results .thumbnail-item"
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(params=[("de-AT", 1440), ("ar", 1440), ("ar", 390)], ids=lambda one: f"{one[0]}-{one[1]}")
def abroad(browser: Any, request: pytest.FixtureRequest) -> Iterator[tuple[str, Page]]:
    locale, width = request.param
    context = browser.new_context(locale=locale, viewport={"width": width, "height": 900})
    context.set_default_timeout(WAIT_MS)
    yield locale.split("-")[0], context.new_page()
    context.close()


def test_a_person_searches_in_their_own_language(server: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    words = TABLES[language]
    page.goto(server.url)
    expect(page.get_by_role("tab").first).to_have_text(words["tab_search"])
    expect(page.locator("#query textarea")).to_have_attribute("placeholder", words["box"])
    page.wait_for_timeout(1000)  # until the menus are there: what is typed before then is lost
    ask(page, "#query", "ein rotes Boot")
    expect(page.locator(HITS)).to_have_count(10)
    expect(page.locator("#status")).to_contain_text(words["new_search"])
    page.locator(HITS).nth(1).click()
    expect(page.locator("#facts")).to_contain_text(words["captions"])
    expect(page.locator("#thumb-up")).to_have_text(words["fits"])
    assert page.evaluate("document.documentElement.lang") == language
    does_not_overflow(page)
    page.evaluate(AXE)
    broken: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document)).violations")
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in broken] == []


def test_a_page_runs_from_right_to_left_where_its_language_does(
    server: Served, abroad: tuple[str, Page]
) -> None:
    language, page = abroad
    page.goto(f"{server.url}/?text=boat")
    expect(page.locator(HITS)).to_have_count(10)
    first, second = (page.locator(HITS).nth(n).bounding_box() for n in (0, 1))
    assert first is not None
    assert second is not None
    assert (first["x"] > second["x"]) is (language == "ar")
    # Focus goes where the arrow points.
    page.locator(HITS).nth(0).focus()
    page.keyboard.press("ArrowLeft" if language == "ar" else "ArrowRight")
    assert page.locator(HITS).nth(1).evaluate("hit => hit === document.activeElement")
    # What was asked in another script runs in that script's direction.
    assert page.locator("#query textarea").evaluate("box => getComputedStyle(box).direction") == "ltr"


def test_the_pages_for_admins_speak_it_too(server: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    page.goto(f"{server.url}/admin/")
    expect(page.get_by_role("tab").first).to_have_text(TABLES[language]["tab_update"])
    expect(page.get_by_text(LABELS[language]["Take it in and check it"])).to_be_visible()
    does_not_overflow(page)
