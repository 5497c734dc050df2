"""The real pages in a real browser: search, look at a picture, compare."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.app.gate_reports import HOSTILE
from tests.app.server.served import Served, make_home, sample_upload, served
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    JOB_MS,
    NARROW_OR_WIDE,
    TILES,
    ask,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    settle,
    unfold,
)
from tests.app.ui.visible import is_seen

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One whose jobs are processes, which can be stopped."""
    with served(make_home(tmp_path_factory.mktemp("home"), jobs="here"), with_pages=True) as running:
        yield running


def test_a_bad_query_says_where_and_one_of_markup_is_shown_as_text(server: Served, page: Page) -> None:
    open_page(page, server.url)
    ask(page, "#query", "boat + + red")
    expect(page.locator("#status")).to_contain_text("at character 6")
    ask(page, "#query", "<img src=x onerror=\"document.title='owned'\">")
    expect(page.locator("#status")).to_contain_text("best matches first")
    expect(page.locator(TILES)).to_have_count(10)
    assert page.title() == "Perennial"


@pytest.mark.parametrize("path", ["/", "/admin/", "/docs"])
def test_what_gets_into_a_page_later_is_never_run(server: Served, context: BrowserContext, path: str) -> None:
    """As if some text had been taken for markup, somewhere: the policy is the last wall behind escaping."""
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda one: said.append(one.text))
    page.goto(server.url + path)
    page.evaluate("""() => {
        document.body.insertAdjacentHTML("beforeend", '<img src="data:," onerror="window.ran = 1">');
        document.body.append(Object.assign(document.createElement("script"), {text: "window.ran = 2"}));
    }""")
    page.wait_for_timeout(300)
    assert page.evaluate("window.ran") is None
    assert len([one for one in said if "Content Security Policy" in one]) == 2
    page.close()


def test_two_releases_are_compared_side_by_side(server: Served, page: Page) -> None:
    open_page(page, server.url)
    page.get_by_role("tab", name="Compare").click()
    # What is new is marked on the right, so that is the candidate's side.
    expect(page.locator("#release-a input")).to_have_value(re.compile("live"))
    expect(page.locator("#release-b input")).to_have_value(re.compile("^r3-"))
    ask(page, "#compare-query", "a red boat on the beach")
    page.wait_for_selector("#compare-a .thumbnail-item img")
    page.wait_for_selector("#compare-b .thumbnail-item img")
    assert "overlap" in page.inner_text("#compare-status")
    captions = page.locator("#compare-b .caption-label").all_inner_texts()
    assert any(mark in caption for caption in captions for mark in ("▲", "▼", "=", "new"))
    assert "en/scenes" in page.inner_text("#compare-slices")


