"""Finding a verdict again: the gate's whole report of a release or of an update's job, also of a rejected one."""

from __future__ import annotations

import re

from app.desk.verdicts import Gate, Judged
from app.home.store import ReleaseRecord, ReleaseStore
from ingest.catalog import Catalog
from ingest.records import FINAL_STATES, JobRecord

_JOB = re.compile(r"j[0-9]+")


def is_job(name: str) -> bool:
    """Whether a name is a job's and not a release's."""
    return _JOB.fullmatch(name) is not None


def judged_release(releases: ReleaseStore, name: str) -> Judged:
    """Returns the verdict on a release's version.

    A release that only added pictures was not judged itself: the verdict is that of the release whose version it has.

    Raises:
        UnknownRelease: there is none.
    """
    asked = releases.release(name)
    judged = _judged(releases, asked)
    gate = judged.manifest.gate
    if not gate:
        return Judged(asked.id, f"{asked.id} went through no gate: nothing was learned.", release=judged.id)
    chunk = judged.manifest.chunks[-1] if judged.manifest.chunks else None
    if judged.id == asked.id:
        return Judged(asked.id, _of(asked.id, chunk), asked.id, chunk=chunk, gate=Gate.read(gate))
    sentence = f"{asked.id} only added pictures. Its encoder is that of {judged.id}, which was judged."
    return Judged(asked.id, sentence, judged.id, chunk=chunk, gate=Gate.read(gate))


def judged_job(catalog: Catalog, name: str) -> Judged:
    """Returns the verdict on an update's job; of an upload's job, that on the update that followed it.

    Raises:
        UnknownJob: there is none.
    """
    job = catalog.job(name)
    follower = job.result.get("update")
    if job.kind != "update" and follower:
        found = judged_job(catalog, str(follower))
        said = f"{job.id} took an upload in; its update is {found.job}. {found.sentence}"
        return Judged(job.id, said, found.release, found.job, found.chunk, found.gate)
    if job.kind != "update":
        return Judged(job.id, f"{job.id} is no update: it learned nothing, so nothing was judged.")
    chunk, gate = job.arguments.get("chunk"), job.result.get("gate")
    if gate:
        release = job.result.get("release")
        where = f"it left release {release}" if release else "it left no release; what was live stays live"
        return Judged(job.id, f"{_of(job.id, chunk)}; {where}.", release, job.id, chunk, Gate.read(gate))
    return Judged(job.id, _why_none(job), job=job.id, chunk=chunk)


def past_updates(catalog: Catalog, *, among: int = 200) -> list[JobRecord]:
    """Returns the updates that were judged, newest first, of the last `among` jobs."""
    return [job for job in catalog.jobs(limit=among) if job.kind == "update" and job.result.get("gate")]


def _judged(releases: ReleaseStore, record: ReleaseRecord) -> ReleaseRecord:
    """Returns the release that brought a release's version."""
    while record.manifest.parent is not None:
        parent = releases.readable(record.manifest.parent)
        if parent is None or parent.version != record.version:
            return record
        if record.manifest.gate and record.manifest.gate != parent.manifest.gate:
            return record
        record = parent
    return record


def _of(name: str, chunk: str | None) -> str:
    return f"The gate's report of {name}" + (f", which learned from chunk {chunk}" if chunk else "")


def _why_none(job: JobRecord) -> str:
    if job.state not in FINAL_STATES:
        return f"{job.id} is {job.state}: its report is here when it has ended."
    return f"{job.id} ended before it was judged ({job.state}). {job.error or ''}".rstrip()
