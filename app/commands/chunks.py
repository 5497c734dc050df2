"""Verbs about chunks: ingest, check, accept, withdraw, remove, held, decide."""

from __future__ import annotations

import typer

from app.commands.learning import show_end
from app.commands.option_records import IngestOptions, with_options
from app.commands.options import (
    AcceptedPairs,
    CaptionLanguage,
    ChunkArgument,
    HeldChunk,
    HeldLimit,
    LeftOutPairs,
    MeasureOption,
    NoteOption,
    ReasonOption,
    TakenOutPairs,
)
from app.commands.terminal import HomeOption, JsonOption, desk_for, show, staged, watched


@with_options
def ingest(
    context: typer.Context, asked: IngestOptions, home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Take a chunk of pictures and captions in, and make it searchable."""
    from app.words.chunk import added_lines
    from ingest.intake import IntakeOptions

    options = IntakeOptions(
        language=asked.language,
        domain=asked.domain,
        mapping=asked.columns(),
        name=asked.name,
        in_gallery=asked.gallery,
    )
    with desk_for(context, home) as desk:
        with staged(is_json=is_json) as tell:
            added = desk.add_chunk(asked.source, options, tell)
        if asked.report is not None:
            asked.report.write_bytes(desk.chunk_report(added.chunk.id))
    document = {
        **added.report,
        "images_embedded": added.images_embedded,
        "release": added.release,
        "job": added.job,
        "standing": added.chunk.standing,
        "findings": list(added.chunk.findings),
    }
    show(is_json, document, *added_lines(added))


def check(
    context: typer.Context, chunk: ChunkArgument, home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Show what a chunk's checks found, what it counts for, and what to do next."""
    from app.words.chunk import chunk_parts

    with desk_for(context, home) as desk:
        record = desk.chunk(chunk)
    show(is_json, record, *chunk_parts(record))


def accept(
    context: typer.Context,
    chunk: ChunkArgument,
    why: ReasonOption,
    measure: MeasureOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Let a chunk teach in spite of what its checks found."""
    with desk_for(context, home) as desk:
        record = desk.accept(chunk, why, measure)
    said = f"Chunk {record.id} is accepted: `python -m app update --chunk {record.id}` learns from it."
    if record.measures:
        said += " Its held-out pairs measure every update from now on."
    show(is_json, record, said)


def withdraw(
    context: typer.Context,
    chunk: ChunkArgument,
    why: ReasonOption,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Take a chunk's pairs and pictures out of training, measuring and search."""
    from app.words.messages import plain

    with desk_for(context, home) as desk:
        gone = desk.withdraw(chunk, why)
    job = f" Job {gone.job.id} is taking them out of search." if gone.job else ""
    show(is_json, gone, plain(gone.sentence + job))


def remove(
    context: typer.Context,
    chunk: ChunkArgument,
    why: ReasonOption,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Withdraw a chunk, and rebuild what is live from the last version before it."""
    with desk_for(context, home) as desk:
        done = watched(desk, desk.remove(chunk, why), is_json=is_json)
    show_end(done, is_json=is_json)


def held(
    context: typer.Context,
    chunk: HeldChunk = None,
    limit: HeldLimit = 100,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the pairs that wait for a person's word, or all that was held and rejected of one chunk."""
    from app.words.held import aside_parts, waiting_parts

    with desk_for(context, home) as desk:
        if chunk is None:
            found = desk.held(limit)
            show(is_json, found, *waiting_parts(found.total, found.rows))
        else:
            aside = desk.put_aside(chunk)
            show(is_json, aside, *aside_parts(aside))


def decide(  # noqa: PLR0913 - one parameter per option
    context: typer.Context,
    chunk: ChunkArgument,
    accept: AcceptedPairs = None,
    leave_out: LeftOutPairs = None,
    take_out: TakenOutPairs = None,
    language: CaptionLanguage = None,
    why: NoteOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Accept held pairs, which then belong to their chunk, leave them out, or take out pairs that it has."""
    from app.words.messages import plain

    with desk_for(context, home) as desk:
        decided = desk.decide(chunk, accept or (), leave_out or (), take_out or (), language, why)
    show(is_json, decided, plain(decided.sentence))
