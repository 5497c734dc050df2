"""A person's word on chunks and pairs, for REST and for the pages: written down, and the job that follows is begun."""

from __future__ import annotations

from collections.abc import Sequence

from app.jobs import requests
from app.learning import pictures
from app.server.serving import Serving
from ingest.pair import ImageId
from ingest.records import JobRecord


def take_out(
    serving: Serving, names: Sequence[str], *, why: str, by: str
) -> tuple[list[ImageId], JobRecord | None]:
    """Takes single pictures out of everything, search at once; returns those that were not out, and the job."""
    gone = pictures.take_out(serving.workspace, names, by=by, why=why)
    return gone, _regathered(serving, gone, "were taken out", by)


def put_back(serving: Serving, names: Sequence[str], *, by: str) -> tuple[list[ImageId], JobRecord | None]:
    """Puts single pictures back; returns them, and the job after which search has them all again."""
    back = pictures.put_back(serving.workspace, names)
    return back, _regathered(serving, back, "came back", by)


def _regathered(serving: Serving, changed: Sequence[ImageId], what: str, by: str) -> JobRecord | None:
    if not changed:
        return None
    serving.hide()
    why = f"{len(changed)} pictures {what}"
    return _followed(serving, requests.pictures_job(serving.workspace, why=why, by=by))


def _followed(serving: Serving, job: JobRecord | None) -> JobRecord | None:
    if job is not None:
        serving.work.follow(job)
    return job
