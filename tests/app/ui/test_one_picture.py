"""The box for one picture on the Data tab: looked at, taken out and put back, in a browser and in words."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from app.desk.errors import UsageProblem
from app.home.workspace import Workspace
from app.learning import pictures
from app.local.at_home import AtHome
from app.ui.one_picture import HEADERS, picture_view, rows
from app.ui.words import Words
from ingest.errors import NoValidPair, UnknownImage
from ingest.pair import Split
from ingest.records import NewChunk, NewImage
from tests.app.server.served import Served, make_home
from tests.app.server.test_work import hits, hits_after_a_moment
from tests.app.ui.browsing import IN_A_BROWSER, JOB_MS, open_page, settle
from tests.app.ui.seen import LANGUAGES

pytestmark = IN_A_BROWSER


def _press(page: Page, button: str) -> None:
    settle(page)
    page.click(f"#picture-{button}")


def test_a_person_takes_a_picture_out_and_puts_it_back(server: Served, page: Page) -> None:
    with server.client() as client:
        all_of_them = hits(client)
    catalog = server.serving.workspace.catalog
    image_id = catalog.gallery_ids()[0]
    caption = catalog.captions_of(image_id)[0].text
    open_page(page, f"{server.url}/admin/")
    page.get_by_role("tab", name="Data").click()
    page.get_by_text("Take out or put back a picture").click()
    settle(page)
    page.fill("#picture-id input, #picture-id textarea", image_id[:10])
    _press(page, "look")
    expect(page.locator("#picture-view")).to_contain_text(caption)
    expect(page.locator("#picture-view img")).to_have_js_property("complete", True)

    _press(page, "out")
    expect(page.locator("#picture-said")).to_contain_text("Say why")
    page.fill("#picture-why input, #picture-why textarea", "she <b>asked</b> for it")
    _press(page, "out")
    expect(page.locator("#picture-said")).to_contain_text("no longer shown anywhere")
    expect(page.locator("#picture-view")).to_contain_text("she <b>asked</b> for it")
    expect(page.locator("#withheld")).to_contain_text(image_id[:24])
    with server.client() as client:
        assert hits_after_a_moment(client, all_of_them - 1) == all_of_them - 1
        page.fill("#picture-id input, #picture-id textarea", "nothing at all")
        _press(page, "back")
        expect(page.locator("#picture-said")).to_contain_text("is no picture's id")
        page.locator("#withheld td").first.click()
        expect(page.locator("#picture-id input, #picture-id textarea")).to_have_value(image_id[:24])
        _press(page, "back")
        expect(page.locator("#picture-said")).to_contain_text("It is back", timeout=JOB_MS)
        expect(page.locator("#withheld")).to_be_hidden()
        assert hits_after_a_moment(client, all_of_them) == all_of_them


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_said_of_one_picture_is_in_the_languages_of_the_pages(tmp_path: Path, language: str) -> None:
    say = Words(language)
    assert all(Words(language).header(header) != header for header in HEADERS)
    with Workspace.open(make_home(tmp_path)) as workspace:
        image_id = workspace.catalog.gallery_ids()[0]
        refused: list[Exception] = []
        for names, why in ([image_id], ""), (["zebra"], "x"), (["f" * 64], "x"):
            with pytest.raises((UsageProblem, UnknownImage)) as caught:
                pictures.take_out(workspace, names, by="ada", why=why)
            refused.append(caught.value)
        with pytest.raises(UnknownImage) as unknown:
            pictures.put_back(workspace, [image_id])
        pictures.take_out(workspace, [image_id], by="ada", why="she asked")
        chunk = NewChunk("c1", "again", True, [NewImage(image_id, "flat", Split.TRAIN, 9, 9, "PNG")], [])
        with pytest.raises(NoValidPair) as nothing_else:
            workspace.catalog.record_chunk(chunk)
        for error in (*refused, unknown.value, nothing_else.value):
            assert say.said(str(error)) != str(error), str(error)
        desk = AtHome(workspace.settings, by="ada", workspace=workspace)
        known = desk.item(image_id)
        english, here = picture_view(known, "http://here"), picture_view(known, "http://here", say)
        assert "Taken out by ada" in english
        assert "Taken out by" not in here
        assert "she asked" in here
        assert [row[2:] for row in rows(desk.taken_out())] == [["ada", "she asked"]]
