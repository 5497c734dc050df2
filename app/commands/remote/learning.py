"""Verbs that change what a server has learned: ingest, update, remove."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from app.commands.learning import JobFailed, checked_options, job_document, show_end, show_forecast
from app.commands.option_records import IngestOptions, UpdateOptions, with_options
from app.commands.options import ChunkArgument, ReasonOption
from app.commands.remote.connection import connected, watch
from app.commands.terminal import JsonOption, show
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.client import Client
    from ingest.records import ChunkRecord, JobRecord


@with_options
def ingest(context: typer.Context, asked: IngestOptions, is_json: JsonOption = False) -> None:
    """Upload a chunk of pictures and captions, and make it searchable."""
    from app.words import messages

    columns = asked.columns()
    with connected(context) as client:
        with _packed(asked.source) as file:
            job = client.add_chunk(
                file,
                name=asked.name,
                language=asked.language,
                domain=asked.domain,
                columns=columns,
                in_gallery=asked.gallery,
            )
        done, chunk = _taken_in(client, job, is_json=is_json)
        if asked.report is not None:
            asked.report.write_bytes(client.chunk_report(chunk.id))
    said = messages.outcome(done)
    if chunk.standing == "held":
        said.append(f"It is held and teaches nothing yet: {messages.plain(chunk.standing_why)}")
    elif chunk.standing == "new":
        said.append(f"Teach it: `update --chunk {chunk.id}`.")
    show(is_json, {"job": done.id, "state": done.state, "standing": chunk.standing, **done.result}, *said)


@with_options
def update(context: typer.Context, asked: UpdateOptions, is_json: JsonOption = False) -> None:
    """Learn from a chunk; what passes the gate goes live."""
    options = checked_options(asked)
    with connected(context) as client:
        if asked.cancel is not None:
            stopped = client.cancel(asked.cancel)
            said = f"{stopped.id} is {stopped.state}. `--resume {stopped.id}` goes on with it."
            show(is_json, job_document(stopped), said)
            return
        if asked.dry_run:
            _forecast(client, asked, options, is_json=is_json)
            return
        done = watch(client, _started(client, asked, options, is_json=is_json), is_json=is_json)
    _finish(done, is_json=is_json)


def _forecast(client: Client, asked: UpdateOptions, options: dict[str, str], *, is_json: bool) -> None:
    from app.desk.jobs import Forecast

    found = client.forecast(str(asked.chunk), strategy=asked.strategy, options=options)
    show_forecast(Forecast.from_json(found), found["recommended"], found["why"], is_json=is_json)


def _started(client: Client, asked: UpdateOptions, options: dict[str, str], *, is_json: bool) -> JobRecord:
    """Starts learning or goes on with it, and returns the job."""
    if asked.resume is not None:
        return client.resume(asked.resume)
    chunk = str(asked.chunk)
    if asked.source is not None:
        with _packed(asked.source) as file:
            job = client.add_chunk(file, language=asked.language, domain=asked.domain)
        chunk = _taken_in(client, job, is_json=is_json)[1].id
    how = {"strategy": asked.strategy, "options": options, "seed": asked.seed}
    return client.update(chunk, **how, promote=asked.promote, why=asked.why)


def remove(
    context: typer.Context, chunk: ChunkArgument, why: ReasonOption, is_json: JsonOption = False
) -> None:
    """Withdraw a chunk, and rebuild what is live from the last version before it."""
    with connected(context) as client:
        done = watch(client, client.remove(chunk, why=why), is_json=is_json)
    _finish(done, is_json=is_json)


def _finish(done: JobRecord, *, is_json: bool) -> None:
    show_end(done, otherwise=f"Job {done.id} is {done.state}.", is_json=is_json)


def _taken_in(client: Client, job: JobRecord, *, is_json: bool) -> tuple[JobRecord, ChunkRecord]:
    """Waits until an upload is in; returns its job and its chunk."""
    done = watch(client, job, is_json=is_json)
    if done.state != "succeeded":
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    return done, client.chunk(done.result["report"]["chunk_id"])


@contextmanager
def _packed(source: Path) -> Iterator[Path]:
    """Yields what can be sent: a file as it is, a folder as a zip of it; stored, as pictures are compressed already."""
    if not source.exists():
        raise UsageProblem(f"There is nothing at {source}.")
    if not source.is_dir():
        yield source
        return
    with tempfile.TemporaryDirectory() as scratch:
        packed = Path(scratch) / f"{source.resolve().name}.zip"
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(source.rglob("*")):
                if path.is_file() and not path.is_symlink():
                    archive.write(path, path.relative_to(source))
        yield packed
