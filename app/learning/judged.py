"""Finding a verdict again: the gate's whole report of a release or of an update's job, also of a rejected one."""

from dataclasses import replace
from itertools import islice

from app.desk.jobs import Taken, forecast_of
from app.desk.verdicts import Gate, Judged
from app.home.foreign import ORIGIN
from app.home.releases import ReleaseRecord
from app.home.store import ReleaseStore
from ingest.catalog import Catalog
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import joined, phrase


def judged_release(releases: ReleaseStore, name: str) -> Judged:
    """Returns the verdict on a release's version.

    A release that only added pictures was not judged itself: the verdict is that of the release whose version it has.

    Raises:
        UnknownRelease: there is none.
    """
    asked = releases.release(name)
    judged = _judged(releases, asked)
    gate = judged.manifest.gate
    if not gate and ORIGIN in judged.manifest.files:
        said = phrase("{release} came from another home; it went through no gate here.", release=asked.id)
        return Judged(asked.id, said, release=judged.id)
    if not gate:
        said = phrase("{release} went through no gate: nothing was learned.", release=asked.id)
        return Judged(asked.id, said, release=judged.id)
    chunk = judged.manifest.chunks[-1] if judged.manifest.chunks else None
    if judged.id == asked.id:
        return Judged(asked.id, _of(asked.id, chunk), asked.id, chunk=chunk, gate=Gate.read(gate))
    said = phrase(
        "{release} only added pictures. Its encoder is that of {judged}, which was judged.",
        release=asked.id,
        judged=judged.id,
    )
    return Judged(asked.id, said, judged.id, chunk=chunk, gate=Gate.read(gate))


def judged_job(catalog: Catalog, releases: ReleaseStore, name: str) -> Judged:
    """Returns the verdict on an update's job, and what it took; of an upload's job, that on the update that followed.

    Raises:
        UnknownJob: there is none.
    """
    job = catalog.job(name)
    follower = job.result.get("update")
    if job.kind != "update" and follower:
        found = judged_job(catalog, releases, str(follower))
        said = phrase("{job} took an upload in; its update is {update}.", job=job.id, update=found.job)
        return replace(found, asked=job.id, sentence=joined((said, found.sentence)))
    if job.kind != "update":
        return Judged(
            job.id, phrase("{job} is no update: it learned nothing, so nothing was judged.", job=job.id)
        )
    chunk, gate = job.arguments.get("chunk"), job.result.get("gate")
    if gate:
        release = job.result.get("release")
        told = {"job": job.id, "chunk": chunk}
        said = (
            phrase(
                "The gate's report of {job}, which learned from chunk {chunk}; it left release {release}.",
                release=release,
                **told,
            )
            if release
            else phrase(
                "The gate's report of {job}, which learned from chunk {chunk}; it left no release; what was live stays "
                "live.",
                **told,
            )
        )
        took = taken(releases, job)
        return Judged(job.id, said, release, job.id, chunk, Gate.read(gate), forecast_of(job), took)
    return Judged(job.id, _why_none(job), job=job.id, chunk=chunk)


def taken(releases: ReleaseStore, job: JobRecord) -> Taken | None:
    """Returns what an update that was judged took; None where its version is not told."""
    if not job.result.get("version"):
        return None
    added = releases.version_bytes(str(job.result["version"]))
    if job.result.get("release") and job.result.get("mode") not in (None, "none"):
        record = releases.readable(str(job.result["release"]))
        added += 0 if record is None else releases.generation_bytes(record)
    seconds = float(job.result.get("seconds") or 0.0)
    return Taken(seconds, int(job.progress.get("peak_bytes") or 0), added)


def _judged(releases: ReleaseStore, record: ReleaseRecord) -> ReleaseRecord:
    """Returns the release that brought a release's version."""
    for parent in islice(releases.line(record), 1, None):
        is_judged_anew = record.manifest.gate and record.manifest.gate != parent.manifest.gate
        if parent.version != record.version or is_judged_anew:
            break
        record = parent
    return record


def _of(name: str, chunk: str | None) -> str:
    if chunk is None:
        return phrase("The gate's report of {name}", name=name)
    return phrase("The gate's report of {name}, which learned from chunk {chunk}", name=name, chunk=chunk)


def _why_none(job: JobRecord) -> str:
    if job.state not in FINAL_STATES:
        return phrase("{job} is {state}: its report is here when it has ended.", job=job.id, state=job.state)
    ended = phrase("{job} ended before it was judged ({state}).", job=job.id, state=job.state)
    return joined((ended, job.error or ""))
