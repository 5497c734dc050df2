"""A person's word on chunks and pairs, for REST and for the pages: written down, and the job that follows is begun."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from app.desk.chunks import Decided, Withdrawn
from app.desk.errors import TooBusy
from app.jobs import requests
from app.learning import held_pairs, pictures, standing
from app.server.places import PATIENCE_SECONDS
from app.server.serving import Serving
from ingest.pair import ImageId
from ingest.records import ChunkRecord, JobRecord


def accept(serving: Serving, chunk: str, *, why: str, by: str, measure: bool = False) -> ChunkRecord:
    """Lets a chunk teach, and with `measure` measure (`app.learning.standing.accept`)."""
    return standing.accept(serving.workspace, chunk, why=why, by=by, measure=measure)


def withdraw(serving: Serving, chunk: str, *, why: str, by: str) -> tuple[Withdrawn, JobRecord | None]:
    """Withdraws a chunk, and starts taking its pictures out of search; returns what became of it, and that job."""
    gone = standing.withdraw(serving.workspace, chunk, why=why, by=by)
    serving.forget_others()
    return gone, _followed(serving, requests.withdrawal_job(serving.workspace, gone, by=by))


def remove(serving: Serving, chunk: str, *, why: str, by: str) -> JobRecord:
    """Withdraws a chunk, and starts rebuilding what is live from the last version before it."""
    job = serving.work.remove(chunk, why=why, by=by)
    serving.forget_others()
    return job


def decide(
    serving: Serving,
    chunk: str,
    *,
    by: str,
    accept: Sequence[int] = (),
    leave_out: Sequence[int] = (),
    take_out: Sequence[int] = (),
    language: str | None = None,
    why: str = "",
) -> tuple[Decided, JobRecord | None]:
    """Decides on single pairs (`app.learning.held_pairs.decide`); the job makes new pictures searchable.

    Raises:
        TooBusy: pairs are accepted while an upload is being taken in.
    """
    with _turn(serving, is_needed=bool(accept)):
        decided = held_pairs.decide(
            serving.workspace,
            chunk,
            by=by,
            accept=accept,
            leave_out=leave_out,
            take_out=take_out,
            language=language,
            why=why,
        )
    return decided, _followed(serving, requests.decision_job(serving.workspace, decided, by=by))


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


@contextmanager
def _turn(serving: Serving, *, is_needed: bool) -> Iterator[None]:
    """Waits until no upload is being taken in: accepted pairs get splits and groups as theirs do, one by one."""
    if not is_needed:
        yield
        return
    if not serving.work.intake.acquire(timeout=PATIENCE_SECONDS):
        raise TooBusy("An upload is being taken in; accept pairs when it has ended.")
    try:
        yield
    finally:
        serving.work.intake.release()


def _followed(serving: Serving, job: JobRecord | None) -> JobRecord | None:
    if job is not None:
        serving.work.follow(job)
    return job
