"""What a person sees of damage: a line at the top of both pages, with since when and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.home.workspace import Workspace
from app.learning import going_live
from tests.app.server.served import Served, make_home, served
from tests.app.ui.browsing import IN_A_BROWSER, does_not_overflow, open_page

pytestmark = IN_A_BROWSER


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server whose newest release has lost its vocabulary."""
    settings = make_home(tmp_path_factory.mktemp("damaged"))
    with Workspace.open(settings) as workspace:
        going_live.promote(workspace, "r2", why="test", by="test", force=True)
        version = workspace.home.versions / workspace.releases.release("r2").version
    (version / "vocabulary.json").write_text("{}")
    with served(settings, with_pages=True) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/admin/"])
def test_both_pages_say_that_what_is_live_is_damaged(damaged: Served, page: Page, path: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    open_page(page, f"{damaged.url}{path}")
    banner = page.locator("#degraded")
    expect(banner).to_contain_text("answers in its place")
    expect(banner).to_contain_text("vocabulary.json of version")
    expect(banner.locator("code")).to_have_text("perennial repair")
    does_not_overflow(page)
