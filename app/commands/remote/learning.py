"""Verbs that change what a server has learned: ingest, update, remove."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from app.commands.learning import EXIT_CODES, NO_DRY_SOURCE, JobFailed, show_forecast
from app.commands.options import (
    CancelOption,
    ChunkArgument,
    DryRunOption,
    GalleryOption,
    MappingOption,
    NameOption,
    PromoteOption,
    ReasonOption,
    ReportOption,
    SeedOption,
    SourceArgument,
    StatedDomain,
    StatedLanguage,
    StrategyOption,
    StrategyOptions,
    TaughtChunk,
    TaughtSource,
    WhyOption,
)
from app.commands.remote.connection import connected, watch
from app.commands.terminal import JsonOption, pairs_of, show
from app.errors import UsageProblem

if TYPE_CHECKING:
    from app.client import Client
    from ingest.records import ChunkRecord, JobRecord


def ingest(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    source: SourceArgument,
    language: StatedLanguage = None,
    domain: StatedDomain = None,
    mapping: MappingOption = None,
    name: NameOption = None,
    gallery: GalleryOption = True,
    report: ReportOption = None,
    is_json: JsonOption = False,
) -> None:
    """Upload a chunk of pictures and captions, and make it searchable."""
    from app import messages

    if report is not None and (report.is_dir() or not report.absolute().parent.is_dir()):
        raise UsageProblem(f"--report {report}: name a file in a folder that exists. Nothing was uploaded.")
    columns = pairs_of(mapping, "--map", "text=caption")
    with connected(context) as client:
        job = _uploaded(client, source, language, domain, columns, name=name, in_gallery=gallery)
        done, chunk = _taken_in(client, job, is_json=is_json)
        if report is not None:
            report.write_bytes(client.chunk_report(chunk.id))
    said = messages.outcome(done)
    if chunk.standing == "held":
        said.append(f"It is held and teaches nothing yet: {messages.plain(chunk.standing_why)}")
    elif chunk.standing == "new":
        said.append(f"Teach it: `update --chunk {chunk.id}`.")
    show(is_json, {"job": done.id, "state": done.state, "standing": chunk.standing, **done.result}, *said)


def update(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    source: TaughtSource = None,
    chunk: TaughtChunk = None,
    language: StatedLanguage = None,
    domain: StatedDomain = None,
    strategy: StrategyOption = None,
    option: StrategyOptions = None,
    seed: SeedOption = 0,
    promote: PromoteOption = True,
    dry_run: DryRunOption = False,
    why: WhyOption = "",
    cancel: CancelOption = None,
    is_json: JsonOption = False,
) -> None:
    """Learn from a chunk; what passes the gate goes live."""
    if sum(given is not None for given in (source, chunk, cancel)) != 1:
        raise UsageProblem(
            "Say what to learn from: a SOURCE to upload, or --chunk ID of one that is in. --cancel JOB stands alone."
        )
    options = pairs_of(option, "--option", "epochs=5")
    if dry_run and source is not None:
        raise UsageProblem(NO_DRY_SOURCE)
    with connected(context) as client:
        if cancel is not None:
            stopped = client.cancel(cancel)
            show(is_json, _document(stopped), f"{stopped.id} is {stopped.state}.")
            return
        if dry_run:
            from app.learning.forecast import Forecast

            found = client.forecast(str(chunk), strategy=strategy, options=options)
            show_forecast(Forecast.from_json(found), found["recommended"], found["why"], is_json=is_json)
            return
        if source is not None:
            job = _uploaded(client, source, language, domain, {})
            chunk = _taken_in(client, job, is_json=is_json)[1].id
        asked = {"strategy": strategy, "options": options, "seed": seed, "promote": promote, "why": why}
        done = watch(client, client.update(str(chunk), **asked), is_json=is_json)
    _finish(done, is_json=is_json)


def remove(
    context: typer.Context, chunk: ChunkArgument, why: ReasonOption, is_json: JsonOption = False
) -> None:
    """Withdraw a chunk, and rebuild what is live from the last version before it."""
    with connected(context) as client:
        done = watch(client, client.remove(chunk, why=why), is_json=is_json)
    _finish(done, is_json=is_json)


def _finish(done: JobRecord, *, is_json: bool) -> None:
    """Shows how training ended, and leaves with the exit code of its verdict."""
    from app import messages

    if done.state not in EXIT_CODES:
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    show(is_json, _document(done), *messages.outcome(done))
    raise typer.Exit(EXIT_CODES[done.state])


def _document(job: JobRecord) -> dict[str, object]:
    return {"job": job.id, "state": job.state, "error": job.error, **job.result}


def _uploaded(
    client: Client,
    source: Path,
    language: str | None,
    domain: str | None,
    columns: dict[str, str],
    *,
    name: str | None = None,
    in_gallery: bool = True,
) -> JobRecord:
    """Uploads a file, or a folder as a zip; returns the job that takes it in."""
    if not source.exists():
        raise UsageProblem(f"There is nothing at {source}.")
    with tempfile.TemporaryDirectory() as scratch:
        file = _packed(source, Path(scratch)) if source.is_dir() else source
        return client.add_chunk(
            file, name=name, language=language, domain=domain, columns=columns, in_gallery=in_gallery
        )


def _taken_in(client: Client, job: JobRecord, *, is_json: bool) -> tuple[JobRecord, ChunkRecord]:
    """Waits until an upload is in; returns its job and its chunk."""
    done = watch(client, job, is_json=is_json)
    if done.state != "succeeded":
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    return done, client.chunk(done.result["report"]["chunk_id"])


def _packed(folder: Path, scratch: Path) -> Path:
    """Packs a folder; stored, since pictures are compressed already."""
    packed = scratch / f"{folder.resolve().name}.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.write(path, path.relative_to(folder))
    return packed
