"""The verb that takes pictures and captions in: ingest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from app.commands.option_records import IngestOptions, with_options
from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.home.workspace import Workspace
    from app.learning.outcomes import AddOutcome
    from ingest.intake import IntakeOptions
    from ingest.records import ChunkRecord


@with_options
def ingest(asked: IngestOptions, home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Take a chunk of pictures and captions in, and make it searchable."""
    from ingest.intake import IntakeOptions

    options = IntakeOptions(
        language=asked.language,
        domain=asked.domain,
        mapping=asked.columns(),
        name=asked.name,
        in_gallery=asked.gallery,
    )
    with workspace_for(home) as workspace:
        outcome = add(workspace, asked.source, options, is_quiet=is_json)
        chunk = workspace.catalog.chunk(outcome.report.chunk_id)
    if asked.report is not None:
        outcome.report.write_csv(asked.report)
    document = {
        **outcome.report.to_json(),
        "images_embedded": outcome.images_embedded,
        "commit": asdict(outcome.commit) if outcome.commit else None,
        "standing": chunk.standing,
        "findings": chunk.report.get("findings", []),
    }
    show(is_json, document, *added_lines(outcome, chunk))


def add(workspace: Workspace, source: Path, options: IntakeOptions, *, is_quiet: bool) -> AddOutcome:
    """Takes a chunk in under a progress bar."""
    from app.learning.update_cycle import add_chunk
    from app.words.messages import progress_bar

    if workspace.home.root.resolve().is_relative_to(source.resolve()):
        raise UsageProblem(
            f"{source} holds the home {workspace.home.root} itself; name the folder of the pictures."
        )

    with progress_bar(is_quiet=is_quiet) as move:
        return add_chunk(
            workspace,
            source,
            options,
            by=who(),
            progress=lambda stage: move(stage.name, stage.message, stage.fraction),
        )


def added_lines(outcome: AddOutcome, chunk: ChunkRecord) -> list[str]:
    """Says what taking a chunk in did, and what its checks made of it."""
    from app.words import chunk as chunk_words
    from app.words import messages

    lines = messages.intake(outcome.report.to_json())
    if outcome.commit is not None:
        lines.append(
            f"{outcome.images_embedded} pictures are searchable now (release {outcome.commit.release})."
        )
    if chunk.standing == "held":
        lines += ["It is held and teaches nothing yet:", *map(messages.plain, chunk_words.against(chunk))]
        lines.append(f"`python -m app check {chunk.id}` shows examples and what to do.")
    elif outcome.report.new_pairs:
        lines.append(f"Teach it: `python -m app update --chunk {chunk.id}`.")
    return lines
