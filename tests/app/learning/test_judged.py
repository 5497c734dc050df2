"""Finding a verdict again: by release, by job, and for what was never judged itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.verdicts import Gate, Judged
from app.home.workspace import Workspace
from app.learning import judged
from app.learning.judged import judged_release
from ingest.errors import UnknownJob
from tests.app.gate_reports import gate_report
from tests.app.server.served import make_home


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as opened:
        yield opened


def _ended(workspace: Workspace, kind: str, state: str, **result: object) -> str:
    job = workspace.catalog.add_job(kind, {"chunk": "0a1b2c3d4e5f"})
    workspace.catalog.update_job(job.id, state=state, result=result)
    return job.id


def judged_job(workspace: Workspace, job: str) -> Judged:
    return judged.judged_job(workspace.catalog, workspace.releases, job)


def test_a_rejected_update_keeps_its_whole_report(workspace: Workspace) -> None:
    report = gate_report("reject")
    job = _ended(workspace, "update", "rejected", verdict="reject", gate=report.to_json(), release=None)
    found = judged_job(workspace, job)
    assert found.gate == Gate.read(report.to_json())
    assert found.release is None
    assert "left no release" in found.sentence
    assert "0a1b2c3d4e5f" in found.sentence


def test_an_uploads_job_leads_to_the_update_that_followed_it(workspace: Workspace) -> None:
    update = _ended(workspace, "update", "rejected", gate=gate_report("reject").to_json())
    upload = _ended(workspace, "ingest", "succeeded", update=update)
    found = judged_job(workspace, upload)
    assert (found.asked, found.job) == (upload, update)
    assert found.gate is not None
    alone = judged_job(workspace, _ended(workspace, "ingest", "succeeded"))
    assert alone.gate is None
    assert "is no update" in alone.sentence


def test_a_job_that_was_not_judged_says_why(workspace: Workspace) -> None:
    queued = workspace.catalog.add_job("update", {"chunk": "0a1b"})
    assert "is queued" in judged_job(workspace, queued.id).sentence
    workspace.catalog.update_job(queued.id, state="failed", error="It went wrong.")
    assert "It went wrong." in judged_job(workspace, queued.id).sentence
    with pytest.raises(UnknownJob):
        judged_job(workspace, "j99")


def test_a_release_that_only_added_pictures_names_the_one_that_was_judged(workspace: Workspace) -> None:
    second = workspace.releases.release("r2")
    for gate in (second.manifest.gate, None):  # homes of an older Perennial handed the verdict down
        added = workspace.releases.publish_release(
            second.manifest.successor(second.id, gate=gate, mode="delta")
        )
        found = judged_release(workspace.releases, added)
        assert (found.asked, found.release) == (added, second.id)
        assert f"is that of {second.id}" in found.sentence
        assert second.manifest.gate is not None
        assert found.gate == Gate.read(second.manifest.gate)
    assert judged_release(workspace.releases, "r2").sentence == f"The gate's report of {second.id}"
    assert judged_release(workspace.releases, "r1").gate is None
