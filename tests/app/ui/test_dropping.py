"""A home without pictures in a real browser: photos, a folder or a sample become pictures on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from app.home.settings import Settings
from tests.app.server.served import Served, served
from tests.app.small_home import copy_of, new_home
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import IN_A_BROWSER, JOB_MS, TILES, is_drawn, open_page, settle

pytestmark = IN_A_BROWSER
CAPTION = "Two clouds over the sea in the evening, and a small boat below them."


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    settings = Settings(
        home=copy_of(new_home(tmp_path_factory), tmp_path_factory.mktemp("fresh")),
        poll_seconds=0.1,
        jobs="elsewhere",
        max_upload_bytes=3_000_000,
    )
    with served(settings, with_pages=True) as running:
        yield running


def _photos(folder: Path, *names: str) -> list[Path]:
    drawn = np.random.default_rng(len(names))
    files = []
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        coarse = drawn.integers(0, 255, (5, 7, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((120, 90), Image.Resampling.BICUBIC).save(file)
        files.append(file)
    return files


def test_a_home_without_pictures_is_a_place_to_drop_some_and_a_sample_can_be_tried(
    fresh: Served, page: Page
) -> None:
    open_page(page, fresh.url)
    place = page.locator(".dropping")
    expect(place).to_be_visible()
    expect(page.locator("#empty")).to_contain_text("No pictures yet")
    # The probes that every home has are no pictures of its owner.
    expect(page.locator(TILES)).to_have_count(0)
    assert broken_rules(page) == []
    page.get_by_role("button", name="Try it with sample pictures").click()
    expect(page.locator("#status .count")).to_contain_text("48 pictures", timeout=JOB_MS)
    expect(page.locator("#status .note")).to_have_text("Added: 48")
    is_drawn(page, f"{TILES} img")
    expect(page.locator("#status .chip")).to_have_count(4)


def test_photos_and_their_captions_are_packed_in_the_browser(
    fresh: Served, page: Page, tmp_path: Path
) -> None:
    files = _photos(tmp_path, "a rød båt.png", "b.png", "c.png")
    (tmp_path / "b.txt").write_text(CAPTION, encoding="utf-8")
    open_page(page, fresh.url)
    before = page.locator(TILES).count()
    if before:
        page.get_by_label("Add pictures").click()
    page.set_input_files(".dropping input:not([webkitdirectory])", [*files, tmp_path / "b.txt"])
    expect(page.locator("#status .note")).to_contain_text("Added: 3", timeout=JOB_MS)
    (newest, *_) = fresh.serving.workspace.catalog.chunks()[::-1]
    assert newest.images == 3
    assert _names(fresh, newest.id) == {"a rød båt.png", "b.png", "c.png"}
    captions = [one.text for one in fresh.serving.workspace.catalog.find_captions(CAPTION)]
    assert captions == [CAPTION]


def _names(running: Served, chunk: str) -> set[str]:
    """What the files of a chunk's pictures were called."""
    ids = running.serving.workspace.catalog.ids_where(chunks=[chunk])
    with running.client() as client:
        seen = [client.get(f"/v1/items/{one}").json()["sources"] for one in ids]
    return {one["name"] for every in seen for one in every}


def test_a_folder_gives_its_name_and_a_dropped_file_is_taken_too(
    fresh: Served, page: Page, tmp_path: Path
) -> None:
    _photos(
        tmp_path, "summer/day 1/x.png", "summer/y.png", "summer/.hidden.png", "summer/z.png", "summer/w.png"
    )
    open_page(page, fresh.url)
    if page.locator(TILES).count():
        page.get_by_label("Add pictures").click()
    page.set_input_files(".dropping input[webkitdirectory]", tmp_path / "summer")
    expect(page.locator("#status .note")).to_contain_text("Added: 4", timeout=JOB_MS)
    assert fresh.serving.workspace.catalog.chunks()[-1].name == "summer.zip"
    settle(page)
    page.get_by_label("Add pictures").click()
    (file,) = _photos(tmp_path, "dropped.png")
    page.evaluate(
        """(bytes) => { const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(bytes)], "dropped.png", {type: "image/png"}));
        document.querySelector(".dropping").dispatchEvent(
          new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true})); }""",
        list(file.read_bytes()),
    )
    expect(page.locator("#status .note")).to_contain_text("Added: 1", timeout=JOB_MS)


def test_what_cannot_be_taken_says_why_and_the_place_stays(fresh: Served, page: Page, tmp_path: Path) -> None:
    large = tmp_path / "large.zip"
    large.write_bytes(b"0" * 4_000_000)
    (tmp_path / "words.txt").write_text("no picture", encoding="utf-8")
    open_page(page, fresh.url)
    if page.locator(TILES).count():
        page.get_by_label("Add pictures").click()
    for file, says in ((large, "larger than the"), (tmp_path / "words.txt", "picture")):
        page.set_input_files(".dropping input:not([webkitdirectory])", file)
        expect(page.locator(".dropping-said")).to_contain_text(says, timeout=JOB_MS)
        expect(page.get_by_role("button", name="Choose files")).to_be_visible()
        expect(page.locator(".dropping progress")).to_be_hidden()
