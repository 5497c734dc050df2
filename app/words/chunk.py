"""What is known of a chunk as people read it: its standing, what its checks found, what to do next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from app.words.language_names import english_name
from app.words.messages import grid, intake, plain, table
from ingest.findings import Finding, Outcome, findings_in
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase

if TYPE_CHECKING:
    from rich.console import RenderableType

    from app.desk.chunks import Added
    from app.words.language_names import NameOf

OUTCOMES = {
    Outcome.REJECT: phrase("speaks against it"),
    Outcome.HOLD: phrase("needs a person's word"),
    Outcome.UNKNOWN: phrase("cannot be told"),
    Outcome.ACCEPT: phrase("nothing against it"),
}
"""What each outcome means, worst first."""
STANDINGS = {
    "new": phrase("Status: new (nothing against it)."),
    "held": phrase("Status: held (not used for training until somebody accepts it)."),
    "accepted": phrase("Status: accepted (it may be used for training)."),
    "rejected": phrase("Status: rejected (the gate rejected its update)."),
    "withdrawn": phrase("Status: withdrawn (not used for training, measuring or search)."),
}
MOST_EXAMPLES = 12


def findings_of(chunk: ChunkRecord) -> list[Finding]:
    """Returns what the chunk's checks found, what speaks against it first."""
    order = list(OUTCOMES)
    return sorted(findings_in(chunk.report), key=lambda finding: order.index(finding.outcome))


def against(chunk: ChunkRecord) -> list[Finding]:
    """Returns what its checks found against a chunk."""
    return [one for one in findings_of(chunk) if one.outcome in (Outcome.HOLD, Outcome.REJECT)]


def check_name(finding: Finding) -> str:
    """Returns the check as people read it: `row shift`."""
    return finding.check.replace("_", " ")


def standing_sentence(chunk: ChunkRecord) -> str:
    """Says what the chunk counts for, and who said so, when and why."""
    said = [STANDINGS.get(chunk.standing) or f"Standing: {chunk.standing}."]
    if chunk.standing_by:
        since = chunk.standing_since[:16].replace("T", " ")
        is_said_below = any(one.sentence in chunk.standing_why for one in findings_of(chunk))
        why = phrase("for what they found") if is_said_below else chunk.standing_why.rstrip(".")
        said.append(
            phrase("By {name}, {time} UTC: {why}.", name=chunk.standing_by, time=since, why=why)
            if why
            else phrase("By {name}, {time} UTC.", name=chunk.standing_by, time=since)
        )
    if chunk.measures:
        said.append(phrase("Its held-out pairs measure other updates too."))
    return joined(said)


def figures(finding: Finding) -> str:
    """Returns the numbers behind a finding in one line: `share 0.31 · offset 1`."""
    return " · ".join(f"{name.replace('_', ' ')} {_figure(value)}" for name, value in finding.figures.items())


def next_steps(chunk: ChunkRecord) -> list[str]:
    """Returns what a person can do now."""
    accept = f'`perennial accept {chunk.id} --why "…"`'
    withdraw = f'`perennial withdraw {chunk.id} --why "…"`'
    if chunk.standing == "held":
        return [
            f"If the examples are as they should be, say so: {accept}. Then it can be taught.",
            f"If they are wrong, take it out: {withdraw}, and upload a corrected chunk.",
        ]
    if chunk.standing == "withdrawn":
        return ["Upload a corrected chunk: `perennial add SOURCE`. The same files take this one in anew."]
    if chunk.standing == "rejected":
        return [
            "`perennial gate JOB` shows why its update was rejected, and what may help.",
            f"If its captions are wrong, take it out: {withdraw}, and upload a corrected chunk.",
        ]
    wrong = f"Should it turn out wrong, take it out: {withdraw}."
    if not chunk.can_teach:
        return [nothing_to_teach(chunk), wrong]
    return [f"Teach it: `perennial update --chunk {chunk.id}`.", wrong]


