"""The Upload step in a real browser: pictures, folders and tables wait in its place until they are sent together."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, TimeoutError, expect

from app.home.workspace import Workspace
from ingest.records import ChunkRecord
from tests.app.server.served import Served, sample_upload
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import IN_A_BROWSER, JOB_MS, does_not_overflow, open_page, settle
from tests.ingest.material import folder_of, picture, zip_of

pytestmark = IN_A_BROWSER
FILES, FOLDER = "#file input:not([webkitdirectory])", "#file input[webkitdirectory]"
LINES = "#file .chosen-files li"


def _sent(page: Page) -> None:
    settle(page)
    page.click("#check")
    expect(page.locator("#check-verdict h2")).to_be_visible(timeout=JOB_MS)
    settle(page)


def _chunks(server: Served) -> list[ChunkRecord]:
    with Workspace.open(server.settings, read_only=True) as workspace:
        return workspace.catalog.chunks()


def _captions(server: Served, chunk: str) -> set[tuple[str, str, str]]:
    """What the pictures of a chunk were called, and their captions."""
    catalog = server.serving.workspace.catalog
    ids = catalog.ids_where(chunks=[chunk])
    names = {image_id: every[0].name for image_id, every in catalog.sources.of(ids).items()}
    said = {image_id: catalog.captions_of(image_id) for image_id in ids}
    return {(names[key], one.language, one.text) for key, every in said.items() for one in every}


def test_loose_pictures_a_folder_and_a_table_become_one_chunk(
    server: Served, page: Page, tmp_path: Path
) -> None:
    loose = folder_of(tmp_path / "loose", {f"{n}.png": picture(n + 40, size=(64, 64)) for n in range(3)})
    folder = folder_of(
        tmp_path / "summer", {"x.png": picture(50), "deep/y.png": picture(51), ".hidden.png": picture(52)}
    )
    rows = ["0.png,ein rotes Boot am Strand", "summer/deep/y.png,zwei Hunde im Schnee", "gone.png,nichts"]
    (loose / "captions.csv").write_text("\n".join(["datei,worte", *rows]), encoding="utf-8")
    (loose / "broken.jpg").write_bytes(b"no picture")
    open_page(page, f"{server.url}/admin/")
    assert broken_rules(page) == []
    page.set_input_files(FILES, sorted(loose.iterdir()))
    page.set_input_files(FOLDER, folder)
    expect(page.locator(LINES)).to_have_count(6)
    expect(page.locator(LINES).last).to_contain_text("summer/")
    expect(page.locator(LINES).last).to_contain_text("2 files")
    does_not_overflow(page)
    assert broken_rules(page) == []
    page.fill("#chunk-language :is(input, textarea)", "de")
    page.fill("#chunk-columns :is(input, textarea)", "datei=image, worte=caption")
    page.get_by_label("Leave out: 2.png").focus()
    page.keyboard.press("Enter")
    expect(page.locator(LINES)).to_have_count(5)
    _sent(page)
    chunk = _chunks(server)[-1]
    assert _captions(server, chunk.id) == {
        ("0.png", "de", "ein rotes Boot am Strand"),
        ("summer/deep/y.png", "de", "zwei Hunde im Schnee"),
    }
    assert chunk.images == 4  # with those without a caption
    table = page.locator("#report-rows")
    for name in ("broken.jpg", "captions.csv"):  # what is refused has its line
        expect(table).to_contain_text(name)
    expect(page.locator(LINES)).to_have_count(0)


def test_what_is_dropped_waits_and_archives_become_chunks_of_their_own(
    server: Served, page: Page, tmp_path: Path
) -> None:
    before = len(_chunks(server))
    archives = [sample_upload(tmp_path / f"{n}.zip", first=200 + 10 * n, count=2) for n in range(2)]
    open_page(page, f"{server.url}/admin/")
    page.evaluate(
        """(bytes) => { const transfer = new DataTransfer();
        transfer.items.add(new File([new Uint8Array(bytes)], "dropped.png", {type: "image/png"}));
        document.querySelector("#file .dropping").dispatchEvent(
          new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true})); }""",
        list(picture(60, size=(64, 64))),
    )
    expect(page.locator(LINES)).to_contain_text("dropped.png")
    assert len(_chunks(server)) == before
    page.set_input_files(FILES, archives)
    expect(page.locator(LINES)).to_have_count(3)
    _sent(page)
    expect(page.locator(LINES)).to_have_count(0, timeout=JOB_MS)
    assert sorted(one.images for one in _chunks(server)[before:]) == [1, 2, 2]


def test_what_cannot_be_used_says_why_and_waits_to_be_tried_again(
    server: Served, page: Page, tmp_path: Path
) -> None:
    table = tmp_path / "alone.csv"
    table.write_text("image,caption\na.png,A boat\n", encoding="utf-8")
    open_page(page, f"{server.url}/admin/")
    page.set_input_files(FILES, table)
    page.click("#check")
    expect(page.locator("#upload-said")).to_contain_text("A table alone has no pictures")
    expect(page.locator(LINES)).to_contain_text("alone.csv")
    # A job that fails leaves the files there, too.
    page.get_by_label("Leave out: alone.csv").click()
    page.set_input_files(FILES, zip_of(tmp_path / "empty.zip", {"words.txt": "no picture"}))
    page.click("#check")
    expect(page.locator("#upload-said")).to_contain_text("Nothing in the upload can be used", timeout=JOB_MS)
    expect(page.locator(LINES)).to_contain_text("empty.zip")
    expect(page.locator("#check")).to_be_enabled()


def test_a_click_before_the_script_is_there_is_not_lost(server: Served, page: Page) -> None:
    held: list[Route] = []
    page.route("**/uploading.js", lambda route: held.append(route))
    page.goto(f"{server.url}/admin/", wait_until="commit")
    check = page.locator("#check")
    expect(check).to_be_visible()
    with pytest.raises(TimeoutError):
        check.click(timeout=1_000)
    held[0].continue_()
    check.click()
    expect(page.locator("#upload-said")).to_have_text("Choose a file first.", timeout=10_000)
