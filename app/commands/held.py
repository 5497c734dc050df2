"""Verbs about single pairs that intake held: held lists them, decide accepts them or leaves them out."""

from __future__ import annotations

from dataclasses import asdict

from app.commands.options import (
    AcceptedPairs,
    CaptionLanguage,
    ChunkArgument,
    HeldChunk,
    HeldLimit,
    LeftOutPairs,
    NoteOption,
    TakenOutPairs,
)
from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for


def held(
    chunk: HeldChunk = None,
    limit: HeldLimit = 100,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the pairs that wait for a person's word, or all that was held and rejected of one chunk."""
    with workspace_for(home) as workspace:
        from app.learning import inventory
        from app.words import held as held_text

        if chunk is None:
            total, rows = inventory.held_rows(workspace, limit=limit)
            document = {"total": total, "rows": [asdict(row) for row in rows]}
            show(is_json, document, *held_text.waiting_parts(total, rows))
            return
        found = inventory.put_aside(workspace, chunk)
        show(is_json, asdict(found), *held_text.aside_parts(found))


def decide(
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
    with workspace_for(home) as workspace:
        from app.jobs import requests, worker
        from app.learning import held_pairs

        decided = held_pairs.decide(
            workspace,
            chunk,
            by=who(),
            accept=accept or [],
            leave_out=leave_out or [],
            take_out=take_out or [],
            language=language,
            why=why,
        )
        job = requests.decision_job(workspace, decided, by=who())
        if job is not None:
            worker.spawn(workspace.settings, job.id)
    document = asdict(decided) | {
        "chunk": asdict(decided.chunk) | {"report": None},
        "job": job.id if job else None,
    }
    show(is_json, document, decided.sentence)
