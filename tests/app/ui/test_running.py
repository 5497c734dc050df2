"""Claims about which of several jobs a page shows that are not over."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gradio as gr
import pytest

from app.home.workspace import Workspace
from app.server.security import ANYONE
from app.server.served import Served
from app.server.serving import Serving
from app.ui.access import Access, Visit
from app.ui.running import open_job, unfinished
from app.ui.upload import UploadStep
from app.ui.words import ENGLISH
from ingest.catalog import Catalog
from tests.app.server.served import make_home


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


async def _drawn(serving: Serving) -> UploadStep:
    with gr.Blocks() as blocks:  # which needs a loop
        step = UploadStep(Access(serving, None))
        step.connect(blocks, [step.said], lambda visit, chunk: {}, {})
    return step


def test_an_upload_that_nobody_begins_again_lets_another_be_sent(tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        serving = Serving(workspace)
        with ThreadPoolExecutor() as elsewhere:  # this thread may have a loop, of a browser test before
            step = elsewhere.submit(asyncio.run, _drawn(serving)).result()
        visit = Visit(Served(serving, ANYONE), ENGLISH, "")
        job = workspace.catalog.add_job("ingest")
        workspace.catalog.update_job(job.id, state="interrupted", error="Its process was killed.")
        serving.work.followed.add(job.id)
        assert step.timer not in step._watch(visit, job.id)  # it is begun again
        assert step._resume(visit)[step.check]["interactive"] is False
        serving.work.followed.discard(job.id)
        assert step._watch(visit, job.id)[step.check]["interactive"] is True
        assert "killed" in step._watch(visit, job.id)[step.said]
        assert list(step._resume(visit)) == [step.check]
