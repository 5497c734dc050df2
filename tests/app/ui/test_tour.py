"""A newcomer's walk over every tab: nothing in the console, no broken picture, nothing over the edge, wide and narrow.

README's pictures are taken on this walk, in a demo's home:

    perennial demo --script --home HOME
    PERENNIAL_TOUR_HOME=HOME PERENNIAL_SCREENSHOTS=docs/screenshots pytest -m slow tests/app/ui/test_tour.py
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect

from app.home.settings import Settings
from tests.app.server.served import Served, make_home, served
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    TILES,
    ask,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    settle,
)

# In every run test_accessibility.py asks for the same of every tab, by turns narrow and wide.
pytestmark = [*IN_A_BROWSER, pytest.mark.slow]
HOME, SHOTS = os.environ.get("PERENNIAL_TOUR_HOME"), os.environ.get("PERENNIAL_SCREENSHOTS")
QUERY = "zwei rote Boote" if HOME else "a red boat on the beach"
BROKEN = (
    "[...document.images].filter(one => one.complete && !one.naturalWidth && one.src).map(one => one.src)"
)


@pytest.fixture(scope="module")
def toured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = Settings(home=Path(HOME)) if HOME else make_home(tmp_path_factory.mktemp("tour"))
    with served(settings, with_pages=True) as running:
        yield running


@pytest.fixture(params=[390, 1440])
def walking(page: Page, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page of some width; whatever its console complains of fails the test."""
    complaints: list[str] = []

    def hear(said: ConsoleMessage) -> None:
        if said.type == "error":
            complaints.append(f"{said.text} ({said.location.get('url', '')})")

    page.on("console", hear)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_viewport_size({"width": request.param, "height": 900})
    yield page
    assert complaints == []


def _go(page: Page, url: str, tab: str) -> None:
    open_page(page, url)
    if page.get_by_role("tab", name=tab, exact=True).count():
        page.get_by_role("tab", name=tab, exact=True).click()
    else:  # tabs for which a narrow screen has no room are in a menu
        page.locator(".overflow-menu button").first.click()
        page.locator(".overflow-dropdown button").filter(has_text=tab).click()
    settle(page)


def _broken(page: Page, name: str) -> list[str]:
    """Returns the pictures on the screen that are broken; takes README's picture of it. Nothing may overflow."""
    settle(page)
    does_not_overflow(page)
    width = page.evaluate("window.innerWidth")
    if SHOTS:
        page.evaluate("window.scrollTo(0, 0)")
        page.wait_for_timeout(400)
        page.screenshot(path=str(Path(SHOTS) / (f"{name}.png" if width == 1440 else f"{name}-narrow.png")))
    return list(page.evaluate(BROKEN))


def test_search(toured: Served, walking: Page) -> None:
    _go(walking, toured.url, "Search")
    is_drawn(walking, f"{TILES} img")
    assert _broken(walking, "browse") == []
    ask(walking, "#query", QUERY)
    expect(walking.locator("#status .about")).to_be_visible()
    is_drawn(walking, f"{TILES} img")
    assert _broken(walking, "search") == []
    walking.locator(f"{TILES} > a").nth(1).click()
    walking.wait_for_selector("#viewer .spoken li", state="attached")
    is_drawn(walking, "#viewer .stage img")
    assert _broken(walking, "picture") == []


def test_compare(toured: Served, walking: Page) -> None:
    _go(walking, toured.url, "Compare")
    if HOME:
        choose(walking, "#release-b", "base")
    ask(walking, "#compare-query", QUERY)
    walking.wait_for_selector("#compare-a .thumbnail-item img")
    walking.wait_for_selector("#compare-b .thumbnail-item img")
    assert _broken(walking, "compare") == []


def test_update(toured: Served, walking: Page) -> None:
    _go(walking, f"{toured.url}/admin/", "Update")
    assert _broken(walking, "update") == []


def test_releases(toured: Served, walking: Page) -> None:
    _go(walking, f"{toured.url}/admin/", "Releases")
    expect(walking.locator("#releases td").first).to_be_visible()
    assert _broken(walking, "releases") == []


def test_quality(toured: Served, walking: Page) -> None:
    _go(walking, f"{toured.url}/admin/", "Quality")
    expect(walking.locator("#quality-said")).not_to_be_empty()
    assert _broken(walking, "quality") == []


def test_data(toured: Served, walking: Page) -> None:
    _go(walking, f"{toured.url}/admin/", "Data")
    walking.locator("#chunks td").first.click()
    expect(walking.locator("#chunk-about")).to_contain_text("Status")
    assert _broken(walking, "data") == []


def test_system(toured: Served, walking: Page) -> None:
    _go(walking, f"{toured.url}/admin/", "System")
    assert _broken(walking, "system") == []
