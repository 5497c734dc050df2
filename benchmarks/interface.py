"""Measures what the pages cost and writes docs/results/interface.md.

    python benchmarks/interface.py [--pictures 100000] [--queries 60] [--home FOLDER]

A home with that many pictures is made: drawn vectors, one small thumbnail each, captions; the encoder, the catalog, the
index and the server are the real ones. The page is driven in Chromium, and asked by turns with the same query over REST
from the same browser. Times on a clock grow with whatever else the machine does, so the server's own processor time is
counted too, and a bar on the clock is judged on a quiet machine alone.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from interface_home import make_home
from interface_parts import SHOWN, Load, Taken, first_load, opened, paging, running, searches
from playwright.sync_api import sync_playwright

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "interface.md"
UI_BAR_MS, LOAD_BAR_BYTES, PAGING_BAR = 30.0, 500_000, 1.5
PAGES = 200  # of one answer, asked for one after another
WARM = slice(5, None)  # the first queries fill caches
FIRST_PAGES, LAST_PAGES = slice(1, 21), slice(-20, None)
THINGS = ("boat", "house", "cat", "tree", "bird", "car", "moon", "dog")
PLACES = ("on the beach", "in the snow", "at night", "in a city", "by the sea", "at sunset", "in the desert")


@dataclass(frozen=True)
class Measured:
    """All that was measured over one home."""

    pictures: int
    search_load: Load
    admin_load: Load
    rest: Taken
    drawn: Taken
    pages: Taken
    busy: float  # the load average when the first measurement began


def main() -> None:
    """Makes the home, measures all three, and writes the report."""
    asked = argparse.ArgumentParser(description="Measures what the pages cost.")
    asked.add_argument("--pictures", type=int, default=100_000)
    asked.add_argument("--queries", type=int, default=60)
    asked.add_argument("--report", type=Path, default=REPORT)
    asked.add_argument(
        "--home", type=Path, help="A folder for the home: kept, and used again when it is there."
    )
    asked.add_argument("--only-home", action="store_true", help="Makes the home and measures nothing.")
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.home or Path(scratch)
        home = folder / "home"
        if not home.exists():
            make_home(folder, options.pictures)
        if options.only_home:
            return
        measured = _measure(home, options.pictures, queries(options.queries))
    options.report.write_text(report(measured), encoding="utf-8")
    print(options.report.read_text(encoding="utf-8"))


def queries(count: int) -> list[str]:
    """Returns that many different queries, whose answers differ."""
    return [f"{n % 9 + 1} {THINGS[n % 8]}s {PLACES[n % 7]} {n}" for n in range(count)]


def _measure(home: Path, pictures: int, asked: list[str]) -> Measured:
    with running(home) as server:
        time.sleep(20)  # what a server does in the background when it starts, and what making the home left
        busy = os.getloadavg()[0]
        pages = paging(server, PAGES)
        with sync_playwright() as playwright:
            with opened(playwright) as page:
                admin = first_load(page, f"{server.url}/admin/", "#file")
            with opened(playwright) as page:
                search = first_load(page, server.url, "#query input[type=search]")
                rest, drawn = searches(page, server, asked)
    return Measured(pictures, search, admin, rest, drawn, pages, busy)


def report(measured: Measured) -> str:
    """Returns the report."""
    rows = "\n".join(f"| {' | '.join(row)} |" for row in _rows(measured))
    facts = "\n".join(f"- {fact}" for fact in _facts(measured))
    return f"""# What the pages cost

Written by `python benchmarks/interface.py`; do not edit.

| what | measured | bar | holds |
| --- | --- | --- | --- |
{rows}

{facts}
"""


def _rows(measured: Measured) -> list[tuple[str, str, str, str]]:
    (rest, rest_cpu), (page, page_cpu) = measured.rest.of(WARM), measured.drawn.of(WARM)
    near, deep = measured.pages.of(FIRST_PAGES)[1], measured.pages.of(LAST_PAGES)[1]
    is_quiet = measured.busy <= 0.5 * (os.cpu_count() or 1)
    rows = [
        (
            "the page adds to a search over REST, clock, p50",
            f"{page - rest:.0f} ms",
            f"<= {UI_BAR_MS:.0f} ms",
            _judged(page - rest <= UI_BAR_MS, is_quiet=is_quiet),
        ),
        (
            "the page adds to a search over REST, the server's processor time, mean",
            f"{page_cpu - rest_cpu:.0f} ms",
            f"<= {UI_BAR_MS:.0f} ms",
            _judged(page_cpu - rest_cpu <= UI_BAR_MS),
        ),
    ]
    for name, load in (("Search", measured.search_load), ("Update", measured.admin_load)):
        ours = sum(load.ours.values())
        what = f"first load of the page with {name}, beyond Gradio's own files"
        rows.append(
            (what, f"{ours / 1e3:.0f} kB", f"< {LOAD_BAR_BYTES / 1e3:.0f} kB", _judged(ours < LOAD_BAR_BYTES))
        )
    what = (
        f"pages {PAGES - 19} to {PAGES} of an answer against pages 2 to 21, {measured.pictures:,} pictures, "
        "the server's processor time"
    )
    rows.append((what, f"{deep / near:.2f}x", f"<= {PAGING_BAR}x", _judged(deep <= PAGING_BAR * near)))
    return rows


def _facts(measured: Measured) -> list[str]:
    (rest, rest_cpu), (page, page_cpu) = measured.rest.of(WARM), measured.drawn.of(WARM)
    (near, near_cpu), (deep, deep_cpu) = measured.pages.of(FIRST_PAGES), measured.pages.of(LAST_PAGES)
    load = measured.search_load
    return [
        f"A search on the page, from Enter to the new pictures: p50 {page:.0f} ms of "
        f"{len(measured.drawn.clock[WARM])} queries, {page_cpu:.0f} ms of the server's processor time; the same over "
        f"REST from the same browser, by turns: p50 {rest:.0f} ms and {rest_cpu:.0f} ms. {measured.pictures:,} "
        f"pictures, {SHOWN} a page.",
        f"First load of the page with Search, as it came over the line: {len(load.ours)} files of ours with "
        f"{sum(load.ours.values()):,} bytes, {len(load.gradios)} of Gradio's with {sum(load.gradios.values()):,}.",
        f"One answer of {PAGES} pages, one after another: first pages {near:.0f} ms, last {deep:.0f} ms; processor "
        f"time {near_cpu:.0f} and {deep_cpu:.0f} ms.",
        f"{platform.machine()}, {os.cpu_count()} CPU cores, load average {measured.busy:.1f} before, "
        f"{os.getloadavg()[0]:.1f} with the browser at the end, Python {platform.python_version()}, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}.",
    ]


def _judged(holds: bool, *, is_quiet: bool = True) -> str:
    return ("yes" if holds else "no") if is_quiet else "not judged: the machine was busy"


if __name__ == "__main__":
    main()
