"""Verbs about a server's chunks and verdicts: check, gate, accept, withdraw."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from app.commands.options import ChunkArgument, JudgedArgument, MeasureOption, ReasonOption
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption, show


def check(context: typer.Context, chunk: ChunkArgument, is_json: JsonOption = False) -> None:
    """Show what a chunk's checks found, what it counts for, and what to do next."""
    from app.words.chunk_tables import chunk_parts

    with connected(context) as client:
        record = client.chunk(chunk)
    show(is_json, asdict(record), *chunk_parts(record))


def gate(
    context: typer.Context,
    name: JudgedArgument,
    is_json: JsonOption = False,
) -> None:
    """Show why an update passed the gate, or did not."""
    from app.words import messages
    from app.words.gate_tables import gate_parts
    from model_updates.gate.report import GateReport

    with connected(context) as client:
        judged = client.judged(name)
    parts: list[Any] = [messages.plain(judged["sentence"])]
    if judged["gate"] is not None:
        parts += gate_parts(GateReport.from_json(judged["gate"]), messages.console().width)
    show(is_json, judged, *parts)


def accept(
    context: typer.Context,
    chunk: ChunkArgument,
    why: ReasonOption,
    measure: MeasureOption = False,
    is_json: JsonOption = False,
) -> None:
    """Let a chunk teach in spite of what its checks found."""
    with connected(context) as client:
        record = client.accept(chunk, why=why, measure=measure)
    show(is_json, asdict(record) | {"report": None}, f"Chunk {record.id} is accepted.")


def withdraw(
    context: typer.Context,
    chunk: ChunkArgument,
    why: ReasonOption,
    is_json: JsonOption = False,
) -> None:
    """Take a chunk's pairs and pictures out of training, measuring and search."""
    from app.words.messages import plain

    with connected(context) as client:
        gone = client.withdraw(chunk, why=why)
    show(is_json, gone, plain(gone["sentence"]))
