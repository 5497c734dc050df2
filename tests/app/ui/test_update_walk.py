"""The whole Update walkthrough in a browser: a chunk that passes and goes live, and one that is rejected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from typer.testing import CliRunner

from app.commands import cli
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning.transfer import export_release
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from tests.app.gate_reports import HOSTILE, gate_report
from tests.app.server.served import Served, make_home, served
from tests.app.small_home import copy_of, new_home, sample_chunk
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    JOB_MS,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    settle,
    unfold,
)

pytestmark = IN_A_BROWSER
# A dozen held-out pictures decide here; a product's default asks for 100.
GATE = {"samples": 200, "minimum_images": 2, "cross_fit": False}
PICTURES = 60
UPDATE_MS = 2 * JOB_MS


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home that was just made: English is known, the gallery is empty."""
    settings = load_settings(
        home=copy_of(new_home(tmp_path_factory), tmp_path_factory.mktemp("fresh")),
        gate=GATE,
        poll_seconds=0.1,
        jobs="elsewhere",
    )
    with served(settings, with_pages=True) as running:
        yield running


def _says_what_was_taken_in(page: Page) -> None:
    assert f"Ready to teach: {2 * PICTURES} captions in 2 languages." in page.inner_text("#check-verdict")
    unfold(page, "What was taken in")
    assert f"{2 * PICTURES} new pairs" in page.inner_text("#report-summary")
    assert f"{PICTURES} new pictures" in page.inner_text("#report-summary")
    assert "de/scenes" in page.inner_text("#report-summary table")


def test_a_chunk_passes_and_goes_live_and_another_is_rejected(
    fresh: Served, page: Page, tmp_path: Path
) -> None:
    open_page(page, f"{fresh.url}/admin/")
    _take_in(page, sample_chunk(tmp_path / "german.zip", pictures=PICTURES))
    _says_what_was_taken_in(page)

    asked = {"epochs": "5", "batch_size": "32"}
    _teach(page, "language-tables", asked)
    with fresh.client() as client:
        assert client.get("/v1/jobs").json()["jobs"][0]["arguments"]["options"] == asked
    assert "Passed" in page.inner_text("#update-verdict")
    assert "German now finds" in page.inner_text("#update-verdict h2")
    assert "Make it live?" in page.inner_text("#update-verdict h2")
    unfold(page, "How sure that is")
    assert "de/scenes" in page.inner_text("#update-slices")
    assert page.locator("#update-forest svg").count() > 0
    expect(page.locator("#decided")).to_contain_text("the forecast was")
    settle(page)
    does_not_overflow(page)
    page.fill("#decide-note textarea, #decide-note input", "German visitors ask for it")
    page.click("#promote-new")
    expect(page.locator("#decided")).to_contain_text("is live")
    commit = fresh.serving.workspace.releases.current()
    assert commit is not None
    assert commit.why == "German visitors ask for it"
    assert fresh.serving.workspace.releases.release(commit.release).manifest.languages == ("en", "de")

    open_page(page, f"{fresh.url}/admin/")
    _take_in(page, _shuffled(tmp_path / "shuffled.zip"))
    _teach(page, "finetune", {"epochs": "2"})
    assert "Rejected" in page.inner_text("#update-verdict")
    unfold(page, "Test captions that moved most")
    assert "Lost most" in page.inner_text("#update-moved")
    is_drawn(page, "#update-moved img")
    expect(page.locator("#decided")).to_contain_text("What was live stays live")
    expect(page.locator("#promote-new")).to_be_hidden()
    settle(page)
    does_not_overflow(page)
    # Its pictures are searched; the encoder is the one that was promoted.
    live, promoted = fresh.serving.live(), fresh.serving.workspace.releases.release(commit.release)
    assert live is not None
    assert live.release.manifest.version == promoted.manifest.version
    chunk = fresh.serving.workspace.catalog.chunks()[-1]
    assert (chunk.standing, chunk.standing_by) == ("rejected", "gate")


def test_the_command_line_forecasts_an_update_on_the_server_and_starts_none(fresh: Served) -> None:
    catalog = fresh.serving.workspace.catalog
    chunk, before = catalog.chunks()[0].id, catalog.jobs()
    asked = ["update", "--chunk", chunk, "--dry-run", "--json"]
    there = json.loads(CliRunner().invoke(cli.app, [*asked, "--server", fresh.url]).stdout)
    here = json.loads(CliRunner().invoke(cli.app, [*asked, "--home", str(fresh.settings.home)]).stdout)
    assert there.keys() == here.keys()
    assert (there["pairs"], there["recommended"]) == (here["pairs"], here["recommended"])
    assert catalog.jobs() == before


