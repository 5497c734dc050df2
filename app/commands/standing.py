"""Verbs with which a person says what a chunk counts for: accept, withdraw and remove."""

from __future__ import annotations

from dataclasses import asdict

from app.commands.options import ChunkArgument, MeasureOption, ReasonOption
from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for


def accept(
    chunk: ChunkArgument,
    why: ReasonOption,
    measure: MeasureOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Let a chunk teach in spite of what its checks found."""
    with workspace_for(home) as workspace:
        from app.learning import standing

        record = standing.accept(workspace, chunk, why=why, by=who(), measure=measure)
    said = f"Chunk {record.id} is accepted: `python -m app update --chunk {record.id}` learns from it."
    if record.measures:
        said += " Its held-out pairs measure every update from now on."
    show(is_json, asdict(record) | {"report": None}, said)


def withdraw(
    chunk: ChunkArgument,
    why: ReasonOption,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Take a chunk's pairs and pictures out of training, measuring and search."""
    with workspace_for(home) as workspace:
        from app.jobs import requests, worker
        from app.learning import standing

        gone = standing.withdraw(workspace, chunk, why=why, by=who())
        job = requests.withdrawal_job(workspace, gone, by=who())
        if job is not None:
            worker.spawn(workspace.settings, job.id)
    said = gone.sentence + (f" Job {job.id} is taking them out of search." if job else "")
    document = asdict(gone) | {"chunk": asdict(gone.chunk) | {"report": None}, "job": job.id if job else None}
    show(is_json, document, said)


def remove(
    chunk: ChunkArgument,
    why: ReasonOption,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Withdraw a chunk, and rebuild what is live from the last version before it."""
    from app.commands.learning import watch

    with workspace_for(home) as workspace:
        from app.jobs import requests

        job = requests.remove_chunk(workspace, chunk, why=why, by=who())
    watch(workspace.settings, job, is_json=is_json)
