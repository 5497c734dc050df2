"""How the events of the two pages are called."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from gradio.routes import App

from tests.app.server.served import make_home, served

SLOW = {"_all", "_changed", "_save_table", "_save_archive", "_drift", "_moves"}
FOR_PROGRAMS = {"search", "compare"}


@pytest.mark.parametrize("page", ["/", "/admin/"])
def test_only_what_is_slow_or_for_programs_waits_in_a_queue(tmp_path: Path, page: str) -> None:
    with served(make_home(tmp_path), with_pages=True) as running, running.client() as client:
        events = client.get(f"{page}config").json()["dependencies"]
    queued = {event["api_name"] for event in events if event["queue"]}
    assert queued <= SLOW | FOR_PROGRAMS
    assert sum(not event["queue"] for event in events) > 10


def test_a_page_that_nobody_uses_looks_seldom_whether_something_waits(tmp_path: Path) -> None:
    """Gradio's own pace is a thousand looks a second for each page: 4 % of a core for a server at rest."""
    settings = make_home(tmp_path, poll_seconds=3600)
    with served(settings, with_pages=True, with_jobs=False) as running, running.client() as client:
        client.get("/readyz")
        time.sleep(2)
        shares = []
        for _ in range(3):
            since = time.process_time()
            time.sleep(1)
            shares.append(time.process_time() - since)
    assert min(shares) < 0.015


def test_each_page_is_one_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left alone, Gradio makes four of each page, of which the last is mounted; that doubles the start of a server."""
    made: list[App] = []
    configure = App.configure_app

    def counted(self: App, *asked: Any) -> None:
        made.append(self)
        configure(self, *asked)

    monkeypatch.setattr(App, "configure_app", counted)
    with served(make_home(tmp_path), with_pages=True, with_jobs=False):
        assert len(made) == 2