def test_the_releases_tab_promotes_with_a_reason(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/admin")
    page.get_by_role("tab", name="Releases").click()
    second = server.serving.workspace.releases.release("r2").id
    # Its name stands in the row of r3, whose parent it is, and then in its own.
    page.locator("#releases td").filter(has_text=second).last.click()
    page.wait_for_selector("#release-verdict h2")
    assert "Passed" in page.inner_text("#release-verdict")
    page.fill("#why textarea, #why input", "it knows German")
    settle(page)
    page.click("#promote")
    expect(page.locator("#releases-said")).to_contain_text("is live")
    commit = server.serving.workspace.releases.current()
    assert commit is not None
    assert (commit.release[:2], commit.why) == ("r2", "it knows German")


def test_what_the_gate_asks_about_goes_live_only_for_a_reason(server: Served, page: Page) -> None:
    releases = server.serving.workspace.releases
    before = releases.standing().commit
    open_page(page, f"{server.url}/admin")
    page.get_by_role("tab", name="Releases").click()
    page.locator("#releases td").filter(has_text=releases.release("r3").id).first.click()
    page.wait_for_selector("#release-verdict h2")
    settle(page)
    page.click("#promote")
    expect(page.locator("#release-accepts")).to_contain_text("asks for your decision on r3-")
    page.click("#release-accept-yes")
    expect(page.locator("#releases-said")).to_contain_text("say why")
    assert releases.standing().commit == before
    page.fill("#release-accept-why textarea, #release-accept-why input", "few pictures, and it reads German")
    settle(page)
    page.click("#release-accept-yes")
    expect(page.locator("#releases-said")).to_contain_text("is live")
    expect(page.locator("#release-accept")).to_be_hidden()
    commit = releases.standing().commit
    assert commit is not None
    assert (commit.release[:2], commit.why) == ("r3", "few pictures, and it reads German")
    with server.client() as client:
        client.post("/v1/rollback", json={"release": "r2"}).raise_for_status()


def test_the_releases_tab_draws_the_lineage_and_says_what_two_releases_differ_in(
    server: Served, page: Page
) -> None:
    open_page(page, f"{server.url}/admin")
    page.get_by_role("tab", name="Releases").click()
    assert "r1 · base encoder" in page.inner_text("#lineage .broad")
    settle(page)
    page.get_by_text("How two releases differ").click()
    settle(page)
    choose(page, "#differ-a", "r1-")
    choose(page, "#differ-b", "r2-")
    page.click("#differ")
    expect(page.locator("#difference")).to_contain_text("B alone has the languages de.")
    assert "+20.0" in page.inner_text("#difference table")
    does_not_overflow(page)


def test_a_release_is_rejected_with_a_note_and_what_is_live_is_pinned(judged: Served, page: Page) -> None:
    open_page(page, f"{judged.url}/admin/")
    page.get_by_role("tab", name="Releases").click()
    settle(page)
    page.locator("#releases td").nth(1).click()
    page.wait_for_selector("#release-verdict h2")
    settle(page)
    page.get_by_text("Export or import a release").click()
    settle(page)
    page.click("#export")
    expect(page.locator("#exported")).to_contain_text("Checksum")
    assert re.search(
        r"/v1/releases/r3-\w+/package", page.locator("#fetch-export").evaluate("a => a.outerHTML")
    )
    settle(page)
    page.click("#reject-release")
    expect(page.locator("#releases-said")).to_contain_text("say why")
    settle(page)
    page.fill("#why textarea, #why input", HOSTILE)
    page.click("#reject-release")
    expect(page.locator("#releases-said")).to_contain_text("Rejected by local")
    expect(page.locator("#releases-said")).to_contain_text(HOSTILE)
    settle(page)
    page.click("#pin")
    expect(page.locator("#lineage")).to_contain_text("Pinned by local")
    settle(page)
    page.click("#promote")
    expect(page.locator("#release-accepts")).to_contain_text("Rejected by local")
    page.fill("#release-accept-why textarea, #release-accept-why input", "we thought again")
    settle(page)
    page.click("#release-accept-yes")
    expect(page.locator("#releases-said")).to_contain_text("Unpin it first")
    settle(page)
    page.click("#unpin")
    expect(page.locator("#pin")).to_be_visible()
    assert page.title() == "Perennial · teaching"
    does_not_overflow(page)


def test_an_upload_is_watched_until_its_report_is_there(server: Served, page: Page, tmp_path: Path) -> None:
    upload = sample_upload(tmp_path / "more.zip", first=100, count=3)
    open_page(page, f"{server.url}/admin")
    page.get_by_role("tab", name="Update").click()
    page.set_input_files("#file input:not([webkitdirectory])", str(upload))
    expect(page.locator("#file")).to_contain_text("more")
    settle(page)
    page.click("#check")
    page.wait_for_selector("#stop-upload")
    page.wait_for_selector("#check-verdict h2", timeout=JOB_MS)
    unfold(page, "What was taken in")
    assert "3 new pictures" in page.inner_text("#report-summary")
    expect(page.locator("#stop-upload")).to_be_hidden()
    expect(page.locator("#file")).not_to_contain_text("more")  # ready for the next one


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_rejected_update_opened_later_shows_its_whole_report(
    judged: Served, page: Page, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, f"{judged.url}/admin/")
    choose(page, "#past", "Rejected")
    page.click("#read-past")
    page.wait_for_selector("#update-verdict h2")
    assert "Rejected" in page.inner_text("#update-verdict")
    assert "It is not live." in page.inner_text("#update-verdict h2")
    assert "What to do next" in page.inner_text("#update-steps")
    unfold(page, "Test captions that moved most", "How sure that is")
    expect(page.locator("#update-reasons")).to_contain_text("lost against")
    expect(page.locator("#update-moved")).to_contain_text(HOSTILE)
    assert page.title() == "Perennial · teaching"
    is_drawn(page, "#update-moved img")
    expect(page.locator("#promote-new")).to_be_hidden()
    # The long table scrolls in its own frame and does not widen or lengthen the page.
    table = page.locator("#update-slices table").last
    assert table.evaluate("table => table.scrollHeight > table.clientHeight")
    assert table.evaluate("table => table.clientHeight") < 500
    does_not_overflow(page)


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_held_chunk_shows_its_findings_as_cards(judged: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    open_page(page, f"{judged.url}/admin/")
    choose(page, "#known", "held")
    page.click("#use-known")
    expect(page.locator("#finding-0")).to_contain_text("moved by one row")
    expect(page.locator("#finding-0")).to_contain_text(HOSTILE)
    assert page.title() == "Perennial · teaching"
    is_drawn(page, "#finding-0 img")
    # The verdict and the buttons of who has to decide are in view without scrolling.
    expect(page.locator("#check-verdict h2")).to_contain_text("teaches nothing until you accept it")
    settle(page)
    expect(page.locator("#accept")).to_be_in_viewport(ratio=1)
    assert page.evaluate("scrollY") == 0
    unfold(page, "What was taken in")
    assert "Status: held" in page.inner_text("#report-summary")
    expect(page.locator("#finding-1")).to_contain_text("cannot be told")
    expect(page.locator("#finding-2")).to_contain_text("No caption stands on many pictures")
    expect(page.locator("#finding-3")).to_be_hidden()
    expect(page.locator("#go-on")).to_be_hidden()
    does_not_overflow(page)


def test_a_person_accepts_a_held_chunk_with_a_reason_and_then_withdraws_it(
    judged: Served, page: Page
) -> None:
    open_page(page, f"{judged.url}/admin/")
    choose(page, "#known", "held")
    page.click("#use-known")
    expect(page.locator("#accept")).to_be_visible()
    settle(page)
    page.click("#accept")
    expect(page.locator("#word-said")).to_contain_text("Say why")
    expect(page.locator("#go-on")).to_be_hidden()
    unfold(page, "What was taken in")
    settle(page)
    page.fill("#word-why textarea, #word-why input", HOSTILE)
    page.click("#accept")
    expect(page.locator("#word-said")).to_contain_text("is accepted")
    expect(page.locator("#report-summary")).to_contain_text("Status: accepted")
    expect(page.locator("#report-summary")).to_contain_text(HOSTILE)
    expect(page.locator("#go-on")).to_be_enabled()
    settle(page)
    page.fill("#word-why textarea, #word-why input", "wrong names")
    page.click("#withdraw")
    expect(page.locator("#word-said")).to_contain_text("10 pictures leave the gallery")
    expect(page.locator("#accept")).to_be_hidden()
    expect(page.locator("#go-on")).to_be_disabled()
    assert page.title() == "Perennial · teaching"
    (job,) = [one for one in judged.serving.workspace.catalog.jobs() if one.kind == "gallery"]
    assert judged.ended(job.id).state == "succeeded"


def test_an_update_is_stopped_and_goes_on_where_it_was(server: Served, page: Page) -> None:
    catalog = server.serving.workspace.catalog
    job = catalog.add_job("update", {"chunk": catalog.chunks()[0].id, "strategy": "language-tables"})
    curve = [{"at": n / 2, "terms": {"pull": 3.0 - n}} for n in range(1, 3)]
    progress = {"name": "train", "message": "epoch 1 of 4", "fraction": 0.25, "curve": curve}
    # Its worker is elsewhere, as far as this server can tell; it takes nothing from the page.
    catalog.update_job(job.id, state="running", progress=progress)
    open_page(page, f"{server.url}/admin/")
    expect(page.locator("#progress")).to_contain_text("epoch 1 of 4")
    expect(page.locator("#curves svg.chart").first).to_be_attached()
    is_seen(page.locator("#curves .broad :is(.curve, text)"))
    assert page.locator("#curves svg.chart").first.get_attribute("aria-label")
    expect(page.locator("#start")).to_be_disabled()
    settle(page)
    page.click("#stop-update")
    expect(page.locator("#progress")).to_contain_text("Stopped")
    assert catalog.job(job.id).state == "cancelled"
    expect(page.locator("#stop-update")).to_be_hidden()
    settle(page)
    open_page(page, f"{server.url}/admin/")
    expect(page.locator("#progress")).to_contain_text("Stopped")
    settle(page)
    page.click("#go-on-update")
    expect(page.locator("#stop-update")).to_be_visible()
    settle(page)
    page.click("#stop-update")
    expect(page.locator("#progress")).to_contain_text("Stopped")
    assert catalog.job(job.id).state == "cancelled"


def test_rest_is_read_and_tried_on_a_page_of_its_own(server: Served, page: Page) -> None:
    refused: list[str] = []
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    page.goto(f"{server.url}/docs")
    operation = page.locator("[id$=search_v1_search_post]").first
    operation.click()
    operation.get_by_role("button", name="Try it out").click()
    operation.locator("textarea").fill('{"text": "a red boat", "k": 1}')
    operation.get_by_role("button", name="Execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").last).to_contain_text("200")
    expect(operation.locator(".live-responses-table")).to_contain_text('"hits"')
    assert refused == [], "the content policy, or a script that is not here"


def test_old_releases_are_pruned_after_a_plan_was_shown(server: Served, page: Page) -> None:
    open_page(page, f"{server.url}/admin/")
    page.get_by_role("tab", name="Releases").click()
    page.get_by_role("button", name="Free room: prune old releases").click()
    page.fill("#prune-keep input", "0")
    page.click("#prune-plan")
    expect(page.locator("#prune-said")).to_contain_text("would go")
    expect(page.locator("#prune-table")).to_contain_text("it is live.")
    expect(page.locator("#prune")).to_be_visible()
    page.click("#prune")
    expect(page.locator("#prune-said")).to_contain_text("were pruned")
    expect(page.locator("#releases")).to_contain_text("✂ pruned")
