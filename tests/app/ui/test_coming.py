"""Pictures that are being added while somebody looks at the Search page: how far that is, and when they are there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from app.home.settings import Settings
from app.learning import adding
from app.ui import search_words
from app.ui.words import Words
from ingest.intake import IntakeOptions
from ingest.records import JobRecord
from tests.app.server.served import Served, served
from tests.app.small_home import copy_of, new_home
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import IN_A_BROWSER, TILES, does_not_overflow, open_page
from tests.ingest.material import folder_of, picture

pytestmark = IN_A_BROWSER
READING = {"name": "ingest", "fraction": 0.288, "details": {"done": 120, "total": 416, "seconds_left": 19.6}}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home without pictures, whose jobs nobody runs but the test."""
    home = copy_of(new_home(tmp_path_factory), tmp_path_factory.mktemp("fresh"))
    settings = Settings(home=home, poll_seconds=0.1, jobs="elsewhere")
    with served(settings, with_pages=True, with_jobs=False) as running:
        yield running


def _job(running: Served, **progress: Any) -> JobRecord:
    """A job that reads a folder, as far as its row says."""
    catalog = running.serving.workspace.catalog
    job = catalog.add_job("folder", {"folder": "/photos", "by": "tests"})
    catalog.update_job(job.id, state="running", progress=progress)
    return job


def _add(running: Served, folder: Path, first: int, count: int) -> None:
    """Takes pictures in and makes them searchable, as any process does that has the home."""
    photos = folder_of(folder, {f"{n}.png": picture(n, size=(64, 48)) for n in range(first, first + count)})
    adding.add_chunk(running.serving.workspace, photos, IntakeOptions(), by="tests")


def _end(running: Served, *jobs: JobRecord, state: str = "succeeded") -> None:
    for job in jobs:
        running.serving.workspace.catalog.update_job(job.id, state=state)


def test_what_takes_pictures_in_is_told_of_and_other_jobs_are_not(fresh: Served) -> None:
    catalog = fresh.serving.workspace.catalog
    with fresh.client() as client:
        other = catalog.add_job("update", {})
        catalog.update_job(other.id, state="running")
        assert _coming(client)["line"] == ""
        waiting = catalog.add_job("ingest", {"source": "x", "by": "tests"})
        assert _coming(client)["line"] == "Reading your pictures …"
        at_work = _job(fresh, **READING)
        told = {"line": "Reading your pictures: 120 of 416, about 20 s left", "part": 0.288}
        assert _coming(client) == {"release": "r1", "pictures": 0} | told
        _end(fresh, other, waiting, at_work)
        assert _coming(client)["line"] == ""


def test_an_empty_home_says_how_far_the_reading_is_and_fills_itself(
    fresh: Served, page: Page, tmp_path: Path
) -> None:
    failing = _job(fresh, name="start")
    open_page(page, fresh.url)
    title = page.locator("#empty h2")
    expect(title).to_have_text("Reading your pictures …")
    _end(fresh, failing, state="failed")
    expect(page.locator(".dropping")).to_be_visible()  # nothing came, and there is a place for pictures again
    job = _job(fresh, **READING)
    expect(title).to_have_text("Reading your pictures: 120 of 416, about 20 s left")
    expect(page.locator("#empty progress")).to_have_js_property("value", 0.288)
    expect(page.locator(".dropping")).to_have_count(0)
    assert broken_rules(page) == []
    top = title.evaluate("title => title.getBoundingClientRect().top")
    stage = {"name": "embed", "fraction": 0.5, "details": {"done": 100, "total": 200}}
    fresh.serving.workspace.catalog.update_job(job.id, progress=stage)
    expect(title).to_have_text("Making them searchable: 100 of 200")
    assert title.evaluate("title => title.getBoundingClientRect().top") == top
    _add(fresh, tmp_path / "photos", 0, 3)  # as a process does that no job tells of
    expect(page.locator(TILES)).to_have_count(3)
    expect(page.locator("#status .count")).to_contain_text("3 pictures")
    expect(page.locator("#empty")).to_be_empty()
    _end(fresh, job)


def test_more_pictures_are_told_of_in_a_corner_and_shown_when_asked(
    server: Served, page: Page, tmp_path: Path
) -> None:
    job = _job(server, **READING)
    open_page(page, server.url)
    line = page.locator("#coming")
    expect(line.locator("span")).to_have_text("Adding pictures: 120 of 416, about 20 s left")
    assert broken_rules(page) == []
    does_not_overflow(page)
    first = page.locator(f"{TILES} > a").first
    before, seen = page.locator(TILES).count(), first.get_attribute("data-id")
    _add(server, tmp_path / "more", 10, 2)
    expect(line.get_by_role("button", name="Show them")).to_be_visible()
    # Nothing moves under whoever looks.
    assert (page.locator(TILES).count(), first.get_attribute("data-id")) == (before, seen)
    _end(server, job)
    expect(line).to_contain_text("There are new pictures.")
    line.get_by_role("button", name="Show them").focus()
    page.keyboard.press("Enter")
    expect(page.locator(TILES)).to_have_count(before + 2)
    expect(line).to_be_hidden()


@pytest.mark.parametrize(
    ("language", "is_first", "says"),
    [
        ("en", True, "Reading your pictures: 120 of 416, about 20 s left"),
        ("de", False, "Bilder werden hinzugefügt: 120 von 416, noch etwa 20 s"),
        ("fr", True, "Lecture de vos images : 120 sur 416, reste environ 20 s"),
    ],
)
def test_the_line_is_in_the_words_of_the_browser(language: str, is_first: bool, says: str) -> None:
    job = JobRecord("j1", "folder", "running", {}, READING, {}, None, None, "", None, None)
    assert search_words.coming(job, Words(language), is_first=is_first) == (says, 0.288)
    checked = JobRecord("j1", "folder", "running", {}, {"name": "check"}, {}, None, None, "", None, None)
    for nothing in (None, checked):
        assert search_words.coming(nothing, Words(language), is_first=is_first) == ("", None)


def _coming(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/coming", headers={"Accept-Language": "en"})
    assert answer.status_code == httpx.codes.OK
    found: dict[str, Any] = json.loads(answer.text)
    return found | {"release": found["release"].split("-")[0]}
