"""Verbs about chunks: ingest, check, accept, withdraw, remove, held, decide."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.learning import EXIT_CODES, show_end
from app.commands.options import (
    ChunkArgument,
    StatedDomain,
    StatedLanguage,
    argument,
    option,
    source_path,
)
from app.commands.terminal import JsonOption, pairs_of, require_place, show, staged, watched
from app.commands.verb import Shown, verb

if TYPE_CHECKING:
    from app.desk.desk import Desk

_SOURCES = "A folder, a zip or tar, a csv, tsv, jsonl or parquet table, or a saved Hugging Face dataset."

ReasonOption = Annotated[str, option("--why", says="The reason; it is kept with the chunk.")]


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """What `add` takes in, and how it is to be read."""

    source: Annotated[Path, argument(_SOURCES, "SOURCE", parser=source_path)]
    language: StatedLanguage = None
    domain: StatedDomain = None
    mapping: Annotated[list[str] | None, option("--map", says="A table's column as ours: text=caption.")] = (
        None
    )
    key: Annotated[str | None, option("--key", "--id-column", says="A table's column with your own ids.")] = (
        None
    )
    pictures: Annotated[
        Path | None, option(says="A table's pictures are in this folder.", parser=source_path)
    ] = None
    forget: Annotated[
        bool, typer.Option("--forget", help="Remove pictures whose files are gone for good.")
    ] = False
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Fetch pictures that a table names by http(s) address.")
    ] = False
    name: Annotated[str | None, option("--name", says="What to call the chunk.")] = None
    gallery: Annotated[bool, typer.Option(help="Let search find the pictures.")] = True
    report: Annotated[Path | None, option("--report", says="Write what became of each row as CSV.")] = None

    def columns(self) -> dict[str, str]:
        """Returns a table's columns by ours; refuses what cannot work before anything is taken in."""
        if self.report is not None:
            require_place(self.report, "--report")
        stated = {} if self.key is None else {self.key: "key"}
        return pairs_of(self.mapping, "--map", "text=caption") | stated


@verb
def add(desk: Desk, asked: AddOptions, is_json: JsonOption = False) -> None:
    """Take pictures and captions in.

    They are one chunk, and searchable at once. The exit code is 4 where a person has to decide whether it may teach.
    """
    from app.words.chunk import added_lines
    from ingest.intake import IntakeOptions

    options = IntakeOptions(
        language=asked.language,
        domain=asked.domain,
        mapping=asked.columns(),
        pictures=asked.pictures,
        name=asked.name,
        in_gallery=asked.gallery,
        forget=asked.forget,
        fetch=asked.fetch,
    )
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
    if added.chunk.standing == "held":
        raise typer.Exit(EXIT_CODES["review"])


@verb
def check(desk: Desk, chunk: ChunkArgument) -> Shown:
    """Show what a chunk's checks found.

    Also what it counts for, and what to do next.
    """
    from app.words.chunk import chunk_parts

    record = desk.chunk(chunk)
    return record, *chunk_parts(record)


@verb
def accept(
    desk: Desk,
    chunk: ChunkArgument,
    why: ReasonOption,
    measure: Annotated[
        bool, typer.Option("--measure", help="Its held-out pairs measure other updates too.")
    ] = False,
) -> Shown:
    """Let a chunk teach in spite of its checks."""
    record = desk.accept(chunk, why, measure)
    said = f"Chunk {record.id} is accepted: `perennial update --chunk {record.id}` learns from it."
    if record.measures:
        said += " Its held-out pairs measure every update from now on."
    return record, said


@verb
def withdraw(desk: Desk, chunk: ChunkArgument, why: ReasonOption) -> Shown:
    """Take a chunk out of search and teaching.

    Nothing is measured by its pairs any more, either.
    """
    gone = desk.withdraw(chunk, why)
    job = f" Job {gone.job.id} is taking them out of search." if gone.job else ""
    return gone, gone.sentence + job


@verb
def domain(
    desk: Desk,
    name: Annotated[str, argument("A domain that nothing was learned of.")],
    to: Annotated[str, argument("Its new name, or a domain that there is.")],
) -> Shown:
    """Name a domain, or put it into another.

    A domain that pictures opened by themselves has a number for a name.
    """
    named = desk.name_domain(name, to)
    return named, f"{named.sentence} Job {named.job.id} is placing them."


@verb
def remove(desk: Desk, chunk: ChunkArgument, why: ReasonOption, is_json: JsonOption = False) -> None:
    """Withdraw a chunk and what it taught.

    What is live is rebuilt from the last version before that chunk.
    """
    show_end(watched(desk, desk.remove(chunk, why), is_json=is_json), is_json=is_json)


@verb
def held(
    desk: Desk,
    chunk: Annotated[str | None, argument("A chunk; all that wait when not given.", "[CHUNK]")] = None,
    limit: Annotated[int, typer.Option(help="Of all chunks, how many.", min=1, max=1000)] = 100,
) -> Shown:
    """List pairs that wait for a person's word.

    Of one chunk, all that was held and rejected.
    """
    from app.words.held import aside_parts, waiting_parts

    if chunk is None:
        found = desk.held(limit)
        return found, *waiting_parts(found.total, found.rows)
    aside = desk.put_aside(chunk)
    return aside, *aside_parts(aside)


@verb
def decide(
    desk: Desk,
    chunk: ChunkArgument,
    accept: Annotated[list[int] | None, option(says="A held pair, by its number.", min=1)] = None,
    leave_out: Annotated[list[int] | None, option(says="A held pair, by its number.", min=1)] = None,
    take_out: Annotated[
        list[int] | None, option(says="A pair of the chunk that its checks name.", min=1)
    ] = None,
    language: Annotated[str | None, option(says="Of accepted captions that state none, such as de.")] = None,
    why: Annotated[str, option(says="A note; it is kept with the decision.")] = "",
) -> Shown:
    """Accept held pairs, or leave them out.

    Accepted ones belong to their chunk; pairs that it has can be taken out, too.
    """
    decided = desk.decide(chunk, accept or (), leave_out or (), take_out or (), language, why)
    return decided, decided.sentence
