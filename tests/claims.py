"""What docs/peers.md claims, and by which tests; with `--claims` a run fails when one of them did not pass in it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "peers.md"
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


@dataclass(frozen=True)
class Claim:
    """One row: a feature, what is said of it here, and the tests that show it, as `file.py::test`."""

    feature: str
    said: str
    shown_by: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it claims the feature without a reserve."""
        return not self.said.startswith("◐")


def claims(page: str) -> list[Claim]:
    """Returns the rows of the page's tables."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [
        Claim(row[0], row[-2], tuple("::".join(found) for found in _NAMED.findall(row[-1])))
        for row in rows
        if row[0] and row[-1] != "shown by"
    ]


def not_shown(made: Collection[Claim], passed: Collection[str]) -> list[str]:
    """Says which tests of whole claims have not passed, so that a skipped or deselected test shows nothing."""
    return [
        f"{claim.feature}: {test} did not pass, so docs/peers.md may not claim it; let it run, or mark the row ◐."
        for claim in made
        if claim.is_whole
        for test in claim.shown_by
        if test not in passed
    ]


class ClaimsHold:
    """Watches a run of the whole suite and fails it when a claim was not shown."""

    def __init__(self) -> None:
        self._passed: set[str] = set()
        self._missing: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            name = re.split(r"[\[@]", report.nodeid, maxsplit=1)[0]
            self._passed.add(name.removeprefix(f"{TESTS.name}/"))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._missing = not_shown(claims(PAGE.read_text(encoding="utf-8")), self._passed)
        if self._missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._missing:
            terminalreporter.write_line(line, red=True)
