"""The real pages in a real browser: search, look at a picture, compare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from app.demo import homes
from app.demo.story import Check, Findings, Shown
from app.jobs import worker
from app.workspace import Workspace
from tests.app.gate_reports import HOSTILE, findings, gate_report
from tests.app.server.served import Served, make_home, sample_upload, served

CHROMIUM = Path("/usr/bin/chromium")
WAIT_MS = 30_000  # a busy machine answers late
JOB_MS = 180_000  # a new process loads the encoder; on a busy machine that takes long
EVENTS = (
    "/gradio_api/queue/",
    "/gradio_api/run/",
)  # what a person sets off, and what a page asks when it opens
UNANSWERED: list[str] = []  # addresses of Gradio's events on the page that is open
expect.set_options(timeout=WAIT_MS)

pytestmark = [
    pytest.mark.browser,
    # Gradio asks pandas for two things that pandas 3 has retired.
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing; install Debian's chromium"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home"))) as running:
        yield running


@pytest.fixture(scope="module")
def guided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A demo's home whose first step has been played."""
    settings = make_home(tmp_path_factory.mktemp("guided"))
    with Workspace.open(settings, read_only=True) as workspace:
        ids = tuple(workspace.catalog.gallery_ids()[:2])
    findings = Findings(("12 pictures",), (Check("it works", True),), (Shown("two red boats", ids),))
    homes.mark(settings.home, homes.GUIDED, {"english": findings})
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home whose one chunk is held by its checks, and whose first update was rejected long ago."""
    settings = make_home(tmp_path_factory.mktemp("judged"))
    with Workspace.open(settings) as workspace:
        catalog = workspace.catalog
        ids = catalog.gallery_ids()
        chunk = catalog.chunks()[0].id
        catalog.add_findings(chunk, findings(ids))
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
    with served(settings) as running:
        yield running


@pytest.fixture(scope="module")
def browser(server: Served, guided: Served, judged: Served) -> Iterator[Any]:
    """Starts after the servers: it leaves an event loop running, in which none can be started."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM),
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    page.on("request", lambda request: UNANSWERED.append(request.url) if _is_event(request.url) else None)
    for ended in ("requestfinished", "requestfailed"):
        page.on(ended, lambda request: UNANSWERED.remove(request.url) if _is_event(request.url) else None)
    yield page
    context.close()
    UNANSWERED.clear()
    strangers = [url for url in outside if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))]
    assert strangers == [], "the pages must not need the internet"


def _is_event(url: str) -> bool:
    return any(path in url for path in EVENTS)


def _settle(page: Page) -> None:
    """Waits until Gradio has been silent for half a second.

    Its client may lose an event that begins at the very moment in which the answers to all others have ended; a test
    is quick enough to meet that moment, a person is not.
    """
    silent = 0
    for _ in range(WAIT_MS // 100):
        silent = 0 if UNANSWERED else silent + 1
        if silent == 5:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"still unanswered: {UNANSWERED}")


def _open(page: Page, url: str) -> None:
    """Opens a page and waits until it has asked for its menus and has them."""
    with page.expect_request(lambda request: _is_event(request.url)):
        page.goto(url)
    _settle(page)


def _ask(page: Page, box: str, text: str) -> None:
    _settle(page)
    page.fill(f"{box} textarea, {box} input", text)
    page.keyboard.press("Enter")


def _is_drawn(page: Page, selector: str) -> None:
    picture = page.locator(selector).first
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 0


def test_a_person_searches_chooses_a_picture_and_reads_its_captions(server: Served, page: Page) -> None:
    _open(page, server.url)
    assert "Describe a picture" in page.inner_text("#empty")
    _ask(page, "#query", "a red boat on the beach")
    page.wait_for_selector("#results .thumbnail-item img")
    assert page.locator("#results .thumbnail-item").count() == 10
    assert "r1-" in page.inner_text("#status")
    _is_drawn(page, "#results img")
    _settle(page)
    page.locator("#results .thumbnail-item").nth(1).click()
    page.wait_for_selector("#facts li")
    facts = page.inner_text("#facts")
    assert {line.split()[0] for line in facts.splitlines() if line.startswith(("de ", "en "))} == {"de", "en"}
    _is_drawn(page, "#picture img")


def test_a_query_of_markup_is_shown_as_text(server: Served, page: Page) -> None:
    _open(page, server.url)
    _ask(page, "#query", "<img src=x onerror=\"document.title='owned'\">")
    page.wait_for_selector("#results .thumbnail-item img")
    assert page.title() == "Perennial"


def test_two_releases_are_compared_side_by_side(server: Served, page: Page) -> None:
    _open(page, server.url)
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#release-b input")).to_have_value(re.compile("live"))
    _ask(page, "#compare-query", "a red boat on the beach")
    page.wait_for_selector("#compare-a .thumbnail-item img")
    page.wait_for_selector("#compare-b .thumbnail-item img")
    assert "overlap" in page.inner_text("#compare-status")
    captions = page.locator("#compare-b .caption-label").all_inner_texts()
    assert any(mark in caption for caption in captions for mark in ("▲", "▼", "＝", "new"))
    assert "en/scenes" in page.inner_text("#compare-slices")


