"""What the Search tab has on the screen: a page of an answer, or several after another."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.desk.errors import BadQuery
from app.desk.hits import Found, Mode, QueryPart, SearchRequest
from app.query.grammar import Kind, parse

CAPTIONS = 8
"""Captions that a query by pictures shows beside the pictures it finds."""


@dataclass(frozen=True)
class Screen:
    """What was asked, and what of the answer is shown."""

    # with the offset of the first picture that is shown
    asked: SearchRequest = field(default_factory=SearchRequest)
    files: tuple[str, ...] = ()  # pictures that were dropped into the box, where Gradio put them
    hits: tuple[Found, ...] = ()  # the pictures, best first
    next: str = ""  # the cursor of the page after the last; "" when there is none
    release: str = ""  # that answered; further pages come from it
    query: str = ""  # as it was understood, for what people say of the answer

    def moved(self, offset: int) -> Screen:
        """Returns the page of the same search that begins after so many hits, from the release that answered it."""
        asked = self.asked.model_copy(update={"offset": offset, "release": self.release})
        return Screen(asked, self.files)

    def request(self) -> SearchRequest:
        """Returns what is asked, with the dropped pictures in it, which nobody keeps in memory.

        What only words can be looked up in, or ordered by, is not asked of pictures; those find captions, too.

        Raises:
            BadQuery: the text is none of the grammar, or a dropped picture is gone.
        """
        terms = parse(self.asked.text) if self.asked.text else ()
        if terms and not self.files and all(term.kind is Kind.TEXT for term in terms):
            return self.asked
        given = {"parts": [_part(file) for file in self.files], "mode": Mode.VECTORS, "rerank": False}
        captions = 0 if self.asked.offset else CAPTIONS
        return self.asked.model_copy(update=given | {"captions": captions})


def box_values(box: Any) -> tuple[str, tuple[str, ...]]:
    """Returns text and files of the box as the browser sends it; Gradio has looked whether the files are uploads."""
    given = box if isinstance(box, dict) else {"text": box}
    files = [file.get("path") for file in given.get("files") or () if isinstance(file, dict)]
    return str(given.get("text") or ""), tuple(str(file) for file in files if file)


def _part(file: str) -> QueryPart:
    try:
        return QueryPart(image=base64.b64encode(Path(file).read_bytes()).decode("ascii"))
    except OSError as error:
        raise BadQuery("The dropped picture is gone from the server. Drop it once more.") from error
