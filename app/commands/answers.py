"""The answer to a search as a terminal shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.words.messages import table

if TYPE_CHECKING:
    from app.desk.hits import Found, SearchAnswer

ID_SHOWN = 12


def answer_parts(answer: SearchAnswer) -> list[Any]:
    """Returns lines that say how a query was understood and what was searched, and the tables of what was found."""
    return [*_lines(answer), _hits(answer), *_captions(answer)]


def caption_of(hit: Found) -> str:
    """Returns a hit's first caption; those in the language of the query come first."""
    return f"{hit.captions[0].text} ({hit.captions[0].language})" if hit.captions else ""


def _lines(answer: SearchAnswer) -> list[str]:
    read = f", read as {answer.language}" if answer.language else ""
    lines = [f"Release {answer.release}{read}.", answer.note]
    if len(answer.parts) > 1:
        lines.append(f"Asked: {answer.query}")
    if answer.searched < answer.index_size:
        lines.append(f"{answer.searched} of {answer.index_size} pictures were searched.")
    if answer.hits and answer.relevance == "nothing":
        lines.append("Probably nothing here fits; these are the nearest.")
    if answer.measured_in and answer.detected and answer.measured_in != answer.detected[0][0]:
        lines.append(f"Relevance is measured on captions in {answer.measured_in}: this language has too few.")
    if answer.next:
        lines.append(f"There are more: --next {answer.next}")
    return [line for line in lines if line]


def _hits(answer: SearchAnswer) -> Any:
    hits = answer.hits
    if not hits:
        return "Nothing was found."
    more: list[tuple[str, list[str]]] = []
    if any(hit.captions for hit in hits):
        more.append(("caption", [caption_of(hit) for hit in hits]))
    if any(hit.taken for hit in hits):
        more.append(("taken", [hit.taken[:16].replace("T", " ") for hit in hits]))
    if any(hit.relevance for hit in hits):
        more.append(("relevance", [hit.relevance for hit in hits]))
    if answer.mode != "vectors":
        more.append(("found by", [" + ".join(hit.by) for hit in hits]))
    if any(hit.copies for hit in hits):
        more.append(("copies", [str(len(hit.copies) or "") for hit in hits]))
    if any(hit.sources for hit in hits):
        more.append(("seen at", [hit.sources[0].path if hit.sources else "" for hit in hits]))
    if any(hit.parts for hit in hits):
        more.append(("parts", [" ".join(f"{near:.3f}" for near in hit.parts) for hit in hits]))
    first = [("rank", [str(hit.rank) for hit in hits])]
    if hits[0].score is not None:
        first.append(("score", [f"{hit.score:.3f}" for hit in hits]))
    columns = [
        *first,
        ("picture", [hit.id[:ID_SHOWN] for hit in hits]),
        *more,
    ]
    return table([name for name, _ in columns], list(zip(*(cells for _, cells in columns), strict=True)))


def _captions(answer: SearchAnswer) -> list[Any]:
    rows = [
        (f"{one.score:.3f}", one.language, one.text, ", ".join(image[:ID_SHOWN] for image in one.images))
        for one in answer.captions
    ]
    return [table(("score", "language", "caption", "pictures"), rows)] if rows else []
