"""axe-core, the engine behind browsers' own audits, finds nothing to mend on any tab.

Each tab is walked through once, and looked at wherever there is something new to see, by turns narrow and dark and wide
and light. No picture is broken, nothing is over the edge, and the console has nothing to complain of.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

import pytest
from playwright.sync_api import ConsoleMessage, Page, expect

from tests.app.server.served import Served
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    TILES,
    ask,
    choose,
    is_drawn,
    open_page,
    overflows,
    settle,
    unfold,
)

pytestmark = IN_A_BROWSER
Looks = Iterator[tuple[tuple[int, str], ...]]
# A colour that fades to another is neither of them.
STILL = """document.head.appendChild(document.createElement("style")).textContent =
  "*, *::before, *::after { transition: none !important; }" """
BROKEN = (
    "[...document.images].filter(one => one.complete && !one.naturalWidth && one.src).map(one => one.src)"
)
# Every width in every theme, wherever there is something new to see, under -m slow.
FEW = (((390, "dark"),), ((1440, "light"),))
ALL = (((390, "dark"), (1440, "light"), (1440, "dark"), (390, "light")),)


@pytest.fixture(params=[pytest.param(FEW, id="few"), pytest.param(ALL, id="all", marks=pytest.mark.slow)])
def looks(request: pytest.FixtureRequest) -> Looks:
    return cycle(request.param)


@pytest.fixture
def wide(page: Page) -> Page:
    page.set_viewport_size({"width": 1440, "height": 900})
    return page


@pytest.fixture
def walked(wide: Page) -> Iterator[Page]:
    """A wide page; whatever its console complains of fails the test."""
    complaints: list[str] = []

    def hear(said: ConsoleMessage) -> None:
        if said.type == "error":
            complaints.append(f"{said.text} ({said.location.get('url', '')})")

    wide.on("console", hear)
    wide.on("pageerror", lambda error: complaints.append(str(error)))
    yield wide
    assert complaints == []


def found_wrong(page: Page, looks: Looks) -> list[str]:
    """Returns what is wrong with the page as it is now, in the next looks, and leaves it wide and light."""
    wrong = [f"broken: {one}" for one in page.evaluate(BROKEN)]
    page.evaluate(STILL)
    for width, theme in next(looks):
        page.set_viewport_size({"width": width, "height": 900})
        # What Gradio does with `?__theme=dark`.
        page.evaluate("dark => document.body.classList.toggle('dark', dark)", theme == "dark")
        page.wait_for_timeout(400)  # colours fade over, and what is narrow moves
        wrong += [f"{width} {theme}: {rule}" for rule in broken_rules(page)]
        if overflows(page):
            wrong.append(f"{width}: the page is wider than the screen")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.evaluate("document.body.classList.remove('dark')")
    settle(page)
    return wrong


def test_search(server: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{server.url}/")
    assert found_wrong(walked, looks) == []
    ask(walked, "#query", "a red boat on the beach")
    expect(walked.locator("#status")).to_contain_text("best matches first")
    settle(walked)
    walked.click("#filters button")
    walked.click(".about summary")
    assert found_wrong(walked, looks) == []
    walked.locator(f"{TILES} > a").nth(1).click()
    walked.wait_for_selector("#viewer .spoken li")
    assert found_wrong(walked, looks) == []


def test_search_without_an_answer(server: Served, wide: Page, looks: Looks) -> None:
    open_page(wide, f"{server.url}/?text=boat&until=2020-01-01")
    expect(wide.locator("#empty")).to_contain_text("Nothing fits")
    assert found_wrong(wide, looks) == []
    wide.route("**/pictures", lambda route: route.abort())
    ask(wide, "#query", "a red boat")
    expect(wide.get_by_role("alert")).to_be_visible()
    assert found_wrong(wide, looks) == []
    wide.unroute("**/pictures")


def test_compare(server: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{server.url}/")
    walked.get_by_role("tab", name="Compare").click()
    ask(walked, "#compare-query", "a red boat on the beach")
    walked.wait_for_selector("#compare-b .thumbnail-item img")
    settle(walked)
    assert found_wrong(walked, looks) == []
    walked.click("#compare-blind")
    expect(walked.locator("#vote-a")).to_be_visible()
    settle(walked)
    assert found_wrong(walked, looks) == []
    walked.click("#vote-a")
    expect(walked.locator("#compare-votes svg")).to_be_visible()
    walked.click("#many button.label-wrap")
    walked.fill("#many-queries textarea", "a red boat")
    settle(walked)
    walked.click("#many-go")
    expect(walked.locator("#many-said")).to_contain_text("1 query")
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_update(judged: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{judged.url}/admin/")
    assert found_wrong(walked, looks) == []
    choose(walked, "#past", "Rejected")
    walked.click("#read-past")
    walked.wait_for_selector("#update-verdict h2")
    unfold(walked, "Test captions that moved most", "How sure that is")
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_the_check_of_a_chunk(judged: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{judged.url}/admin/")
    choose(walked, "#known", "held")
    walked.click("#use-known")
    expect(walked.locator("#finding-0")).to_contain_text("moved by one row")
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_teaching(server: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{server.url}/admin/")
    choose(walked, "#known", "scenes")
    walked.click("#use-known")
    expect(walked.locator("#go-on")).to_be_enabled()
    settle(walked)
    walked.click("#go-on")
    expect(walked.locator("#strategy-explained")).to_contain_text("Estimate")
    walked.get_by_text("Options", exact=True).click()
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_releases(server: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{server.url}/admin/")
    walked.get_by_role("tab", name="Releases").click()
    walked.locator("#releases td").first.click()
    walked.wait_for_selector("#release-verdict h2")
    unfold(walked, "How sure that is")
    settle(walked)
    assert found_wrong(walked, looks) == []
    for closed in (
        "How two releases differ",
        "Export or import a release",
        "History of the live release",
    ):
        walked.get_by_text(closed).click()
        settle(walked)
    choose(walked, "#differ-a", "r1")
    choose(walked, "#differ-b", "r2")
    walked.click("#differ")
    expect(walked.locator("#difference")).to_be_visible()
    settle(walked)
    walked.click("#reject-release")
    expect(walked.locator("#releases-said")).to_contain_text("say why")
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_data(judged: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{judged.url}/admin/")
    walked.get_by_role("tab", name="Data").click()
    walked.locator("#chunks td").first.click()
    expect(walked.locator("#chunk-about")).to_contain_text("Status: held")
    walked.get_by_text("Held rows").click()
    walked.get_by_text("Take out or put back a picture").click()
    walked.get_by_text("Near-duplicates").click()
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_system(judged: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{judged.url}/admin/")
    if all(job.kind != "doctor" for job in judged.serving.workspace.catalog.jobs()):
        with judged.client() as client:
            job = client.post("/v1/doctor", json={}).json()["id"]
        assert judged.ended(job).state == "succeeded"
    walked.get_by_role("tab", name="System").click()
    expect(walked.locator("#doctor-said")).not_to_contain_text("Not checked yet")
    walked.locator("#jobs td").filter(has_text="j1").first.click()
    expect(walked.locator("#job-about")).to_contain_text("Update j1: rejected")
    walked.get_by_text("Server log").click()
    walked.get_by_text("Settings", exact=True).click()
    expect(walked.locator("#settings")).to_contain_text("max_upload_bytes")
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_quality(measured: Served, walked: Page, looks: Looks) -> None:
    with measured.client() as client:
        client.post("/v1/search", json={"text": "เรือสีแดงสองลำ", "k": 2})
    measured.serving.languages_asked.flush()
    open_page(walked, f"{measured.url}/admin/")
    walked.get_by_role("tab", name="Quality").click()
    walked.locator("#quality-change button").first.click()
    walked.wait_for_selector("#quality-cards img")
    settle(walked)
    walked.click("#drift button.label-wrap")
    walked.click("#drift-measure")
    walked.wait_for_selector("#drift-table td")
    walked.get_by_role("button", name="Training and test material").click()
    walked.wait_for_selector("#quality-coverage td")
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_feedback(measured: Served, walked: Page, looks: Looks) -> None:
    with measured.client() as client:
        hit = client.post("/v1/search", json={"text": "a red house", "k": 1}).json()["hits"][0]["id"]
        thumb = {"query": "my hut", "language": "en", "release": "r1", "image": hit, "verdict": "up"}
        client.post("/v1/feedback", json=thumb)
        client.post("/v1/feedback", json={"query": "a house", "a": "r1", "b": "r2", "choice": "b"})
    open_page(walked, f"{measured.url}/admin/")
    walked.get_by_role("tab", name="Feedback").click()
    walked.locator("#feedback-table td").filter(has_text="my hut").first.click()
    walked.wait_for_selector("#feedback-pictures .thumbnail-item img")
    expect(walked.locator("#proposal-pairs label").first).to_be_visible()
    walked.get_by_text("Canaries: queries whose").click()
    settle(walked)
    assert found_wrong(walked, looks) == []


def test_guide(guided: Served, walked: Page, looks: Looks) -> None:
    open_page(walked, f"{guided.url}/")
    expect(walked.locator("#found-english")).to_contain_text("it works")
    is_drawn(walked, "#pictures-english img")
    assert walked.locator("#pictures-english img").count() == 2
    assert "Error" not in walked.inner_text("#pictures-english")
    assert found_wrong(walked, looks) == []
