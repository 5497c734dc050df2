"""What is asked of a snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL import Image

from app.desk.hits import SearchRequest
from app.query.grammar import Kind, Term
from ingest.pair import ImageId

_OF_A_PAGE = {"k", "cursor", "offset", "release", "explain", "captions", "caption_languages"}


@dataclass(frozen=True)
class QueryPicture:
    """A picture to search with."""

    image: Image.Image  # decoded
    id: ImageId  # what the gallery calls it, if it has the very same file
    width: int  # of the file's picture, upright, in pixels
    height: int


@dataclass(frozen=True)
class Question:
    """One query with everything that belongs to it."""

    terms: tuple[Term, ...]  # its parts
    pictures: Mapping[str, QueryPicture] = field(default_factory=dict)  # those that parts name, decoded
    asked: SearchRequest = field(default_factory=SearchRequest)  # everything else that was asked
    k: int = 24  # hits a page

    @classmethod
    def of(cls, text: str, k: int = 24, **asked: Any) -> Question:
        """Returns a text that is taken as it is; `asked` are fields of `SearchRequest`."""
        return cls((Term(Kind.TEXT, text),), asked=SearchRequest(**asked), k=k)

    def digest(self) -> str:
        """Returns what two pages of one result have in common, as 16 hexadecimal digits."""
        seen = {name: one.id for name, one in self.pictures.items()}
        facts = (self.terms, sorted(seen.items()), self.asked.model_dump(exclude=_OF_A_PAGE))
        return hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
