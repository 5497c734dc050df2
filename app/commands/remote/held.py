"""Verbs about single pairs that a server's intake held: held and decide."""

from __future__ import annotations

from dataclasses import asdict

import typer

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
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption, show


def held(
    context: typer.Context,
    chunk: HeldChunk = None,
    limit: HeldLimit = 100,
    is_json: JsonOption = False,
) -> None:
    """List the pairs that wait for a person's word, or all that was held and rejected of one chunk."""
    from app.words import held as held_text

    with connected(context) as client:
        if chunk is None:
            total, rows = client.held_rows(limit=limit)
            document = {"total": total, "rows": [asdict(row) for row in rows]}
            show(is_json, document, *held_text.waiting_parts(total, rows))
            return
        found = client.put_aside(chunk)
    show(is_json, asdict(found), *held_text.aside_parts(found))


def decide(
    context: typer.Context,
    chunk: ChunkArgument,
    accept: AcceptedPairs = None,
    leave_out: LeftOutPairs = None,
    take_out: TakenOutPairs = None,
    language: CaptionLanguage = None,
    why: NoteOption = "",
    is_json: JsonOption = False,
) -> None:
    """Accept held pairs, which then belong to their chunk, leave them out, or take out pairs that it has."""
    from app.words.messages import plain

    with connected(context) as client:
        decided = client.decide(
            chunk,
            accept=accept or [],
            leave_out=leave_out or [],
            take_out=take_out or [],
            language=language,
            why=why,
        )
    show(is_json, decided, plain(decided["sentence"]))
