"""The pages in a browser that speaks another language than English."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.ui import compare_words, quality_plots
from app.ui.words import Words
from tests.app.server.served import Served
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    TILES,
    ask,
    choose,
    does_not_overflow,
    open_page,
    speaking,
    unfold,
)

pytestmark = IN_A_BROWSER


def _in(*wanted: str) -> pytest.MarkDecorator:
    """Asks a test in these ways of writing and widths; in the others under -m slow."""
    every = {"ar-390": ("ar", 390), "de-AT-1440": ("de-AT", 1440), "ar-1440": ("ar", 1440)}
    return pytest.mark.parametrize(
        "abroad",
        [
            pytest.param(way, id=name, marks=[] if name in wanted else [pytest.mark.slow])
            for name, way in every.items()
        ],
        indirect=True,
    )


both_directions = _in("ar-390", "de-AT-1440")
# Narrow and from right to left, where most goes wrong.
in_arabic = _in("ar-390")


@pytest.fixture
def abroad(page: Page, request: pytest.FixtureRequest) -> Iterator[tuple[str, Page]]:
    locale, width = request.param
    page.set_viewport_size({"width": width, "height": 900})
    with speaking(page, locale):
        yield locale.split("-")[0], page


# What a person sees and presses on the Search page; each must be whole, inside the screen and beside the others.
SEEN = (
    ".masthead h1",
    ".masthead a",
    "[role=tab]",
    "#query input[type=search]",
    "#status .count",
    "#status summary",
    "#filters > button",
)
BOXES = """(wanted) => wanted.flatMap((one) => [...document.querySelectorAll(one)]).map((seen) => {
  const { left, top, right, bottom } = seen.getBoundingClientRect();
  const cut = seen.scrollWidth > seen.clientWidth + 1 && getComputedStyle(seen).overflowX !== "visible";
  return { name: seen.textContent.trim() || seen.className, left, top, right, bottom, cut };
}).filter((one) => one.right > one.left)"""


# The longest words, and the other direction on a telephone; every language at every width under -m slow.
ROOMS = [("de", 1440), ("ar", 390)]


@pytest.mark.parametrize(
    ("locale", "width"),
    [
        pytest.param(locale, width, marks=[] if (locale, width) in ROOMS else [pytest.mark.slow])
        for locale in ("en", "de", "es", "fr", "ja", "zh-CN", "ar")
        for width in (1440, 390)
    ],
)
def test_what_is_said_has_room_in_every_language(server: Served, page: Page, locale: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if width == 390 else "light")
    with speaking(page, locale):
        for address in ("/", "/?text=ein+rotes+Boot"):
            page.goto(f"{server.url}{address}")
            expect(page.locator(TILES)).to_have_count(10)
            page.wait_for_timeout(800)  # the filters come with Gradio
            boxes = page.evaluate(BOXES, SEEN)
            assert len(boxes) >= len(SEEN)
            for one in boxes:
                assert not one["cut"], one
                assert one["left"] >= 0, one
                assert one["right"] <= width, one
            for one, other in itertools.combinations(boxes, 2):
                apart = one["right"] <= other["left"] + 1 or other["right"] <= one["left"] + 1
                assert apart or one["bottom"] <= other["top"] + 1 or other["bottom"] <= one["top"] + 1, (
                    one,
                    other,
                )
            # Pictures come first: they fill nearly three quarters of a telephone, and more of a desk.
            first = page.locator(TILES).first.bounding_box()
            assert first is not None
            assert first["y"] < (200 if width > 1000 else 250)
        does_not_overflow(page)
        assert broken_rules(page) == []


@in_arabic
def test_a_person_searches_in_their_own_language(server: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    say = Words(language)
    page.goto(server.url)
    expect(page.get_by_role("tab").first).to_have_text(say("Search"))
    expect(page.locator("#query input[type=search]")).to_have_attribute(
        "placeholder", say("Search your pictures, or drop one here")
    )
    page.wait_for_timeout(1000)  # until the filters are there
    ask(page, "#query", "ein rotes Boot")
    expect(page.locator(TILES)).to_have_count(10)
    expect(page.locator("#status summary")).to_have_attribute("aria-label", say("About this answer"))
    page.wait_for_timeout(500)
    page.locator(f"{TILES} > a").nth(1).click()
    expect(page.locator("#viewer .facts")).to_contain_text(say("Captions"))
    expect(page.get_by_label(say("This picture fits the search"))).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == language
    does_not_overflow(page)
    assert broken_rules(page) == []


@both_directions
def test_a_page_runs_from_right_to_left_where_its_language_does(
    server: Served, abroad: tuple[str, Page]
) -> None:
    language, page = abroad
    page.goto(f"{server.url}/?text=boat")
    expect(page.locator(TILES)).to_have_count(10)
    first, second = (page.locator(TILES).nth(n).bounding_box() for n in (0, 1))
    assert first is not None
    assert second is not None
    assert (first["x"] > second["x"]) is (language == "ar")
    # Focus goes where the arrow points.
    page.locator(f"{TILES} > a").nth(0).focus()
    page.keyboard.press("ArrowLeft" if language == "ar" else "ArrowRight")
    assert page.locator(f"{TILES} > a").nth(1).evaluate("tile => tile === document.activeElement")
    # What was asked in another script runs in that script's direction.
    box = page.locator("#query input[type=search]")
    assert box.evaluate("box => getComputedStyle(box).direction") == "ltr"


@in_arabic
def test_the_pages_for_admins_speak_it_too(server: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    page.goto(f"{server.url}/admin/")
    expect(page.get_by_role("tab").first).to_have_text(Words(language)("Update"))
    expect(page.get_by_text(Words(language).said("Upload and check"))).to_be_visible()
    does_not_overflow(page)


@in_arabic
def test_compare_and_its_answers_speak_it(server: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    open_page(page, server.url)
    page.get_by_role("tab", name=Words(language)("Compare")).click()
    heading = Words(language).said(compare_words.HINT).splitlines()[0].lstrip("# ")
    expect(page.locator("#compare-status h2")).to_have_text(heading)
    does_not_overflow(page)
    ask(page, "#compare-query", "a red boat on the beach")
    expect(page.locator("#compare-b .thumbnail-item")).to_have_count(10)
    overlap = page.locator("#compare-status strong").first
    expect(overlap).to_have_text(re.compile({"de": r"\d+ % gemeinsam", "ar": r"\d+\W % مشترك"}[language]))
    does_not_overflow(page)


@in_arabic
def test_update_and_what_it_says_of_a_chunk_speak_it(judged: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    say = Words(language).said
    open_page(page, f"{judged.url}/admin/")
    expect(page.get_by_text(Words(language).said("Upload and check"))).to_be_visible()
    page.click("#check")
    expect(page.locator("#upload-said")).to_have_text(say("Choose a file first."))
    choose(page, "#known", say("held"))
    page.click("#use-known")
    unfold(page, say("What was taken in"))
    standing = say("Status: held (not used for training until somebody accepts it).")
    expect(page.locator("#report-summary")).to_contain_text(standing)
    assert standing.startswith({"de": "Stand", "ar": "الحالة"}[language])
    does_not_overflow(page)


@in_arabic
def test_the_tables_for_admins_have_their_headers_in_it(server: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    english = {"state", "parent", "created (UTC)", "taught", "pairs"}
    open_page(page, f"{server.url}/admin/")
    for tab, table, header in (
        (Words(language)("Releases"), "#releases", "state"),
        (Words(language).said("Data"), "#chunks", "taught"),
    ):
        page.get_by_role("tab", name=tab, exact=True).click()
        columns = page.locator(f"{table} th")
        expect(columns.filter(has_text=Words(language).header(header)).first).to_be_visible()
        left = {text.strip() for text in columns.all_inner_texts()} & english
        assert left == set(), f"{table}: {left}"


@in_arabic
def test_quality_and_system_speak_it(measured: Served, abroad: tuple[str, Page]) -> None:
    language, page = abroad
    words = Words(language)
    open_page(page, f"{measured.url}/admin/")
    page.get_by_role("tab", name=Words(language).said("Quality"), exact=True).click()
    expect(page.locator("#quality-recall thead th").first).to_have_text(words.header(quality_plots.SLICE))
    expect(page.locator("#quality-change .cell").first).to_have_text(words.said("first"))
    expect(page.locator("#quality-view input")).to_have_value(words.said("own gallery"))
    expect(page.locator("#quality-coverage thead th").last).to_have_text(words.header("enough to decide"))
    does_not_overflow(page)
    page.get_by_role("tab", name=Words(language).said("System"), exact=True).click()
    expect(page.locator("#doctor-said")).to_have_text(words.said("Not checked yet."))
    page.get_by_text(Words(language).said("Settings"), exact=True).click()
    expect(page.locator("#settings tbody td").last).to_have_text(
        words.said("Of the gate's policy (docs/gate.md).")
    )
    does_not_overflow(page)
