"""The Search tab in a real browser: searches have addresses, pictures open large, and what people say is kept."""

from __future__ import annotations

import re
import zipfile

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.app.server.served import Served
from tests.app.ui.album import PICTURES
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    NARROW_OR_WIDE,
    TILES,
    ask,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    reopen,
    settle,
)

pytestmark = IN_A_BROWSER


PICTURE = "#viewer .stage img"


def _asked(page: Page) -> str:
    return page.locator("#query input[type=search]").input_value()


def _shown(page: Page) -> list[str]:
    return [str(one.get_attribute("data-id")) for one in page.locator(f"{TILES} > a").all()]


def _open(page: Page, number: int) -> None:
    settle(page)
    page.locator(f"{TILES} > a").nth(number).click()
    expect(page.locator(PICTURE)).to_be_visible()
    settle(page)


def test_the_page_opens_with_the_newest_pictures(server: Served, page: Page) -> None:
    open_page(page, server.url)
    expect(page.locator(TILES)).to_have_count(10)
    assert _shown(page) == server.serving.workspace.catalog.gallery_ids()[::-1]
    expect(page.locator("#status")).to_contain_text("10 pictures")
    expect(page.locator("#status .chip")).to_have_count(4)
    example = page.locator("#status .chip").first
    words = example.get_attribute("title")
    example.click()
    expect(page.locator("#query input[type=search]")).to_have_value(str(words))
    expect(page.locator("#status")).to_contain_text("best matches first")


def test_a_search_has_an_address_that_shows_it_again(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?__theme=light")
    ask(page, "#query", "a red boat")
    expect(page).to_have_url(re.compile(r"\?text=a\+red\+boat&__theme=light$"))
    settle(page)
    page.click("#filters button")
    choose(page, "#mode", "Pictures and captions")
    expect(page).to_have_url(re.compile("mode=hybrid"))
    expect(page).to_have_url(re.compile("text=a"))
    settle(page)
    first = _shown(page)
    reopen(page)
    assert _shown(page) == first
    assert _asked(page) == "a red boat"
    expect(page.locator("#filters")).to_contain_text("in use: 1")
    page.click("#filters button")
    expect(page.locator("#mode input")).to_have_value("Pictures and captions")


def test_a_facet_narrows_the_search_and_widens_it_again(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=boat")
    page.click("#filters button")
    german = page.locator("#facets").get_by_role("link", name="German")
    german.click()
    expect(page).to_have_url(re.compile(r"where=language\+%3D\+de"))
    expect(page.locator("#facets strong")).to_have_text("German")
    expect(page.locator("#where textarea, #where input")).to_have_value("language = de")
    settle(page)
    page.locator("#facets").get_by_role("link", name="German").click()
    expect(page).not_to_have_url(re.compile("where="))


def test_a_person_goes_back_and_finds_earlier_searches_in_this_browser(server: Served, page: Page) -> None:
    open_page(page, server.url)
    for text in ("a red boat", "a yellow house"):
        ask(page, "#query", text)
        expect(page).to_have_url(re.compile(text.replace(" ", r"\+")))
    settle(page)
    page.go_back()
    expect(page.locator("#query input[type=search]")).to_have_value("a red boat")
    settle(page)
    values = page.locator("#recent option").evaluate_all("all => all.map((one) => one.value)")
    assert values == ["a red boat", "a yellow house"]
    # An empty box asks for all pictures.
    ask(page, "#query", "")
    expect(page).to_have_url(f"{server.url}/")
    expect(page.locator("#status")).to_contain_text("10 pictures")
    settle(page)  # what is said of the answer before this one may read alike, and is drawn anew
    page.click(".about summary")
    page.click(".about .recent button")
    assert page.evaluate("localStorage.getItem('perennial.searches')") == "[]"


def test_a_picture_opens_large_and_its_neighbours_are_an_arrow_away(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(TILES)).to_have_count(10)
    ids = _shown(page)
    _open(page, 3)
    expect(page).to_have_url(re.compile(f"text=a.red.boat&picture={ids[3]}"))
    is_drawn(page, PICTURE)
    box = page.locator(PICTURE).bounding_box()
    size = page.viewport_size
    assert box is not None
    assert size is not None
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= size["width"]
    assert box["y"] + box["height"] <= size["height"]
    assert set(page.locator("#viewer .spoken .tag").all_inner_texts()) == {"German", "English"}
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile(f"picture={ids[4]}"))
    page.get_by_label("Previous picture").click()
    page.get_by_label("Previous picture").click()
    expect(page).to_have_url(re.compile(f"picture={ids[2]}"))
    page.keyboard.press("Escape")
    expect(page.locator("#viewer")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"text=a\+red\+boat$"))
    assert page.locator(f"{TILES} > a").nth(2).evaluate("tile => tile === document.activeElement")