def test_what_needs_a_review_is_rejected_with_a_note_and_remembered(fresh: Served, page: Page) -> None:
    workspace = fresh.serving.workspace
    live, live_before = workspace.releases.release("r1"), workspace.releases.standing().commit
    report = gate_report("review", pictures=workspace.catalog.test_images("probes")[:3])
    waiting = workspace.releases.publish_release(
        live.manifest.successor(live.id, strategy="finetune", gate=report.to_json())
    )
    job = workspace.catalog.add_job("update", {"chunk": "0a1b", "strategy": "finetune"})
    result = {"verdict": "review", "gate": report.to_json(), "release": waiting, "commit": None}
    workspace.catalog.update_job(job.id, state="review", result={**result, "seconds": 9.0, "mode": "none"})
    open_page(page, f"{fresh.url}/admin/")
    choose(page, "#past", f"{job.id} ")
    page.click("#read-past")
    expect(page.locator("#update-verdict")).to_contain_text("Needs your decision")
    unfold(page, "Test captions that moved most")
    expect(page.locator("#update-moved")).to_contain_text("Lost most")
    is_drawn(page, "#update-moved img")
    expect(page.locator("#promote-new")).to_have_text("Promote anyway")
    settle(page)
    page.click("#promote-new")
    expect(page.locator("#update-accepts")).to_contain_text("accepts these losses")
    expect(page.locator("#update-accepts li").first).to_contain_text("−")
    assert workspace.releases.standing().commit == live_before
    page.click("#update-accept-no")
    expect(page.locator("#update-accept")).to_be_hidden()
    page.click("#reject")
    expect(page.locator("#decided")).to_contain_text("say why")
    settle(page)
    page.fill("#decide-note textarea, #decide-note input", HOSTILE)
    page.click("#reject")
    expect(page.locator("#decided")).to_contain_text("What was live stays live")
    expect(page.locator("#decided")).to_contain_text(HOSTILE)
    expect(page.locator("#reject")).to_be_hidden()
    settle(page)
    does_not_overflow(page)
    (word,) = workspace.catalog.release_words.all()
    assert (word.release, word.said, word.why) == (waiting, "rejected", HOSTILE)
    open_page(page, f"{fresh.url}/admin/")
    choose(page, "#past", f"{job.id} ")
    page.click("#read-past")
    expect(page.locator("#decided")).to_contain_text(HOSTILE)


@pytest.mark.usefixtures("starts_at_once")  # a package is read in a process of its own
def test_a_release_of_another_home_is_taken_in_on_the_page(fresh: Served, page: Page, tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        sent = export_release(workspace, "r2", tmp_path)
    open_page(page, f"{fresh.url}/admin/")
    page.get_by_role("tab", name="Releases").click()
    settle(page)
    page.get_by_text("Export or import a release").click()
    page.set_input_files("#package input[type=file]", str(sent.path))
    expect(page.locator("#package")).to_contain_text(sent.path.stem[:6])
    page.fill("#package-sha256 textarea, #package-sha256 input", "f" * 64)
    settle(page)
    page.click("#take-package")
    expect(page.locator("#package-said strong")).to_be_visible(timeout=UPDATE_MS)
    assert "was imported as" not in page.inner_text("#package-said")
    page.fill("#package-sha256 textarea, #package-sha256 input", sent.sha256)
    settle(page)
    page.click("#take-package")
    expect(page.locator("#package-said")).to_contain_text("was imported as", timeout=UPDATE_MS)
    expect(page.locator("#package-said")).to_contain_text("Its checksum is right")
    settle(page)
    came = fresh.serving.workspace.catalog.jobs(limit=1)[0].result["release"]
    expect(page.locator("#releases")).to_contain_text(came)
    does_not_overflow(page)


def _take_in(page: Page, upload: Path) -> None:
    """Uploads a chunk and waits for its check report."""
    page.set_input_files("#file input:not([webkitdirectory])", str(upload))
    expect(page.locator("#file")).to_contain_text(upload.stem)
    settle(page)
    page.click("#check")
    expect(page.locator("#stop-upload")).to_be_visible()
    expect(page.locator("#stop-upload")).to_be_hidden(timeout=UPDATE_MS)
    expect(page.locator("#check-verdict h2")).to_be_visible()
    settle(page)


def _teach(page: Page, strategy: str, options: dict[str, str]) -> None:
    """Chooses how, reads what it will take, starts, watches, and waits for the verdict."""
    page.click("#go-on")
    expect(page.locator("#strategy-explained")).to_contain_text("is recommended")
    expect(page.locator("#strategy-explained")).to_contain_text("Estimate")
    choose(page, "#strategy", strategy)
    page.locator("button.label-wrap").filter(has_text="Options").first.click()
    for name, value in options.items():
        page.locator("#options").get_by_label(name, exact=True).fill(value)
    settle(page)
    page.click("#start")
    expect(page.locator("#stop-update")).to_be_visible()
    expect(page.locator("#curves svg").first).to_be_attached(timeout=UPDATE_MS)
    expect(page.locator("#update-verdict h2")).to_be_visible(timeout=UPDATE_MS)
    settle(page)


def _shuffled(path: Path) -> Path:
    """Writes a chunk in which each picture has the captions of another."""
    scenes = [(scene, "flat", n) for n, scene in enumerate(list(all_scenes())[7::60][:60])]
    write_chunk(path, scenes=scenes, languages=["en", "de"], shuffle_captions=True)
    return path
