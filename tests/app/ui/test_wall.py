"""The wall of queries before and after, on the Decide step: a person's own queries, and what moved is marked."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.ui.wall import remembered_searches, wall_line
from app.ui.words import ENGLISH
from tests.app.gate_reports import gate_report
from tests.app.server.served import Served, make_home, served
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    NARROW_OR_WIDE,
    choose,
    does_not_overflow,
    is_drawn,
    open_page,
    settle,
)

pytestmark = IN_A_BROWSER
QUERY = "a red boat on the beach"


def test_what_a_browser_remembers_is_read_and_nothing_else() -> None:
    sent = json.dumps(
        ["?text=two+red+boats&language=en", "?items=abc", 7, "?text=two++red boats", "?text=" + "x" * 999]
    )
    assert remembered_searches(sent) == [("two red boats", "en")]
    assert remembered_searches("?text=boats") == []
    assert remembered_searches('"?text=boats"') == []
    assert remembered_searches("") == []


def test_the_line_says_how_many_answers_changed() -> None:
    said = wall_line(3, 2, ENGLISH)
    assert said.startswith("2 of 3 queries that were tried get other pictures")
    assert "All 3 queries" in wall_line(3, 0, ENGLISH)
    assert wall_line(0, 0, ENGLISH) == ""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home with an update that waits for a person."""
    settings = make_home(tmp_path_factory.mktemp("wall"))
    with served(settings, with_pages=True) as running:
        workspace = running.serving.workspace
        waiting = workspace.releases.release("r3").id
        pictures = workspace.catalog.gallery_ids()[:3]
        report = gate_report("review", pictures=pictures, texts=("eine Katze im Schnee",))
        job = workspace.catalog.add_job("update", {"chunk": "0a1b"})
        result = {"verdict": "review", "gate": report.to_json(), "release": waiting, "commit": None}
        workspace.catalog.update_job(
            job.id, state="review", result={**result, "seconds": 9.0, "mode": "none"}
        )
        yield running


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_own_queries_are_shown_before_and_after(server: Served, page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{server.url}/admin/")
    remembered = json.dumps([f"?text={QUERY.replace(' ', '+')}", "?text=-&language=en"])
    page.evaluate("searches => localStorage.setItem('perennial.searches', searches)", remembered)
    open_page(page, f"{server.url}/admin/")
    choose(page, "#past", "Needs your decision")
    page.click("#read-past")
    first = page.locator("#update-wall section").first
    expect(first.locator("h3")).to_contain_text(QUERY)
    expect(first.locator("h3")).to_contain_text("searched for in this browser")
    expect(first.locator(".half")).to_have_count(2)
    assert first.locator(".half").nth(1).locator("li.moved b").count() > 0
    expect(page.locator("#update-wall-said")).to_contain_text("queries that were tried")
    is_drawn(page, "#update-wall li img")
    settle(page)
    does_not_overflow(page)
    # Before and after stand side by side where there is room, and below each other where there is none.
    tops = {
        first.locator(".half").nth(n).evaluate("half => half.getBoundingClientRect().top") for n in (0, 1)
    }
    assert len(tops) == (1 if width == 1440 else 2)
