"""Servers with a home, and a real browser."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Playwright, sync_playwright

from app.demo import homes
from app.demo.findings import Check, Exhibit, Findings
from app.home.settings import Settings
from app.home.workspace import Workspace
from tests.app.gate_reports import findings, gate_report
from tests.app.server.served import Served, add_held_out, make_home, served
from tests.app.ui.album import make_album
from tests.app.ui.browsing import CHROMIUM, UNANSWERED, WAIT_MS, is_event


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a home of its own, for the tests of one file."""
    with served(make_home(tmp_path_factory.mktemp("home")), with_pages=True) as running:
        yield running


@pytest.fixture(scope="module")
def guided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A demo's home whose first step has been played."""
    settings = make_home(tmp_path_factory.mktemp("guided"))
    with Workspace.open(settings, read_only=True) as workspace:
        ids = tuple(workspace.catalog.gallery_ids()[:2])
    findings = Findings(("12 pictures",), (Check("it works", True),), (Exhibit("two red boats", ids),))
    homes.mark(settings.home, homes.GUIDED, {"english": findings})
    with served(settings, with_pages=True) as running:
        yield running


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home whose one chunk is held by its checks, and whose first update was rejected long ago."""
    settings = make_home(tmp_path_factory.mktemp("judged"))
    with Workspace.open(settings) as workspace:
        catalog = workspace.catalog
        ids = catalog.gallery_ids()
        chunk = catalog.chunks()[0].id
        catalog.set_findings(chunk, findings(ids))
        catalog.set_standing(chunk, "held", by="checks", why="row shift")
        job = catalog.add_job("update", {"chunk": chunk})
        report = gate_report("reject", unchanged=30, pictures=ids[:3])
        result = {
            "verdict": "reject",
            "gate": report.to_json(),
            "release": None,
            "commit": None,
            "seconds": 9.0,
        }
        catalog.update_job(job.id, state="rejected", result=result)
    with served(settings, with_pages=True) as running:
        yield running


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home with held-out pairs that measure, whose first version was measured in German, too."""
    settings = Settings(home=tmp_path_factory.mktemp("measured") / "home", poll_seconds=0.1, jobs="elsewhere")
    shutil.copytree(_measured(), settings.home)
    with served(settings, with_pages=True) as running:
        yield running


@cache
def _measured() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="measured-"))
    settings = make_home(folder)
    with Workspace.open(settings) as workspace:
        add_held_out(workspace, folder, count=120)
        first, second = (workspace.releases.release(name) for name in ("r1", "r2"))
        both = first.manifest.successor(first.id, languages=("en", "de"), slices=second.manifest.slices)
        workspace.releases.publish_release(both)
    return settings.home


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with pictures for several pages."""
    with served(make_album(tmp_path_factory.mktemp("album")), with_pages=True) as running:
        yield running


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Leaves an event loop running, in which no other can be started until the last test of this folder."""
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    browser = playwright.chromium.launch(
        executable_path=str(CHROMIUM),
        args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
    )
    yield browser
    browser.close()


@pytest.fixture(scope="package")
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.set_default_timeout(WAIT_MS)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page of a person who was never here.

    All stand in one tab: the process behind it keeps what it has made of Gradio's scripts, without which opening a page
    takes twice as long.
    """
    page: Any = context.pages[0] if context.pages else context.new_page()
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    heard: list[tuple[str, Callable[[Any], object]]] = []
    outside: list[str] = []
    forbidden: list[str] = []

    def hear(event: str, told: Callable[[Any], object]) -> None:
        page.on(event, told)
        heard.append((event, told))

    hear("console", lambda said: forbidden.append(said.text) if "Content Security Policy" in said.text else 0)
    hear("request", lambda request: outside.append(request.url))
    hear("request", lambda request: UNANSWERED.append(request.url) if is_event(request.url) else 0)
    for ended in ("requestfinished", "requestfailed"):
        hear(ended, lambda request: UNANSWERED.remove(request.url) if is_event(request.url) else 0)
    yield page
    page.unroute_all()
    try:
        if page.url.startswith("http"):
            page.evaluate("() => window.stop()")
            page.mouse.move(0, 0)
            page.goto(urljoin(page.url, "/healthz"))
            # Only now: an answer that had come would have been remembered after it.
            page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    except Error:  # it crashed, or its server is gone
        page.close()
        raise
    for event, told in heard:
        page.remove_listener(event, told)
    context.clear_cookies()
    UNANSWERED.clear()
    strangers = [url for url in outside if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))]
    assert strangers == [], "the pages must not need the internet"
    assert forbidden == [], "the pages must not need what their policy forbids"
