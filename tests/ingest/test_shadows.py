"""Claims about shadows in the catalog: one at a time, and sums that add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.catalog import Catalog
from ingest.shadows import ShadowCount


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with Catalog.open(tmp_path / "catalog.sqlite") as catalog:
        yield catalog


def test_one_release_at_a_time_is_in_the_shadow_and_every_time_is_remembered(catalog: Catalog) -> None:
    first = catalog.shadows.start("r2", share=0.5, by="ada")
    assert first is not None
    assert catalog.shadows.start("r3", share=1.0, by="ada") is None
    assert catalog.shadows.active() == first
    assert not catalog.shadows.stop("r3", by="ada", why="")
    assert catalog.shadows.stop("r2", by="bob", why="seen enough")
    assert catalog.shadows.active() is None
    assert catalog.shadows.start("r2", share=1.0, by="ada") is not None
    again, before = catalog.shadows.all()
    assert (again.share, again.stopped) == (1.0, "")
    assert (before.stopped_by, before.why) == ("bob", "seen enough")
    assert before.stopped >= before.started


def test_sums_add_up_by_version_and_language(catalog: Catalog) -> None:
    record = catalog.shadows.start("r2", share=1.0, by="ada")
    assert record is not None
    german = ShadowCount("r2", "v1", "de", queries=2, overlap=1.5, same_first=1, moved=0.5, seconds=0.1)
    refused = replace(german, language="th", queries=0, overlap=0.0, same_first=0, refused=1)
    catalog.shadows.add([german, refused], shadow=record.id, dropped=3)
    catalog.shadows.add([german, replace(german, against="v5")], shadow=record.id, dropped=1)
    found = {(one.against, one.language): one for one in catalog.shadows.counts("r2")}
    assert found.keys() == {("v1", "de"), ("v1", "th"), ("v5", "de")}
    both = found["v1", "de"]
    assert (both.queries, both.overlap, both.same_first) == (4, 3.0, 2)
    assert both.seconds == pytest.approx(0.2)
    assert found["v1", "th"].refused == 1
    assert catalog.shadows.counts("r3") == []
    assert catalog.shadows.all()[0].dropped == 4
