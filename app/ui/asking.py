"""What the search box and its filters ask: from the components' values to a question for the engine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from PIL import Image

from app.desk.errors import BadQuery
from app.desk.hits import Mode
from app.query.filters import Filters
from app.query.grammar import Kind, Term
from app.query.parts import decoded, no_file, query_terms, read_pictures
from app.query.question import Question
from app.query.snapshot import AUTO
from ingest.sentence import phrase

CAPTIONS = 8
"""Captions that a query by pictures shows beside the pictures it finds."""


@dataclass(frozen=True)
class Asked:
    """The values of the components.

    Attributes:
        text: in the query grammar.
        files: pictures that were dropped into the box, where Gradio put them.
        language: of the text, or "auto".
        translation: of the text into English.
        domains: only pictures of these.
        languages: only pictures captioned in one of these.
        chunks: only pictures of these, by their ids.
        caption: only pictures with a caption that has all these words.
        since: taken in on this day or later, such as 2026-01-31.
        until: taken in on this day or earlier.
        mode: what is looked up.
        fold: show of near-copies only the best.
        rerank: the first hits of a text in the order of the release's fusion encoder.
        offset: hits before the first that is shown.
    """

    text: str = ""
    files: tuple[str, ...] = ()
    language: str = AUTO
    translation: str = ""
    domains: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    chunks: tuple[str, ...] = ()
    caption: str = ""
    since: str = ""
    until: str = ""
    mode: str = Mode.VECTORS.value
    fold: bool = False
    rerank: bool = False
    offset: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to look for."""
        return not (self.text.strip() or self.files)

    def question(self, *, longest: int, k: int, cursor: str = "") -> Question:
        """Returns the question.

        Args:
            longest: characters that a query may have.
            k: pictures a page.
            cursor: of a page after the first.

        Raises:
            BadQuery: the text is none of the grammar, a file is no picture, or a filter cannot be used.
        """
        terms = list(query_terms(self.text, longest=longest)) if self.text.strip() else []
        pictures: dict[str, Image.Image] = dict(read_pictures(terms, no_file))
        for number, file in enumerate(self.files, start=1):
            term = Term(Kind.IMAGE, f"dropped picture {number}")
            pictures[term.value] = decoded(term, _bytes(file))
            terms.append(term)
        is_text = bool(terms) and all(term.kind is Kind.TEXT for term in terms)
        return Question(
            tuple(terms),
            pictures,
            language=self.language,
            translation=self.translation,
            filters=self._filters(),
            k=k,
            cursor=cursor,
            offset=0 if cursor else self.offset,
            mode=_mode(self.mode) if is_text else Mode.VECTORS,
            fold=self.fold,
            rerank=self.rerank and is_text,
            captions=0 if is_text or cursor or self.offset else CAPTIONS,
        )

    def _filters(self) -> Filters:
        return Filters(
            languages=self.languages,
            domains=self.domains,
            chunks=self.chunks,
            since=_day(self.since),
            until=_day(self.until),
            caption=self.caption.strip(),
        )


def box_values(box: Any) -> tuple[str, tuple[str, ...]]:
    """Returns text and files of the box as the browser sends it; Gradio has looked whether the files are uploads."""
    given = box if isinstance(box, dict) else {"text": box}
    files = [file.get("path") for file in given.get("files") or () if isinstance(file, dict)]
    return str(given.get("text") or ""), tuple(str(file) for file in files if file)


def _mode(name: str) -> Mode:
    try:
        return Mode(name)
    except ValueError as error:
        raise BadQuery(f"{name[:40]!r} is nothing to look at; use one of {', '.join(Mode)}.") from error


def _day(text: str) -> date | None:
    if not text.strip():
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError as error:
        raise BadQuery(
            phrase("A day is written as 2026-01-31; found {found}.", found=f"{text.strip()[:40]!r}")
        ) from error


def _bytes(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise BadQuery("The dropped picture is gone from the server. Drop it once more.") from error
