"""axe-core, the engine behind browsers' own audits."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_ENGINE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def broken_rules(page: Page) -> list[str]:
    """Returns every rule that the page breaks as it is now, of any impact, and where."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_ENGINE)
    found: list[dict[str, Any]] = page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations'], elementRef: false})).violations"
    )
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:200]} {node['failureSummary'][:300]}"
        for one in found
        for node in one["nodes"][:3]
    ]
