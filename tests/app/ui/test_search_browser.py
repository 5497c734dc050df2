"""The Search tab in a real browser: searches have addresses, and what people say of a picture is kept."""

from __future__ import annotations

import re
import zipfile

import pytest
from playwright.sync_api import Page, expect

from tests.app.server.served import Served
from tests.app.ui.browsing import IN_A_BROWSER, ask, choose, does_not_overflow, is_drawn, open_page, settle

pytestmark = IN_A_BROWSER
HITS = "#results .thumbnail-item"


def _asked(page: Page) -> str:
    return page.locator("#query textarea").input_value()


def test_a_search_has_an_address_that_shows_it_again(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?__theme=light")
    ask(page, "#query", "a red boat")
    expect(page.locator(HITS)).to_have_count(10)
    expect(page).to_have_url(re.compile(r"\?text=a\+red\+boat&__theme=light$"))
    settle(page)
    page.click("#filters button")
    choose(page, "#mode", "Pictures and captions")
    expect(page).to_have_url(re.compile("mode=hybrid"))
    first = page.locator(f"{HITS} img").first.get_attribute("src")
    page.reload()
    expect(page.locator(f"{HITS} img").first).to_have_attribute("src", str(first))
    assert _asked(page) == "a red boat"
    expect(page.locator("#filters")).to_contain_text("in use: 1")
    settle(page)
    page.click("#filters button")
    expect(page.locator("#mode input")).to_have_value("Pictures and captions")


def test_a_person_goes_back_and_finds_earlier_searches_in_this_browser(server: Served, page: Page) -> None:
    open_page(page, server.url)
    for text in ("a red boat", "a yellow house"):
        ask(page, "#query", text)
        expect(page).to_have_url(re.compile(text.replace(" ", r"\+")))
    settle(page)
    page.go_back()
    expect(page.locator("#query textarea")).to_have_value("a red boat")
    settle(page)
    page.locator("#status a").last.click()
    expect(page.locator("#recent a")).to_have_text(["a red boat", "a yellow house"])
    expect(page).to_have_url(f"{server.url}/")
    settle(page)
    page.locator("#recent a").last.click()
    expect(page.locator(HITS)).to_have_count(10)
    assert _asked(page) == "a yellow house"
    settle(page)
    page.locator("#status a").last.click()
    page.click("#recent button")
    expect(page.locator("#recent")).to_have_count(0)
    assert page.evaluate("localStorage.getItem('perennial.searches')") == "[]"


def test_a_caption_of_a_hit_is_a_search(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(HITS)).to_have_count(10)
    settle(page)
    page.locator(HITS).nth(3).click()
    caption = page.locator("#facts li a").last
    expect(caption).to_be_visible()
    words = caption.inner_text()
    settle(page)
    caption.click()
    expect(page.locator("#query textarea")).to_have_value(f'"{words}"')
    expect(page.locator("#details")).to_be_hidden()


def test_a_picture_is_marked_as_chosen_until_another_search_or_its_details_are_closed(
    server: Served, page: Page
) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(HITS)).to_have_count(10)
    for closes in (False, True):
        settle(page)
        page.locator(HITS).nth(2).click()
        expect(page.locator("#details")).to_be_visible()
        expect(page.locator(f"{HITS}.selected")).to_have_count(1)
        settle(page)
        if closes:
            page.click("#close")
        else:
            ask(page, "#query", "a yellow house")
        expect(page.locator("#details")).to_be_hidden()
        expect(page.locator(f"{HITS}.selected")).to_have_count(0)
        expect(page.locator(HITS)).to_have_count(10)


def test_a_thumb_is_kept_with_what_was_asked(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat+at+night")
    expect(page.locator(HITS)).to_have_count(10)
    settle(page)
    page.locator(HITS).nth(1).click()
    expect(page.locator("#thumb-down")).to_be_visible()
    settle(page)
    page.click("#thumb-down")
    expect(page.locator("#thumb-said")).to_contain_text("Kept")
    record = server.serving.workspace.catalog.feedback.all()[0]
    assert (record.query, record.verdict, record.by) == ("a red boat at night", "down", "local")
    assert record.image_id in str(page.locator(f"{HITS} img").nth(1).get_attribute("src"))


def test_days_and_chunks_filter(server: Served, page: Page) -> None:
    (chunk, *_) = server.serving.workspace.catalog.chunks()
    open_page(page, f"{server.url}/?text=boat&chunks={chunk.id}&since=2020-01-01&chunks=gone")
    expect(page.locator(HITS)).to_have_count(10)
    expect(page.locator("#status")).to_contain_text("left out: gone")
    settle(page)
    page.click("#filters button")
    expect(page.locator("#chunks")).to_contain_text(chunk.name)
    page.fill("#until input, #until textarea", "2020-12-31")
    page.keyboard.press("Enter")
    expect(page.locator("#empty")).to_contain_text("No picture fits")
    settle(page)
    page.fill("#until input, #until textarea", "last week")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("A day is written as 2026-01-31; found 'last week'")


@pytest.mark.parametrize("width", [1440, 390])
def test_a_language_that_is_not_learned_says_what_helps(server: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, f"{server.url}/?text=%E8%B5%A4%E3%81%84%E8%88%B9")
    expect(page.locator("#status")).to_contain_text("What helps")
    # The filter in which the English words go is open.
    settle(page)
    page.fill("#translation input, #translation textarea", "a red boat")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).not_to_contain_text("What helps")
    expect(page).to_have_url(re.compile("translation=a"))
    is_drawn(page, f"{HITS} img")
    does_not_overflow(page)


def test_what_is_on_the_screen_is_taken_away_as_files(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(HITS)).to_have_count(10)
    settle(page)
    ids = [str(one.get_attribute("src")).split("/")[-2] for one in page.locator(f"{HITS} img").all()]
    with page.expect_download() as download:
        page.click("#save-table")
    assert download.value.suggested_filename == "results.csv"
    lines = download.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert [one for line in lines for one in ids if one in line] == ids
    with page.expect_download() as download:
        page.click("#save-pictures")
    with zipfile.ZipFile(download.value.path()) as archive:
        assert [name[5:17] for name in archive.namelist()[1:]] == [one[:12] for one in ids]


def test_pictures_are_shown_larger(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(HITS)).to_have_count(10)
    settle(page)
    width = "hit => hit.getBoundingClientRect().width"
    before = page.locator(HITS).first.evaluate(width)
    page.locator("#size label").last.click()
    assert page.locator(HITS).first.evaluate(width) > 1.5 * before
