"""What people get wrong on the pages is answered where they look, in a sentence, and the page goes on working."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from tests.app.server.served import Served, make_home, served
from tests.app.ui.browsing import IN_A_BROWSER, TILES, ask, does_not_overflow, open_page, settle

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with small uploads."""
    settings = make_home(tmp_path_factory.mktemp("strict"))
    with served(settings.model_copy(update={"max_upload_bytes": 1_000_000}), with_pages=True) as running:
        yield running


def _drop(page: Page, file: Path) -> None:
    settle(page)
    page.locator("#query input[type=file]").set_input_files(file)
    expect(page.locator("#query .dropped")).to_be_attached()


def test_a_query_without_words_and_one_with_too_many(album: Served, page: Page) -> None:
    open_page(page, album.url)
    ask(page, "#query", "   ")
    expect(page.locator("#status")).to_contain_text("140 pictures")
    ask(page, "#query", "boats " * 90)
    expect(page.locator("#status")).to_contain_text("at most 500 are read. Shorten it.")
    does_not_overflow(page)
    ask(page, "#query", "a red boat")
    expect(page.locator(TILES).nth(23)).to_be_attached()


def test_pictures_that_cannot_be_searched_with(strict: Served, page: Page, tmp_path: Path) -> None:
    Image.new("1", (15_000, 15_000)).save(tmp_path / "large.png")
    Image.fromarray(np.full((64, 64), np.nan, dtype=np.float32), "F").save(tmp_path / "no-numbers.tiff")
    for name, says in (
        ("large.png", "225 megapixels; the limit is 200"),
        ("no-numbers.tiff", "cannot be searched"),
    ):
        open_page(page, strict.url)
        _drop(page, tmp_path / name)
        expect(page.locator("#status")).to_contain_text(says)
    ask(page, "#query", "a red boat")


def test_a_page_after_a_swap_is_of_the_release_that_answered_the_first(album: Served, page: Page) -> None:
    open_page(page, f"{album.url}/?text=a+red+boat")
    expect(page.locator(TILES).nth(23)).to_be_attached()
    before = page.locator(TILES).count()
    assert before < 140
    with album.client() as client:
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200
    settle(page)
    page.evaluate("document.querySelector('#more').click()")
    expect(page.locator(TILES).nth(before)).to_be_attached()
    settle(page)
    sources = [one.get_attribute("src") for one in page.locator(f"{TILES} img").all()]
    assert len(set(sources)) == len(sources) > before
    with album.client() as client:
        assert client.post("/v1/rollback", json={}).status_code == 200


def test_an_upload_over_the_limit(strict: Served, page: Page, tmp_path: Path) -> None:
    (tmp_path / "large.zip").write_bytes(b"0" * 1_500_000)
    open_page(page, f"{strict.url}/admin/")
    page.locator("#file input:not([webkitdirectory])").set_input_files(tmp_path / "large.zip")
    page.click("#check")
    expect(page.locator("#upload-said")).to_contain_text("larger than the")
    expect(page.locator("#file")).to_contain_text("large.zip")  # to be tried again, or left out
    does_not_overflow(page)
    assert strict.serving.workspace.catalog.jobs() == []


def test_two_admins_who_promote_at_once(strict: Served, page: Page) -> None:
    """The second one's page is older than what is live; it says so instead of promoting what is live already."""
    open_page(page, f"{strict.url}/admin/")
    page.get_by_role("tab", name="Releases").click()
    # The gate let the second release pass; the third names it, too, as its parent.
    page.locator("#releases tbody tr").filter(has_text="promote").locator("td").nth(1).click()
    expect(page.locator("#promote")).to_be_enabled()
    with strict.client() as client:
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200
    before = strict.serving.workspace.releases.history()
    settle(page)
    page.click("#promote")
    expect(page.get_by_text("is live already").first).to_be_visible()
    assert strict.serving.workspace.releases.history() == before


def test_a_thumbnail_that_vanished_leaves_its_words(strict: Served, browser: Any) -> None:
    page = browser.new_page()  # one that has seen no thumbnail yet
    with strict.client() as client:
        image_id = client.post("/v1/search", json={"text": "a red boat", "k": 1}).json()["hits"][0]["id"]
    strict.serving.workspace.blobs.delete([image_id])
    open_page(page, f"{strict.url}/?text=a+red+boat")
    lost = page.locator(f"{TILES} img").first
    expect(lost).to_have_js_property("complete", True)
    assert lost.evaluate("image => image.naturalWidth") == 0
    assert lost.get_attribute("alt")
    settle(page)
    page.locator(f"{TILES} > a").first.click()
    expect(page.locator("#viewer .facts")).to_contain_text("Size")
    assert image_id in page.url
    does_not_overflow(page)
    page.close()  # the server would wait for it
