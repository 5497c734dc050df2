"""The answer to a search as a terminal shows it, whether a home or a server gave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.commands.option_records import SearchOptions

ID_SHOWN = 12


@dataclass(frozen=True)
class ShownHit:
    """One picture found; `caption` is the one that helps a reader most."""

    id: str
    rank: int
    score: float
    caption: str
    relevance: str
    by: Sequence[str]
    copies: Sequence[str]
    parts: Sequence[float]


@dataclass(frozen=True)
class ShownCaption:
    """One caption found, and the pictures that have it."""

    score: float
    language: str
    text: str
    images: Sequence[str]


@dataclass(frozen=True)
class ShownAnswer:
    """What of an answer is shown; the fields of `app.query.question.QueryAnswer`, with captions as words.

    `asked` is the query as it was understood; empty when it is one part.
    """

    release: str
    language: str
    note: str
    asked: str
    mode: str
    gallery: int
    searched: int
    relevance: str
    next: str
    hits: Sequence[ShownHit]
    captions: Sequence[ShownCaption]


def answer_parts(answer: ShownAnswer) -> list[Any]:
    """Returns lines that say how a query was understood and what was searched, and the tables of what was found."""
    return [*_lines(answer), _hits(answer), *_captions(answer)]


def _lines(answer: ShownAnswer) -> list[str]:
    from app.words.messages import plain

    read = f", read as {answer.language}" if answer.language else ""
    lines = [f"Release {answer.release}{read}.", answer.note]
    if answer.asked:
        lines.append(f"Asked: {answer.asked}")
    if answer.searched < answer.gallery:
        lines.append(f"{answer.searched} of {answer.gallery} pictures were searched.")
    if answer.hits and answer.relevance == "nothing":
        lines.append("Probably nothing here fits; these are the nearest.")
    if answer.next:
        lines.append(f"There are more: --next {answer.next}")
    return [plain(line) for line in lines if line]


def _hits(answer: ShownAnswer) -> Any:
    from app.words.messages import table

    hits = answer.hits
    if not hits:
        return "Nothing was found."
    more: list[tuple[str, list[str]]] = []
    if any(hit.relevance for hit in hits):
        more.append(("relevance", [hit.relevance for hit in hits]))
    if answer.mode != "vectors":
        more.append(("found by", [" + ".join(hit.by) for hit in hits]))
    if any(hit.copies for hit in hits):
        more.append(("copies", [str(len(hit.copies) or "") for hit in hits]))
    if any(hit.parts for hit in hits):
        more.append(("parts", [" ".join(f"{near:.3f}" for near in hit.parts) for hit in hits]))
    rows = [
        (hit.rank, f"{hit.score:.3f}", hit.id[:ID_SHOWN], hit.caption, *(column[n] for _, column in more))
        for n, hit in enumerate(hits)
    ]
    return table(["rank", "score", "picture", "caption", *(name for name, _ in more)], rows)


def _captions(answer: ShownAnswer) -> list[Any]:
    from app.words.messages import table

    rows = [
        (f"{one.score:.3f}", one.language, one.text, ", ".join(image[:ID_SHOWN] for image in one.images))
        for one in answer.captions
    ]
    return [table(("score", "language", "caption", "pictures"), rows)] if rows else []


def written_lines(
    asked: SearchOptions, *, zipped: Callable[[], bytes], tabled: Callable[[], bytes]
) -> list[str]:
    """Writes what was found into the files that were asked for; returns a line about each."""
    from app.words.messages import plain, size

    lines = []
    for file, made in ((asked.zip, zipped), (asked.csv, tabled)):
        if file is not None:
            written = file.write_bytes(made())
            lines.append(plain(f"What was found is in {file} ({size(written)})."))
    return lines
