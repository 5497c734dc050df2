"""A person looks at held and rejected pairs and decides on some, on the Update and on the Data tab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.home.workspace import Workspace
from app.ui import held_words
from app.ui.words import Words
from ingest.findings import Example, Finding, Outcome
from tests.app.gate_reports import HOSTILE
from tests.app.held_upload import put_in
from tests.app.server.served import Served, make_home, served
from tests.app.ui.axe import broken_rules
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    settle,
    speaking,
    unfold,
)

pytestmark = IN_A_BROWSER
FOLDED = "Held and rejected pairs, with their pictures"
MARKUP = "**2** <3> [4](5) `6`"  # without letters, or its language would be told
SILENT = (MARKUP, *(str(1000 + n) for n in range(1, 14)))


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home with a chunk of which 14 pairs wait."""
    folder = tmp_path_factory.mktemp("held")
    settings = make_home(folder)
    with Workspace.open(settings) as workspace:
        put_in(workspace, folder, seed=400, silent=SILENT)
    with served(settings, with_pages=True) as running:
        yield running


@pytest.mark.parametrize(
    ("width", "theme"), [pytest.param(1440, "light", marks=pytest.mark.slow), (390, "dark")]
)
def test_the_check_report_shows_the_pictures_of_held_and_rejected_pairs(
    held: Served, page: Page, width: int, theme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    open_page(page, f"{held.url}/admin/?__theme={theme}")
    choose(page, "#known", ".zip")
    page.click("#use-known")
    unfold(page, FOLDED)
    cards = page.locator("#aside-cards li")
    expect(cards).to_have_count(12)
    is_drawn(page, "#aside-cards img")
    expect(cards.first).to_contain_text(MARKUP)
    expect(cards.first).to_contain_text("Its language is not given")
    assert page.title() == "Perennial · teaching"
    settle(page)
    page.click("#aside-after")
    expect(cards).to_have_count(2)
    expect(page.locator("#aside-line")).to_contain_text("13 to 14 of 14")
    settle(page)
    page.locator("#aside-which").get_by_text("Rejected (1)").click()
    expect(cards).to_contain_text(["The caption is empty"])
    is_drawn(page, "#aside-cards img")
    expect(page.locator("#aside-accept")).to_be_hidden()
    settle(page)
    does_not_overflow(page)
    assert broken_rules(page) == []


def test_the_pairs_and_what_is_said_of_them_speak_the_browsers_language(held: Served, page: Page) -> None:
    say = Words("de").said
    with speaking(page, "de-AT"):
        open_page(page, f"{held.url}/admin/")
        choose(page, "#known", ".zip")
        page.click("#use-known")
        unfold(page, say(FOLDED))
        expect(page.locator("#aside-which")).to_contain_text("Wartet auf dein Wort (")
        expect(page.locator("#aside-cards li").first).to_contain_text("Ihre Sprache ist nicht angegeben")
        expect(page.locator("#aside")).to_contain_text(Words("de").said(held_words.HELP)[:30])
        settle(page)
        page.click("#aside-accept")
        expect(page.locator("#aside-said")).to_have_text(
            say("No pair is named: say which to accept, and which to leave out.")
        )


def test_a_person_accepts_and_leaves_out_single_pairs(held: Served, page: Page) -> None:
    catalog = held.serving.workspace.catalog
    chunk = catalog.chunks()[-1].id
    open_page(page, f"{held.url}/admin/")
    page.get_by_role("tab", name="Data").click()
    page.locator("#chunks td").first.click()
    expect(page.locator("#data-aside-cards li")).to_have_count(12)
    settle(page)
    page.click("#data-aside-accept")
    expect(page.locator("#data-aside-said")).to_contain_text("No pair is named")
    settle(page)
    page.locator("#data-aside-chosen label").filter(has_text="1001").click()
    page.click("#data-aside-accept")
    expect(page.locator("#data-aside-said")).to_contain_text("states no language")
    settle(page)
    page.fill("#data-aside-language input, #data-aside-language textarea", "de")
    page.fill("#data-aside-why input, #data-aside-why textarea", HOSTILE)
    page.click("#data-aside-accept")
    expect(page.locator("#data-aside-said")).to_contain_text(f"belongs to chunk {chunk} now")
    assert catalog.chunk(chunk).languages == {"de": 1, "en": 2}
    settle(page)
    page.locator("#data-aside-chosen label").filter(has_text="1002").click()
    page.click("#data-aside-leave")
    expect(page.locator("#data-aside-said")).to_contain_text("left out")
    settle(page)
    page.locator("#data-aside-which").get_by_text("Decided (2)").click()
    decided = page.locator("#data-aside-cards li")
    expect(decided).to_have_count(2)
    expect(decided.first).to_contain_text("accepted by local")
    expect(decided.first).to_contain_text(HOSTILE)
    expect(decided.last).to_contain_text("left out by local")
    assert page.title() == "Perennial · teaching"
    assert catalog.aside.counts(chunk) == {"waiting": 12, "accepted": 1, "left_out": 1, "rejected": 1}


def test_a_person_takes_out_what_the_checks_name(held: Served, page: Page) -> None:
    catalog = held.serving.workspace.catalog
    chunk = catalog.chunks()[-1].id
    boat = next(pair for pair in catalog.pairs(chunk=chunk) if pair.text == "a red boat")
    example = Example(boat.image_id, "en", boat.text, HOSTILE)
    for job in catalog.jobs():
        held.ended(job.id)  # those that check the chunk again would say what they found
    catalog.set_findings(chunk, [Finding("exchanged", Outcome.HOLD, "Words were exchanged.", {}, (example,))])
    open_page(page, f"{held.url}/admin/")
    choose(page, "#known", ".zip")
    page.click("#use-known")
    unfold(page, FOLDED)
    page.locator("#aside-which").get_by_text("Flagged by the checks (1)").click()
    expect(page.locator("#aside-cards li")).to_contain_text([HOSTILE])
    expect(page.locator("#aside-accept")).to_be_hidden()
    settle(page)
    page.locator("#aside-chosen label").filter(has_text="a red boat").click()
    page.click("#aside-leave")
    expect(page.locator("#aside-said")).to_contain_text("taken out of chunk")
    assert "a red boat" not in {pair.text for pair in catalog.pairs(chunk=chunk)}
    expect(page.locator("#aside-which")).to_contain_text("Flagged by the checks (0)")


def test_a_person_names_the_domain_of_a_chunk_that_nobody_taught(held: Served, page: Page) -> None:
    catalog = held.serving.workspace.catalog
    chunk = catalog.chunks()[-1].id
    catalog.set_domain(catalog.ids_where(chunks=[chunk]), "domain-2")
    pictures = catalog.chunk(chunk).images
    page.set_viewport_size({"width": 390, "height": 900})
    open_page(page, f"{held.url}/admin/")
    page.get_by_role("tab", name="Data").click()
    page.locator("#chunks td").first.click()
    expect(page.locator("#domain-old input")).to_have_value("domain-2")
    settle(page)
    page.fill("#domain-new input, #domain-new textarea", "a/b")
    page.click("#domain-rename")
    expect(page.locator("#domain-said")).to_contain_text("a/b")
    assert catalog.chunk(chunk).domains == {"domain-2": pictures}
    settle(page)
    page.fill("#domain-new input, #domain-new textarea", "Ink drawings")
    page.click("#domain-rename")
    expect(page.locator("#domain-said")).to_contain_text(
        f"{pictures} pictures of domain-2 are of ink-drawings now"
    )
    expect(page.locator("#domain-old input")).to_have_value("ink-drawings")
    expect(page.locator("#chunks")).to_contain_text("ink-drawings")
    assert catalog.chunk(chunk).domains == {"ink-drawings": pictures}
    settle(page)
    does_not_overflow(page)
    # Gradio names its box that ticks all pairs by a title alone.
    assert [rule for rule in broken_rules(page) if "select-all-checkbox" not in rule] == []