def check_verdict(chunk: ChunkRecord, waiting: int, name_of: NameOf = english_name) -> list[str]:
    """Returns in one or two sentences whether a chunk can be taught, and how many of its held pairs wait."""
    if chunk.standing == "withdrawn":
        return [phrase("This chunk was taken out: nothing of it counts.")]
    if chunk.standing == "held":
        names = list(dict.fromkeys(check_name(one) for one in against(chunk)))
        if len(names) != 1:
            return [phrase("It teaches nothing until you accept it: look at what the checks found.")]
        return [phrase("It teaches nothing until you accept it: a check found “{check}”.", check=names[0])]
    if not chunk.pairs:
        said = phrase("Its pictures can be searched. It has no captions to learn from.")
    elif not chunk.can_teach:
        said = phrase("All its captions are held out for testing, so it teaches nothing.")
    elif len(chunk.languages) == 1:
        language = name_of(next(iter(chunk.languages)))
        said = phrase("Ready to teach: {count} captions in {language}.", count=chunk.pairs, language=language)
    else:
        said = phrase(
            "Ready to teach: {count} captions in {languages} languages.",
            count=chunk.pairs,
            languages=len(chunk.languages),
        )
    if not waiting:
        return [said]
    if waiting == 1:
        return [said, phrase("1 more waits for your word.")]
    return [said, phrase("{count} more wait for your word.", count=waiting)]


def nothing_to_teach(chunk: ChunkRecord) -> str:
    """Says why a chunk teaches nothing, and what it is good for."""
    if not chunk.pairs:
        return "Its pictures are searchable. It has no captions to learn from: `perennial add` takes some for them."
    return (
        "All its pairs are held out, so it teaches nothing. "
        f'`perennial accept {chunk.id} --measure --why "…"` lets them measure what others teach.'
    )


def counts(chunk: ChunkRecord) -> str:
    """Returns how much of what a chunk holds: `de 1,185 · emoji-noto 1,185`."""
    return " · ".join(_counted([*chunk.languages.items(), *chunk.domains.items()]))


def _counted(found: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{name} {count:,}" for name, count in found]


def _figure(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_figure, value[:8])) + (" …" if len(value) > 8 else "")
    return f"{value:.3g}" if isinstance(value, float) else str(value)


TOLD = (
    "opened_domain",
    "untaught_pictures",
)  # findings that say what became of an upload, and so are said at once
_ID_SHOWN = 12
_MOST_EXAMPLES = 6


def chunk_parts(chunk: ChunkRecord) -> list[RenderableType]:
    """Returns what a chunk holds, its standing, each finding with examples, and next steps, to be printed in turn."""
    found = findings_of(chunk)
    parts: list[Any] = [
        plain(" ".join(check_verdict(chunk, chunk.report.get("held", 0)))),
        plain(
            f"Chunk {chunk.id} ({chunk.name}): {chunk.pairs:,} pairs, {chunk.images:,} pictures; "
            f"{counts(chunk)}."
        ),
        plain(standing_sentence(chunk)),
    ]
    if not found:
        parts += ["", "No checks of its captions were made."]
    for finding in found:
        if finding.outcome is not Outcome.ACCEPT or finding.examples:
            parts += _finding(finding)
    quiet = [one for one in found if one.outcome is Outcome.ACCEPT and not one.examples]
    if quiet:
        rows = [(check_name(one), plain(one.sentence)) for one in quiet]
        parts += ["", "Nothing against it:", grid(rows)]
    return [
        *parts,
        "",
        "What to do next:",
        grid([("-", plain(step)) for step in next_steps(chunk)]),
    ]


def _finding(finding: Finding) -> Iterable[RenderableType]:
    meaning = OUTCOMES[finding.outcome]
    yield ""
    yield plain(f"{finding.outcome.value.upper()}  {check_name(finding)} ({meaning})")
    yield plain(finding.sentence)
    if finding.figures:
        yield plain(figures(finding))
    if finding.examples:
        shown = finding.examples[:_MOST_EXAMPLES]
        rows = [(one.image_id[:_ID_SHOWN], one.language, one.text, one.why) for one in shown]
        yield table(("picture", "language", "caption", "why"), rows)
        if len(finding.examples) > len(shown):
            yield f"… and {len(finding.examples) - len(shown)} more; --json has all."


def added_lines(added: Added) -> list[str]:
    """Says what taking a chunk in did, and what its checks made of it."""
    chunk = added.chunk
    lines = [*intake(added.report), *([added.made_again] if added.made_again else [])]
    if added.release is not None:
        lines.append(f"{added.report['new_images']} new pictures are searchable (release {added.release}).")
    lines += [plain(one.sentence) for one in findings_of(chunk) if one.check in TOLD]
    if chunk.standing == "held":
        found = [f"  {check_name(one)}: {one.sentence}" for one in against(chunk)]
        lines += ["It is held and teaches nothing yet:", *map(plain, found or [chunk.standing_why])]
        lines.append(f"`perennial check {chunk.id}` shows examples and what to do.")
    elif chunk.pairs and not chunk.can_teach:
        lines.append(nothing_to_teach(chunk))
    elif added.report["new_pairs"]:
        lines.append(f"Teach it: `perennial update --chunk {chunk.id}`.")
    return lines
