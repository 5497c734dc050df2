"""A chunk's checks in a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from app.words import chunk as chunk_words
from app.words.messages import grid, intake, plain, table
from ingest.findings import Finding, Outcome
from ingest.records import ChunkRecord

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.desk.chunks import Added

_ID_SHOWN = 12
_MOST_EXAMPLES = 6


def chunk_parts(chunk: ChunkRecord) -> list[RenderableType]:
    """Returns what a chunk holds, its standing, each finding with examples, and next steps, to be printed in turn."""
    found = chunk_words.findings_of(chunk)
    parts: list[Any] = [
        plain(
            f"Chunk {chunk.id} ({chunk.name}): {chunk.pairs:,} pairs, {chunk.images:,} pictures; "
            f"{chunk_words.counts(chunk)}."
        ),
        plain(chunk_words.standing_sentence(chunk)),
    ]
    if not found:
        parts += ["", "No checks of its captions were made."]
    for finding in found:
        if finding.outcome is not Outcome.ACCEPT or finding.examples:
            parts += _finding(finding)
    quiet = [one for one in found if one.outcome is Outcome.ACCEPT and not one.examples]
    if quiet:
        rows = [(chunk_words.check_name(one), plain(one.sentence)) for one in quiet]
        parts += ["", "Nothing against it:", grid(rows)]
    return [
        *parts,
        "",
        "What to do next:",
        grid([("-", plain(step)) for step in chunk_words.next_steps(chunk)]),
    ]


def _finding(finding: Finding) -> Iterable[RenderableType]:
    meaning = chunk_words.OUTCOMES[finding.outcome]
    yield ""
    yield plain(f"{finding.outcome.value.upper()}  {chunk_words.check_name(finding)} ({meaning})")
    yield plain(finding.sentence)
    if finding.figures:
        yield plain(chunk_words.figures(finding))
    if finding.examples:
        shown = finding.examples[:_MOST_EXAMPLES]
        rows = [(one.image_id[:_ID_SHOWN], one.language, one.text, one.why) for one in shown]
        yield table(("picture", "language", "caption", "why"), rows)
        if len(finding.examples) > len(shown):
            yield f"… and {len(finding.examples) - len(shown)} more; --json has all."


def added_lines(added: Added) -> list[str]:
    """Says what taking a chunk in did, and what its checks made of it."""
    chunk = added.chunk
    lines = intake(added.report)
    if added.release is not None:
        lines.append(f"{added.images_embedded} pictures are searchable now (release {added.release}).")
    if chunk.standing == "held":
        why = chunk_words.against(chunk) or [chunk.standing_why]
        lines += ["It is held and teaches nothing yet:", *map(plain, why)]
        lines.append(f"`python -m app check {chunk.id}` shows examples and what to do.")
    elif added.report["new_pairs"]:
        lines.append(f"Teach it: `python -m app update --chunk {chunk.id}`.")
    return lines
