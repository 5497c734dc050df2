"""The grid of pictures as a browser draws it: rows of equal height, no jump, more on the way down, walked by keys."""

from __future__ import annotations

import time
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.app.server.served import Served
from tests.app.ui.album import PICTURES
from tests.app.ui.browsing import IN_A_BROWSER, NARROW_OR_WIDE, TILES, does_not_overflow, open_page, settle

pytestmark = IN_A_BROWSER
ALL = PICTURES + 10
BOXES = """() => [...document.querySelectorAll("#results > .tile:not(.blank)")].map((tile) => {
  const { x, y, width, height } = tile.getBoundingClientRect();
  const picture = tile.querySelector("img");
  const real = picture.getAttribute("width") / picture.getAttribute("height");
  return { x, y: y + scrollY, width, height, real, sound: picture.complete && picture.naturalWidth > 0 };
})"""
# Every shift of what was drawn already, but for what a person set off.
SHIFTS = """new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifted = (window.shifted || 0) + one.value;
}).observe({type: "layout-shift", buffered: true});"""


def _rows(page: Page) -> list[list[dict[str, Any]]]:
    rows: dict[int, list[dict[str, Any]]] = {}
    for box in page.evaluate(BOXES):
        rows.setdefault(round(box["y"]), []).append(box)
    return [rows[top] for top in sorted(rows)]


def _late(route: Route) -> None:
    time.sleep(0.005)
    route.continue_()


