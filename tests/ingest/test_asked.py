"""Claims about counting languages: counts add up by day, and nothing else is kept."""

from __future__ import annotations

import sqlite3
from datetime import date
from pathlib import Path

import pytest

from ingest.asked import AskedRecord
from ingest.catalog import Catalog

FIRST, SECOND = date(2026, 3, 1), date(2026, 3, 2)


@pytest.mark.sqlite
def test_counts_add_up_and_the_most_asked_language_comes_first(tmp_path: Path) -> None:
    with Catalog.open(tmp_path / "catalog.sqlite") as catalog:
        catalog.asked.add(FIRST, {"en": (2, 0), "th": (5, 5)})
        catalog.asked.add(FIRST, {"en": (1, 1)})
        catalog.asked.add(SECOND, {"en": (4, 0)})
        catalog.asked.add(SECOND, {})
        assert catalog.asked.since(FIRST) == [AskedRecord("en", 7, 1), AskedRecord("th", 5, 5)]
        assert catalog.asked.since(SECOND) == [AskedRecord("en", 4, 0)]
    connection = sqlite3.connect(tmp_path / "catalog.sqlite")
    columns = [row[1] for row in connection.execute("PRAGMA table_info(asked)")]
    connection.close()
    assert sorted(columns) == ["day", "language", "queries", "unanswered"]
