"""An empty catalog and blob store, and a function that ingests into them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.harvest import Progress
from ingest.intake import IntakeOptions, ingest_source
from ingest.report import IntakeReport, ReportRow
from ingest.storage import Store


@dataclass
class Place:
    """A home's two ingest parts."""

    catalog: Catalog
    store: Store
    blobs: BlobStore

    def ingest(self, source: Path, *, progress: Progress | None = None, **options: Any) -> IntakeReport:
        options.setdefault("language", "en")
        return ingest_source(
            source,
            catalog=self.catalog,
            blobs=self.blobs,
            options=IntakeOptions(**options),
            progress=progress,
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with (
        Catalog.open(tmp_path / "home/catalog.sqlite") as catalog,
        Store.open(tmp_path / "home/blobs") as store,
    ):
        yield Place(catalog, store, BlobStore(store))


def rows_of(report: IntakeReport, outcome: str) -> list[ReportRow]:
    return [row for row in report.rows if row.outcome == outcome]
