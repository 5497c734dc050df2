"""The job list: what is waiting, running and done, across processes."""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from ingest.engines import writing
from ingest.errors import BadOption, UnknownJob
from ingest.records import FINAL_STATES, JOB_STATES, JobRecord
from ingest.schema import jobs
from ingest.tables import TableQueries

_CHANGEABLE = frozenset({"state", "arguments", "progress", "result", "error", "pid", "started", "finished"})


def now() -> str:
    """Returns the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class JobQueries(TableQueries):
    """The part of `Catalog` that is about jobs."""

    def add_job(self, kind: str, arguments: dict[str, Any] | None = None) -> JobRecord:
        """Queues a job."""
        values = {"kind": kind, "state": "queued", "arguments": arguments or {}, "created": now()}
        statement = insert(jobs).values(progress={}, result={}, **values).returning(jobs.c.seq)
        with writing(self._engine) as connection:
            seq = connection.execute(statement).scalar_one()
        return self.job(f"j{seq}")

    def job(self, job_id: str) -> JobRecord:
        """Returns one job.

        Raises:
            UnknownJob: there is none with this id.
        """
        for row in self._rows(select(jobs).where(jobs.c.seq == _seq(job_id))):
            return _record(row)
        raise _unknown(job_id)

    def jobs(self, *, state: str | None = None, limit: int | None = None) -> list[JobRecord]:
        """Returns jobs, newest first."""
        query = select(jobs).order_by(jobs.c.seq.desc()).limit(limit)
        if state is not None:
            query = query.where(jobs.c.state == state)
        return [_record(row) for row in self._rows(query)]

    def update_job(self, job_id: str, *, only_from: str | None = None, **fields: Any) -> bool:
        """Changes fields of a job and returns whether it changed.

        With `only_from` the change happens only if the job is in that state now: of several workers that try
        to take a queued job, one succeeds. `started` and `finished` follow from the state.

        Raises:
            UnknownJob: there is none with this id.
            BadOption: a field or state that does not exist.
        """
        unknown = sorted(set(fields) - _CHANGEABLE)
        if unknown:
            raise BadOption(
                f"A job has no field {unknown[0]!r} that can change; it has {', '.join(sorted(_CHANGEABLE))}."
            )
        state = fields.get("state")
        if state is not None and state not in JOB_STATES:
            raise BadOption(f"{state!r} is no job state; the states are {', '.join(JOB_STATES)}.")
        values = dict(fields)
        if state == "running":
            values.setdefault("started", now())
        if state in FINAL_STATES:
            values.setdefault("finished", now())
        where = [jobs.c.seq == _seq(job_id)]
        if only_from is not None:
            where.append(jobs.c.state == only_from)
        with writing(self._engine) as connection:
            changed = connection.execute(update(jobs).where(*where).values(**values)).rowcount
        if not changed and only_from is None:
            raise _unknown(job_id)
        return bool(changed)


def teaching_job(connection: Connection, chunk_id: str) -> str | None:
    """Returns the id of a job that learns from a chunk, or is to; None when there is none."""
    waiting = select(jobs.c.seq, jobs.c.arguments).where(
        jobs.c.kind == "update", jobs.c.state.not_in(FINAL_STATES)
    )
    for seq, arguments in connection.execute(waiting):
        if arguments.get("chunk") == chunk_id:
            return f"j{seq}"
    return None


def _seq(job_id: str) -> int:
    digits = job_id.removeprefix("j")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise _unknown(job_id)
    return int(digits)


def _unknown(job_id: str) -> UnknownJob:
    return UnknownJob(f"There is no job {job_id[:40]!r}. `perennial status` lists the jobs.")


def _record(row: Row[Any]) -> JobRecord:
    values = row._asdict()
    seq = values.pop("seq")
    return JobRecord(id=f"j{seq}", **values)
