"""axe-core, the engine behind browsers' own audits, finds nothing to mend on any tab."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from app.jobs import worker
from tests.app.server.served import Served
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import IN_A_BROWSER, ask, choose, does_not_overflow, open_page, settle

pytestmark = IN_A_BROWSER
LOOKS = [(1440, "light"), (1440, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def looked_at(page: Page, request: pytest.FixtureRequest) -> Page:
    """The page at a width, light or dark."""
    width, theme = request.param
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    return page


def _open(page: Page, url: str) -> None:
    theme = "dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else "light"
    open_page(page, f"{url}?__theme={theme}")


def test_search(server: Served, looked_at: Page) -> None:
    _open(looked_at, f"{server.url}/")
    assert broken_rules(looked_at) == []
    ask(looked_at, "#query", "a red boat on the beach")
    looked_at.wait_for_selector("#results .thumbnail-item img")
    settle(looked_at)
    looked_at.locator("#results .thumbnail-item").nth(1).click()
    looked_at.wait_for_selector("#facts li")
    assert broken_rules(looked_at) == []


def test_compare(server: Served, looked_at: Page) -> None:
    _open(looked_at, f"{server.url}/")
    looked_at.get_by_role("tab", name="Compare").click()
    ask(looked_at, "#compare-query", "a red boat on the beach")
    looked_at.wait_for_selector("#compare-b .thumbnail-item img")
    settle(looked_at)
    assert broken_rules(looked_at) == []
    looked_at.click("#compare-blind")
    expect(looked_at.locator("#vote-a")).to_be_visible()
    settle(looked_at)
    assert broken_rules(looked_at) == []
    looked_at.click("#vote-a")
    expect(looked_at.locator("#compare-votes svg")).to_be_visible()
    looked_at.click("#many button.label-wrap")
    looked_at.fill("#many-queries textarea", "a red boat")
    settle(looked_at)
    looked_at.click("#many-go")
    expect(looked_at.locator("#many-said")).to_contain_text("1 query")
    settle(looked_at)
    assert broken_rules(looked_at) == []


def test_update(judged: Served, looked_at: Page) -> None:
    _open(looked_at, f"{judged.url}/admin/")
    assert broken_rules(looked_at) == []
    choose(looked_at, "#past", "Rejected")
    looked_at.click("#read-past")
    looked_at.wait_for_selector("#update-verdict h2")
    settle(looked_at)
    assert broken_rules(looked_at) == []


def test_the_check_of_a_chunk(judged: Served, looked_at: Page) -> None:
    _open(looked_at, f"{judged.url}/admin/")
    choose(looked_at, "#known", "held")
    looked_at.click("#use-known")
    expect(looked_at.locator("#finding-0")).to_contain_text("moved by one row")
    settle(looked_at)
    assert broken_rules(looked_at) == []


def test_teaching(server: Served, looked_at: Page) -> None:
    _open(looked_at, f"{server.url}/admin/")
    choose(looked_at, "#known", "scenes")
    looked_at.click("#use-known")
    expect(looked_at.locator("#go-on")).to_be_enabled()
    settle(looked_at)
    looked_at.click("#go-on")
    expect(looked_at.locator("#strategy-explained")).to_contain_text("What it will take")
    looked_at.get_by_text("Options", exact=True).click()
    settle(looked_at)
    does_not_overflow(looked_at)
    assert broken_rules(looked_at) == []


def test_releases(server: Served, looked_at: Page) -> None:
    _open(looked_at, f"{server.url}/admin/")
    looked_at.get_by_role("tab", name="Releases").click()
    looked_at.locator("#releases [role=gridcell]").first.click()
    looked_at.wait_for_selector("#release-verdict h2")
    settle(looked_at)
    assert broken_rules(looked_at) == []
    for closed in (
        "What two releases differ in",
        "Carry a release to another home",
        "History: what was live",
    ):
        looked_at.get_by_text(closed).click()
        settle(looked_at)
    choose(looked_at, "#differ-a", "r1")
    choose(looked_at, "#differ-b", "r2")
    looked_at.click("#differ")
    expect(looked_at.locator("#difference")).to_be_visible()
    settle(looked_at)
    looked_at.click("#reject-release")
    expect(looked_at.locator("#releases-said")).to_contain_text("say why")
    settle(looked_at)
    does_not_overflow(looked_at)
    assert broken_rules(looked_at) == []


def test_data(judged: Served, looked_at: Page) -> None:
    _open(looked_at, f"{judged.url}/admin/")
    looked_at.get_by_role("tab", name="Data").click()
    looked_at.locator("#chunks [role=gridcell]").first.click()
    expect(looked_at.locator("#chunk-about")).to_contain_text("Standing: held")
    looked_at.get_by_text("Rows that were held").click()
    looked_at.get_by_text("One picture, and those that were taken out").click()
    looked_at.get_by_text("Pictures of one thing").click()
    settle(looked_at)
    does_not_overflow(looked_at)
    assert broken_rules(looked_at) == []


def test_system(judged: Served, looked_at: Page) -> None:
    _open(looked_at, f"{judged.url}/admin/")
    if all(job.kind != "doctor" for job in judged.serving.workspace.catalog.jobs()):
        with judged.client() as client:
            job = client.post("/v1/doctor", json={}).json()["id"]
        assert worker.follow(judged.settings, job).state == "succeeded"
    looked_at.get_by_role("tab", name="System").click()
    expect(looked_at.locator("#doctor-said")).not_to_contain_text("Nobody has looked")
    looked_at.locator("#jobs [role=gridcell]").filter(has_text="j1").first.click()
    expect(looked_at.locator("#job-about")).to_contain_text("Update j1: rejected")
    looked_at.get_by_text("Log of the server").click()
    looked_at.get_by_text("Settings", exact=True).click()
    expect(looked_at.locator("#settings")).to_contain_text("max_upload_bytes")
    settle(looked_at)
    does_not_overflow(looked_at)
    assert broken_rules(looked_at) == []


def test_quality(measured: Served, looked_at: Page) -> None:
    with measured.client() as client:
        client.post("/v1/search", json={"text": "เรือสีแดงสองลำ", "k": 2})
    measured.serving.languages_asked.flush()
    _open(looked_at, f"{measured.url}/admin/")
    looked_at.get_by_role("tab", name="Quality").click()
    looked_at.locator("#quality-change button").first.click()
    looked_at.wait_for_selector("#quality-cards img")
    settle(looked_at)
    looked_at.click("#drift button.label-wrap")
    looked_at.click("#drift-measure")
    looked_at.wait_for_selector("#drift-table td")
    looked_at.get_by_role("button", name="What there is to learn from").click()
    looked_at.wait_for_selector("#quality-coverage td")
    settle(looked_at)
    does_not_overflow(looked_at)
    assert broken_rules(looked_at) == []


def test_feedback(measured: Served, looked_at: Page) -> None:
    with measured.client() as client:
        hit = client.post("/v1/search", json={"text": "a red house", "k": 1}).json()["hits"][0]["id"]
        thumb = {"query": "my hut", "language": "en", "release": "r1", "image": hit, "verdict": "up"}
        client.post("/v1/feedback", json=thumb)
        client.post("/v1/feedback", json={"query": "a house", "a": "r1", "b": "r2", "choice": "b"})
    _open(looked_at, f"{measured.url}/admin/")
    looked_at.get_by_role("tab", name="Feedback").click()
    looked_at.locator("#feedback-table [role=gridcell]").filter(has_text="my hut").first.click()
    looked_at.wait_for_selector("#feedback-pictures .thumbnail-item img")
    expect(looked_at.locator("#proposal-pairs label").first).to_be_visible()
    looked_at.get_by_text("Canaries: queries whose").click()
    settle(looked_at)
    does_not_overflow(looked_at)
    assert broken_rules(looked_at) == []


def test_guide(guided: Served, looked_at: Page) -> None:
    _open(looked_at, f"{guided.url}/")
    expect(looked_at.locator("#found-english")).to_contain_text("it works")
    assert broken_rules(looked_at) == []
