"""What is asked of a snapshot, and what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from PIL import Image

from app.desk.hits import FoundCaption, Mode, SearchRequest
from app.query.grammar import Term
from app.query.snapshot import Answer

_OF_A_PAGE = {"k", "cursor", "offset", "release", "explain", "captions", "caption_languages"}


@dataclass(frozen=True)
class Question:
    """One query with everything that belongs to it."""

    terms: tuple[Term, ...]  # its parts
    pictures: Mapping[str, Image.Image] = field(default_factory=dict)  # those that parts name, decoded
    asked: SearchRequest = field(default_factory=SearchRequest)  # everything else that was asked
    k: int = 24  # hits a page

    def digest(self) -> str:
        """Returns what two pages of one result have in common, as 16 hexadecimal digits."""
        seen = {name: hashlib.sha256(one.tobytes()).hexdigest() for name, one in self.pictures.items()}
        facts = (self.terms, sorted(seen.items()), self.asked.model_dump(exclude=_OF_A_PAGE))
        return hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(frozen=True)
class QueryAnswer(Answer):
    """An answer with what it was asked."""

    terms: tuple[Term, ...] = ()  # the parts of the query
    mode: Mode = Mode.VECTORS  # what it was looked up in
    gallery: int = 0  # pictures of the release
    searched: int = 0  # those that could be found: all, or what the filters leave of them
    first: int = 0  # number of the page's first hit among all, from 0
    next: str = ""  # the cursor of the next page; empty when there is none
    relevance: str = ""  # of the best hit; empty where nobody can say, or there is none
    captions: tuple[FoundCaption, ...] = ()  # nearest to the query
    eta: float | None = None  # how much the translation counted, 0 … 1; None where there was none
    # the language of its words, where the release has not learned it and no translation was given
    unlearned: str = ""
