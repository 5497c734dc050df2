"""What a person does in a browser: open a page, ask, choose, wait until it is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

CHROMIUM = Path("/usr/bin/chromium")
WAIT_MS = 60_000  # a busy machine answers late
JOB_MS = 180_000  # a new process loads the encoder; on a busy machine that takes long
EVENTS = (
    "/gradio_api/queue/",
    "/gradio_api/run/",
    "/pictures",
)  # what a person sets off, and what a page asks when it opens
UNANSWERED: list[str] = []  # addresses of Gradio's events, and of ours, on the page that is open
NARROW_OR_WIDE = [390, pytest.param(1440, marks=pytest.mark.slow)]
"""Widths of a page that is laid out anew on a telephone; the other tests of a file look at it on a desk."""
TILES = "#results > .tile:not(.blank)"
"""The pictures of the Search tab."""

IN_A_BROWSER = [
    pytest.mark.browser,
    # Gradio asks pandas for two things that pandas 3 has retired.
    pytest.mark.filterwarnings("ignore:The copy keyword is deprecated"),
    pytest.mark.filterwarnings("ignore:'future.no_silent_downcasting' is deprecated"),
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is missing; install Debian's chromium"),
]
expect.set_options(timeout=WAIT_MS)


def is_event(url: str) -> bool:
    return any(path in url for path in EVENTS)


def settle(page: Page) -> None:
    """Waits until Gradio has answered, and for a moment: what an answer shows may set off a further event."""
    silent = 0
    for _ in range(WAIT_MS // 100):
        silent = 0 if UNANSWERED or _is_searching(page) else silent + 1
        if silent == 3:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"still unanswered: {UNANSWERED}")


def _is_searching(page: Page) -> bool:
    """Whether the Search tab, which asks without Gradio, has yet to show what it asked for.

    Its script draws the list of pictures where Gradio has made room for it; before that has run, there is none.
    """
    room = page.locator("#pictures-here").count()
    return bool(room) and not page.locator("#results[aria-busy=false]").count()


def open_page(page: Page, url: str) -> None:
    """Opens a page and waits until it has asked for its menus and has them."""
    with page.expect_request(lambda request: is_event(request.url)):
        page.goto(url)
    settle(page)


def reopen(page: Page) -> None:
    """Opens the page again where it is."""
    with page.expect_request(lambda request: is_event(request.url)):
        page.reload()
    settle(page)


@contextmanager
def speaking(page: Page, locale: str) -> Iterator[None]:
    """The browser of a page has this language; a context of its own would make everything of Gradio's scripts anew."""
    session = page.context.new_cdp_session(page)
    agent = page.evaluate("navigator.userAgent")
    session.send("Emulation.setUserAgentOverride", {"userAgent": agent, "acceptLanguage": locale})
    session.send("Emulation.setLocaleOverride", {"locale": locale})
    yield
    session.detach()


def ask(page: Page, box: str, text: str) -> None:
    settle(page)
    page.fill(f"{box} textarea, {box} input:not([type=file])", text)
    page.keyboard.press("Enter")


def is_drawn(page: Page, selector: str) -> None:
    picture = page.locator(selector).first
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 0


def choose(page: Page, menu: str, text: str) -> None:
    settle(page)
    page.click(f"{menu} input")
    page.locator("[role=option]").filter(has_text=text).first.click()
    settle(page)


def unfold(page: Page, *labels: str) -> None:
    """Opens what is folded under these words."""
    for label in labels:
        settle(page)
        fold = page.locator("button.label-wrap:visible").filter(has_text=label).first
        if "open" not in (fold.get_attribute("class") or "").split():
            fold.click()
    settle(page)


def overflows(page: Page) -> bool:
    root = "document.documentElement"
    return bool(page.evaluate(f"{root}.scrollWidth > {root}.clientWidth"))


def does_not_overflow(page: Page) -> None:
    assert not overflows(page)