def test_the_releases_tab_promotes_with_a_reason(server: Served, page: Page) -> None:
    _open(page, f"{server.url}/admin")
    page.get_by_role("tab", name="Releases").click()
    second = server.serving.workspace.releases.release("r2").id
    # Its name stands in the row of r3, whose parent it is, and then in its own.
    page.locator("#releases [role=gridcell]").filter(has_text=second).last.click()
    page.wait_for_selector("#release-verdict h2")
    assert "Passed" in page.inner_text("#release-verdict")
    page.fill("#why textarea, #why input", "it knows German")
    _settle(page)
    page.click("#promote")
    expect(page.locator("#releases-said")).to_contain_text("is live")
    commit = server.serving.workspace.releases.current()
    assert commit is not None
    assert (commit.release[:2], commit.why) == ("r2", "it knows German")


def test_an_upload_is_watched_until_its_report_is_there(server: Served, page: Page, tmp_path: Path) -> None:
    upload = sample_upload(tmp_path / "more.zip", first=100, count=3)
    _open(page, f"{server.url}/admin")
    page.get_by_role("tab", name="Update").click()
    page.set_input_files("#file input[type=file]", str(upload))
    expect(page.locator("#file")).to_contain_text("more")
    _settle(page)
    page.click("#check")
    page.wait_for_selector("#stop-upload")
    page.wait_for_selector("#report-summary h3", timeout=JOB_MS)
    assert "3 new pictures" in page.inner_text("#report-summary")
    assert "3 pictures were embedded" in page.inner_text("#report-summary")
    expect(page.locator("#stop-upload")).to_be_hidden()


def _choose(page: Page, menu: str, text: str) -> None:
    _settle(page)
    page.click(f"{menu} input")
    page.locator("[role=option]").filter(has_text=text).first.click()
    _settle(page)


def _does_not_overflow(page: Page) -> None:
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0


@pytest.mark.parametrize("width", [1280, 390])
def test_a_rejected_update_opened_later_shows_its_whole_report(
    judged: Served, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    _open(page, f"{judged.url}/admin/")
    _choose(page, "#past", "Rejected")
    page.click("#read-past")
    page.wait_for_selector("#update-verdict h2")
    assert "Rejected" in page.inner_text("#update-verdict")
    assert "lost against" in page.inner_text("#update-verdict")
    assert "What to do next" in page.inner_text("#update-steps")
    expect(page.locator("#update-moved")).to_contain_text(HOSTILE)
    assert page.title() == "Perennial · teaching"
    _is_drawn(page, "#update-moved img")
    expect(page.locator("#promote-new")).to_be_hidden()
    # The long table scrolls in its own frame and does not widen or lengthen the page.
    table = page.locator("#update-slices table").last
    assert table.evaluate("table => table.scrollHeight > table.clientHeight")
    assert table.evaluate("table => table.clientHeight") < 500
    _does_not_overflow(page)


@pytest.mark.parametrize("width", [1280, 390])
def test_a_held_chunk_shows_its_findings_as_cards(judged: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    _open(page, f"{judged.url}/admin/")
    _choose(page, "#known", "held")
    page.click("#use-known")
    expect(page.locator("#finding-0")).to_contain_text("moved by one row")
    expect(page.locator("#finding-0")).to_contain_text(HOSTILE)
    assert page.title() == "Perennial · teaching"
    _is_drawn(page, "#finding-0 img")
    assert "Standing: held" in page.inner_text("#report-summary")
    expect(page.locator("#finding-1")).to_contain_text("cannot be told")
    expect(page.locator("#finding-2")).to_contain_text("No caption stands on many pictures")
    expect(page.locator("#finding-3")).to_be_hidden()
    expect(page.locator("#go-on")).to_be_disabled()
    _does_not_overflow(page)


def test_a_person_accepts_a_held_chunk_with_a_reason_and_then_withdraws_it(
    judged: Served, page: Page
) -> None:
    _open(page, f"{judged.url}/admin/")
    _choose(page, "#known", "held")
    page.click("#use-known")
    expect(page.locator("#accept")).to_be_visible()
    _settle(page)
    page.click("#accept")
    expect(page.locator("#word-said")).to_contain_text("Say why")
    expect(page.locator("#go-on")).to_be_disabled()
    _settle(page)
    page.fill("#word-why textarea, #word-why input", HOSTILE)
    page.click("#accept")
    expect(page.locator("#word-said")).to_contain_text("is accepted")
    expect(page.locator("#report-summary")).to_contain_text("Standing: accepted")
    expect(page.locator("#report-summary")).to_contain_text(HOSTILE)
    expect(page.locator("#go-on")).to_be_enabled()
    _settle(page)
    page.fill("#word-why textarea, #word-why input", "wrong names")
    page.click("#withdraw")
    expect(page.locator("#word-said")).to_contain_text("10 pictures leave the gallery")
    expect(page.locator("#accept")).to_be_hidden()
    expect(page.locator("#go-on")).to_be_disabled()
    assert page.title() == "Perennial · teaching"
    (job,) = [one for one in judged.serving.workspace.catalog.jobs() if one.kind == "gallery"]
    assert worker.follow(judged.settings, job.id).state == "succeeded"


def test_the_guide_shows_what_a_step_found_with_its_pictures(guided: Served, page: Page) -> None:
    _open(page, guided.url)
    expect(page.locator("#found-english")).to_contain_text("it works")
    _is_drawn(page, "#pictures-english img")
    assert page.locator("#pictures-english img").count() == 2
    assert "Error" not in page.inner_text("#pictures-english")
