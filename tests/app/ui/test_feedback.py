"""The Feedback tab in a real browser: a canary of a vote, and the chunk that thumbs propose."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.app.server.served import Served
from tests.app.ui.browsing import (
    IN_A_BROWSER,
    NARROW_OR_WIDE,
    does_not_overflow,
    is_drawn,
    open_page,
    reopen,
    settle,
)
from tests.app.ui.visible import is_seen

pytestmark = IN_A_BROWSER


@pytest.fixture
def judging(measured: Served, page: Page) -> Page:
    """The tab of a home in which somebody judged."""
    with measured.client() as client:
        hit = client.post("/v1/search", json={"text": "a red house", "k": 1}).json()["hits"][0]["id"]
        said: list[dict[str, Any]] = [
            {"query": "<b>my hut</b>", "language": "en", "release": "r1", "image": hit, "verdict": "up"},
            {"query": "a wrong hut", "language": "en", "release": "r1", "image": hit, "verdict": "up"},
            {"query": "three houses", "language": "en", "a": "r1", "b": "r2", "choice": "b"},
        ]
        for body in said:
            assert client.post("/v1/feedback", json=body).status_code == 201
    open_page(page, f"{measured.url}/admin/")
    page.get_by_role("tab", name="Feedback").click()
    expect(page.locator("#feedback-votes svg")).to_have_count(1)
    settle(page)
    is_seen(page.locator("#feedback-votes svg :is(.interval, .point)"))
    return page


@pytest.mark.parametrize("width", NARROW_OR_WIDE)
def test_a_vote_becomes_a_canary_with_the_picture_that_a_person_chooses(
    measured: Served, judging: Page, width: int
) -> None:
    page = judging
    page.set_viewport_size({"width": width, "height": 900})
    page.locator("#feedback-table td").filter(has_text="three houses").first.click()
    expect(page.locator("#feedback-pictures .thumbnail-item").nth(1)).to_be_visible()
    settle(page)
    is_drawn(page, "#feedback-pictures img")
    page.click("#feedback-pin")
    expect(page.locator("#feedback-about")).to_contain_text("Choose the right picture below first")
    settle(page)
    page.locator("#feedback-pictures .thumbnail-item").nth(1).click()
    settle(page)
    page.click("#feedback-pin")
    expect(page.locator("#feedback-about")).to_contain_text("is a canary in English")
    assert "three houses" in {pin.query for pin in measured.serving.workspace.catalog.pins()}
    does_not_overflow(page)


def test_a_person_leaves_a_pair_out_and_takes_the_others_in_as_a_held_chunk(
    measured: Served, judging: Page
) -> None:
    page = judging
    pairs = page.locator("#proposal-pairs label")
    expect(pairs.filter(has_text="<b>my hut</b>")).to_have_count(1)
    pairs.filter(has_text="a wrong hut").locator("input").uncheck()
    settle(page)
    page.click("#proposal-take")
    expect(page.locator("#proposal-said")).to_contain_text("as a chunk")
    workspace = measured.serving.workspace
    job = measured.ended(workspace.catalog.jobs()[0].id)
    assert job.state == "succeeded", job.error
    chunk = workspace.catalog.chunks()[-1]
    assert chunk.standing == "held"
    texts = {pair.text for pair in workspace.catalog.pairs(chunk=chunk.id)}
    assert "<b>my hut</b>" in texts
    assert "a wrong hut" not in texts


def test_a_canary_is_taken_away(measured: Served, judging: Page) -> None:
    page, catalog = judging, measured.serving.workspace.catalog
    catalog.set_pin("<i>a canary</i>", "en", catalog.gallery_ids()[0])
    reopen(page)
    page.get_by_role("tab", name="Feedback").click()
    settle(page)
    page.click("#canary-list button.label-wrap")
    expect(page.locator("#canary-remove")).to_be_disabled()
    page.locator("#canaries td").filter(has_text="<i>a canary</i>").first.click()
    expect(page.locator("#canary-said")).to_contain_text("“<i>a canary</i>” in English")
    settle(page)
    page.click("#canary-remove")
    expect(page.locator("#canary-said")).to_contain_text("is no longer a canary")
    expect(page.locator("#canaries")).not_to_contain_text("a canary")
    assert "<i>a canary</i>" not in {one.query for one in catalog.pins()}
    does_not_overflow(page)
