"""Claims about which of several jobs a page shows that are not over."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.ui.running import open_job, unfinished
from ingest.catalog import Catalog


@pytest.mark.parametrize("other", ["queued", "interrupted"])
def test_the_job_at_work_is_shown_before_older_ones_that_wait(tmp_path: Path, other: str) -> None:
    with Catalog.open(tmp_path / "catalog.sqlite") as catalog:
        waiting, at_work, last = (catalog.add_job("update", {}) for _ in range(3))
        catalog.update_job(waiting.id, state=other)
        catalog.update_job(at_work.id, state="running")

        def shown() -> list[str]:
            found = open_job(catalog.jobs()), unfinished(catalog.jobs(), "update")
            return [one.id for one in found if one is not None]

        assert shown() == [at_work.id] * 2
        catalog.update_job(at_work.id, state="succeeded")
        first = waiting if other == "queued" else last  # what was interrupted waits for a person
        assert shown() == [first.id] * 2
