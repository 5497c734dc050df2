"""Held and rejected pairs in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from app.words.messages import plain, table
from ingest.records import AsidePair

if TYPE_CHECKING:
    from app.desk.chunks import HeldRow, PutAside

_STATES = {"": "waits", "accepted": "accepted", "left_out": "left out"}


def waiting_parts(total: int, rows: Sequence[HeldRow]) -> list[Any]:
    """Returns what waits for a person in all chunks, to be printed in turn."""
    if not total:
        return ["No pair waits for your word."]
    cells = [
        (
            str(row.pair.id) if row.pair else "",
            row.chunk,
            row.where,
            row.pair.text if row.pair else "",
            row.sentence,
        )
        for row in rows
    ]
    shown = f" The first {len(rows):,} are shown." if len(rows) < total else ""
    said = f"{total:,} rows of uploads were held.{shown} Those with a number can be decided: {_HOW}"
    return [table(("pair", "chunk", "where", "caption", "why it was held"), cells), said]


def aside_parts(found: PutAside) -> list[Any]:
    """Returns what was held and rejected of one upload, to be printed in turn."""
    questioned = _questioned_parts(found)
    if not found.pairs:
        said = f"Nothing was kept of what intake held or rejected of chunk {found.chunk}."
        return [said, *questioned]
    counts = found.counts
    said = (
        f"Chunk {found.chunk}: {counts['waiting']} pairs wait, {counts['accepted']} accepted, "
        f"{counts['left_out']} left out, {counts['rejected']} rejected."
    )
    parts: list[Any] = [said, table(("pair", "state", "where", "caption", "why"), map(_row, found.pairs))]
    parts += [f"Decide: {_HOW}"] if counts["waiting"] else []
    return parts + questioned


def _questioned_parts(found: PutAside) -> list[Any]:
    if not found.questioned:
        return []
    rows = [(str(one.number), one.language, one.text, one.why) for one in found.questioned]
    return [
        "",
        "Its checks name these pairs:",
        table(("pair", "language", "caption", "why"), rows),
        f"Take one out: `perennial decide {found.chunk} --take-out NUMBER`.",
    ]


_HOW = (
    "`perennial decide CHUNK --accept NUMBER --leave-out NUMBER`, with --language TAG where none is stated."
)


def _row(pair: AsidePair) -> tuple[str, ...]:
    state = "rejected" if pair.outcome == "rejected" else _STATES.get(pair.decided, pair.decided)
    why = pair.sentence
    if pair.decided:
        why = f"{pair.decided_by}, {pair.decided_at[:16].replace('T', ' ')} UTC" + (
            f": {pair.decided_why}" if pair.decided_why else ""
        )
    text = f"{pair.text} ({pair.language})" if pair.language else pair.text
    return str(pair.id), state, pair.place, plain(text), plain(why)