def test_the_address_of_a_picture_opens_it_and_back_closes_it(server: Served, page: Page) -> None:
    last = server.serving.workspace.catalog.gallery_ids()[0]
    open_page(page, f"{server.url}/?picture={last}")
    expect(page.locator(PICTURE)).to_have_attribute("src", f"v1/images/{last}")
    expect(page.get_by_label("Next picture")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#viewer")).to_be_hidden()
    expect(page).to_have_url(f"{server.url}/")
    _open(page, 0)
    page.go_back()
    expect(page.locator("#viewer")).to_be_hidden()
    page.go_forward()
    expect(page.locator(PICTURE)).to_be_visible()


def test_a_caption_of_a_picture_is_a_search(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(TILES)).to_have_count(10)
    _open(page, 3)
    caption = page.locator("#viewer .spoken a").last
    words = caption.inner_text()
    caption.click()
    expect(page.locator("#query input[type=search]")).to_have_value(f'"{words}"')
    expect(page.locator("#viewer")).to_be_hidden()


def test_the_folder_of_a_picture_is_a_search_for_its_others(album: Served, page: Page) -> None:
    open_page(page, album.url)
    page.mouse.wheel(0, 600)  # more come once a person scrolls
    expect(page.locator(TILES).nth(50)).to_be_attached()
    _open(page, 50)
    page.locator("#viewer .facts dd a").click()
    expect(page.locator("#viewer")).to_be_hidden()
    expect(page).to_have_url(re.compile("where=folder"))
    within = [n for n in range(PICTURES) if n % 3]
    expect(page.locator("#status")).to_contain_text(f"{len(within)} of {PICTURES + 10} pictures")


def test_more_like_a_picture_is_a_search_with_it_in_the_box(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(TILES)).to_have_count(10)
    wanted = _shown(page)[2]
    _open(page, 2)
    page.get_by_label("More like this").click()
    expect(page).to_have_url(re.compile(f"items={wanted}$"))
    expect(page.locator(TILES)).to_have_count(9)
    assert wanted not in _shown(page)
    is_drawn(page, "#query .dropped img")
    assert _asked(page) == ""
    page.get_by_label("Take this picture away").click()
    expect(page).to_have_url(f"{server.url}/")
    expect(page.locator(TILES)).to_have_count(10)


def test_a_dropped_picture_finds_itself_first_and_captions(server: Served, page: Page) -> None:
    workspace = server.serving.workspace
    (wanted, *_) = workspace.catalog.gallery_ids()
    file: FilePayload = {"name": "a.png", "mimeType": "image/png", "buffer": workspace.blobs.original(wanted)}
    open_page(page, server.url)
    page.set_input_files("#query input[type=file]", files=file)
    expect(page.locator(f"{TILES} > a").first).to_have_attribute("data-id", wanted)
    is_drawn(page, "#query .dropped img")
    page.get_by_text("Captions that fit").click()
    expect(page.locator(".captions-found li")).to_have_count(8)
    ask(page, "#query", "at night")
    expect(page.locator("#query .dropped")).to_have_count(1)
    settle(page)
    page.get_by_label("Take this picture away").click()
    expect(page.locator("#query .dropped")).to_have_count(0)
    expect(page).to_have_url(re.compile("text=at"))


def test_what_a_person_says_of_a_picture_is_kept_with_what_was_asked(server: Served, page: Page) -> None:
    open_page(page, server.url)
    _open(page, 1)
    # Nothing was looked for that it could fit.
    expect(page.get_by_label("This picture fits the search")).to_be_hidden()
    open_page(page, f"{server.url}/?text=a+red+boat+at+night")
    expect(page.locator(TILES)).to_have_count(10)
    wanted = _shown(page)[1]
    _open(page, 1)
    page.get_by_label("This picture does not fit the search").click()
    expect(page.get_by_label("This picture does not fit the search")).to_have_attribute(
        "aria-pressed", "true"
    )
    record = server.serving.workspace.catalog.feedback.all()[0]
    assert (record.query, record.verdict, record.by) == ("a red boat at night", "down", "local")
    assert record.image_id == wanted


def test_days_and_chunks_filter(server: Served, page: Page) -> None:
    (chunk, *_) = server.serving.workspace.catalog.chunks()
    open_page(page, f"{server.url}/?text=boat&chunks={chunk.id}&since=2020-01-01&chunks=gone")
    expect(page.locator(TILES)).to_have_count(10)
    expect(page.locator("#status")).to_contain_text("left out: gone")
    settle(page)
    page.click("#filters button")
    expect(page.locator("#chunks")).to_contain_text(chunk.name)
    # Gradio draws the fold when it is first opened and then gives each field its value, over what is typed meanwhile.
    settle(page)
    page.fill("#until input, #until textarea", "last week")
    page.press("#until input, #until textarea", "Enter")
    expect(page.locator("#filters-said")).to_contain_text("A day is written as 2026-01-31; found 'last week'")
    settle(page)
    page.fill("#until input, #until textarea", "2020-12-31")
    page.press("#until input, #until textarea", "Enter")
    expect(page.locator("#empty")).to_contain_text("Nothing fits all of these filters")
    expect(page.locator("#filters-said")).to_be_hidden()
    settle(page)
    page.get_by_text("Clear the filters").click()
    expect(page.locator(TILES)).to_have_count(10)
    expect(page.locator("#until input, #until textarea")).to_have_value("")


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_language_that_is_not_learned_says_what_helps(server: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, f"{server.url}/?text=%E8%B5%A4%E3%81%84%E8%88%B9")
    expect(page.locator("#status")).to_contain_text("Write the same in English")
    # The filter in which the English words go is open.
    settle(page)
    page.fill("#translation input, #translation textarea", "a red boat")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).not_to_contain_text("Write the same in English")
    expect(page).to_have_url(re.compile("translation=a"))
    is_drawn(page, f"{TILES} img")
    does_not_overflow(page)