@pytest.mark.parametrize("width", [1440, pytest.param(390, marks=pytest.mark.slow)])
def test_rows_are_filled_with_whole_pictures_of_one_height(album: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, album.url)
    expect(page.locator(TILES).nth(23)).to_be_attached()
    frame = page.locator("#results").bounding_box()
    assert frame is not None
    rows = _rows(page)
    assert len(rows) > 3
    for row in rows[:-1]:
        assert max(one["height"] for one in row) - min(one["height"] for one in row) < 1
        assert row[0]["x"] == pytest.approx(frame["x"], abs=1)
        assert row[-1]["x"] + row[-1]["width"] == pytest.approx(frame["x"] + frame["width"], abs=1)
    for one in (one for row in rows for one in row):
        # Beyond 1 to 2, or 3 to 1, the ends of a picture are cut off.
        assert one["width"] / one["height"] == pytest.approx(min(max(one["real"], 0.5), 3), rel=0.02)
    does_not_overflow(page)


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_nothing_that_is_drawn_moves_while_pictures_arrive(album: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    # Pictures come late, as over a slow line.
    page.route("**/thumbnail*", _late)
    page.goto(album.url)
    expect(page.locator(TILES).nth(23)).to_be_attached()
    settle(page)
    page.evaluate("window.shifted = 0")
    before = page.evaluate(BOXES)[:20]
    page.wait_for_timeout(1500)
    after = page.evaluate(BOXES)[:20]
    places = [[(one["x"], one["y"], one["width"]) for one in boxes] for boxes in (before, after)]
    assert places[0] == places[1]
    assert page.evaluate("window.shifted") < 0.01


def test_who_scrolls_down_meets_every_picture_once(album: Served, page: Page) -> None:
    open_page(page, album.url)
    expect(page.locator(TILES).nth(23)).to_be_attached()
    for _ in range(30):
        page.mouse.wheel(0, 3000)
        page.wait_for_timeout(150)
        if page.locator(TILES).count() == ALL:
            break
    expect(page.locator(TILES)).to_have_count(ALL)
    expect(page.locator("#more")).to_be_hidden()
    ids = page.locator(f"{TILES} > a").evaluate_all("all => all.map((one) => one.dataset.id)")
    assert ids == album.serving.workspace.catalog.gallery_ids()[::-1]
    assert all(len(row) >= 1 for row in _rows(page))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_timeout(800)
    assert [one["sound"] for one in page.evaluate(BOXES)][-6:] == [True] * 6


def test_a_later_page_that_is_refused_says_why(album: Served, page: Page) -> None:
    open_page(page, album.url)
    expect(page.locator(TILES).nth(23)).to_be_attached()
    refused = (
        '<div class="answer"><div class="said refused"><p>That release is gone.</p></div><ul></ul></div>'
    )
    page.route("**/pictures", lambda route: route.fulfill(status=410, content_type="text/html", body=refused))
    page.mouse.wheel(0, 3000)
    expect(page.get_by_role("alert")).to_contain_text("That release is gone.")


def test_a_sharp_screen_gets_the_larger_thumbnail_and_a_plain_one_the_small(
    album: Served, browser: Any
) -> None:
    asked = {}
    for density in (1, 3):
        context = browser.new_context(device_scale_factor=density, viewport={"width": 1280, "height": 900})
        # From the start: a browser that has the larger one shows it in the place of the small one.
        context.add_init_script("localStorage.setItem('perennial.row', '120')")
        page = context.new_page()
        open_page(page, album.url)
        large = page.locator(f"{TILES} img[srcset]").first
        large.scroll_into_view_if_needed()
        page.wait_for_timeout(600)
        asked[density] = str(large.evaluate("image => image.currentSrc"))
        context.close()
    assert asked[3].endswith("?size=640")
    assert asked[1].endswith("/thumbnail")


def test_the_whole_page_is_used_by_keys_alone(album: Served, page: Page) -> None:
    open_page(page, album.url)
    expect(page.locator(TILES).nth(23)).to_be_attached()
    page.locator("#query input[type=search]").focus()
    page.keyboard.type("clouds")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("best matches first")
    settle(page)
    focused = "document.activeElement.closest('#results > .tile') !== null"
    for _ in range(
        14
    ):  # over the picture button, the button that searches, the facts, the size and the filters
        page.keyboard.press("Tab")
        if page.evaluate(focused):
            break
    assert page.evaluate(focused), "the grid cannot be reached by Tab"
    at = "[...document.querySelectorAll('#results > .tile > a')].indexOf(document.activeElement)"
    assert page.evaluate(at) == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(at) == 2
    there = page.evaluate(BOXES)
    page.keyboard.press("ArrowDown")
    below = page.evaluate(at)
    assert there[below]["y"] > there[2]["y"]
    assert abs(there[below]["x"] + there[below]["width"] / 2 - there[2]["x"] - there[2]["width"] / 2) < 250
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "3px"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    assert page.evaluate(at) >= 23
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    expect(page.locator("#viewer")).to_be_visible()
    # Focus stays in the picture that is open.
    for _ in range(16):
        page.keyboard.press("Tab")
        inside = (
            "document.activeElement === document.body || document.activeElement.closest('#viewer') !== null"
        )
        assert page.evaluate(inside)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    expect(page.locator("#viewer")).to_be_hidden()
    assert page.evaluate(at) == 1
    # Tab leaves the grid; it does not go through all of its pictures.
    page.keyboard.press("Tab")
    assert not page.evaluate(focused)


def test_a_picture_is_swiped_on_a_telephone(album: Served, browser: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    page = context.new_page()
    open_page(page, album.url)
    page.locator(f"{TILES} > a").nth(1).tap()
    expect(page.locator("#viewer .stage img")).to_be_visible()
    before = page.url
    swipe = """([from, to]) => { const stage = document.querySelector("#viewer .stage");
      const touch = (x) => new Touch({identifier: 1, target: stage, clientX: x, clientY: 300});
      const send = (kind, touches, changedTouches) =>
        stage.dispatchEvent(new TouchEvent(kind, {touches, changedTouches, bubbles: true}));
      send("touchstart", [touch(from)], [touch(from)]);
      send("touchend", [], [touch(to)]); }"""
    page.evaluate(swipe, [300, 80])
    assert page.url != before
    page.evaluate(swipe, [80, 300])
    assert page.url == before
    context.close()