def test_what_is_on_the_screen_is_taken_away_as_files(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(TILES)).to_have_count(10)
    ids = _shown(page)
    page.click(".about summary")
    with page.expect_download() as download:
        page.get_by_text("Table (CSV)").click()
    assert download.value.suggested_filename == "results.csv"
    lines = download.value.path().read_text(encoding="utf-8-sig").splitlines()
    assert [one for line in lines for one in ids if one in line] == ids
    with page.expect_download() as download:
        page.get_by_text("Pictures (ZIP)").click()
    with zipfile.ZipFile(download.value.path()) as archive:
        assert [name[5:17] for name in archive.namelist()[1:]] == [one[:12] for one in ids]


def test_pictures_are_shown_larger_and_the_next_visit_remembers_it(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/?text=a+red+boat")
    expect(page.locator(TILES)).to_have_count(10)
    before = page.locator(TILES).first.bounding_box()
    page.locator("#size").fill("320")
    after = page.locator(TILES).first.bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] > 1.3 * before["height"]
    reopen(page)
    expect(page.locator("#size")).to_have_value("320")


def test_a_server_that_is_away_is_told_and_asked_again(server: Served, page: Page) -> None:
    open_page(page, server.url)
    page.route("**/pictures", lambda route: route.abort())
    ask(page, "#query", "a red boat")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    page.unroute("**/pictures")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#status")).to_contain_text("best matches first")
    expect(page.get_by_role("alert")).to_have_count(0)
