"""What is asked of a snapshot, and what comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from PIL import Image

from app.desk.hits import FoundCaption, Mode, Relevance
from app.query.filters import Filters
from app.query.grammar import Term
from app.query.parts import ReadPicture, no_file, query_terms, read_pictures
from app.query.snapshot import AUTO, Answer


@dataclass(frozen=True)
class Question:
    """One query with everything that belongs to it."""

    terms: tuple[Term, ...]  # its parts
    pictures: Mapping[str, Image.Image] = field(default_factory=dict)  # those that parts name, decoded
    language: str = AUTO  # of its texts, or "auto"
    translation: str = ""  # of a query that is one text, in English; empty where there is none
    filters: Filters = field(default_factory=Filters)  # which pictures may be found
    k: int = 24  # hits a page
    cursor: str = ""  # of a page after the first, from the answer before
    offset: int = 0  # hits to pass over where there is no cursor, for pages by number
    mode: Mode = Mode.VECTORS  # vectors, captions, or both fused
    fold: bool = False  # show of near-copies only the best, the others with it
    rerank: bool = False  # order the first 50 by the release's fusion encoder
    explain: bool = False  # say of each hit how near each part is
    least: Relevance | None = None  # leave out hits that are worth less than this; None leaves none out
    captions: int = 0  # how many captions to return beside the pictures
    caption_languages: tuple[str, ...] = ()  # of those captions; all learned ones when empty

    @classmethod
    def typed(
        cls, text: str, *, longest: int, k: int, language: str = AUTO, read: ReadPicture = no_file
    ) -> Question:
        """Returns the question that a text in the query grammar asks, and nothing beside it.

        It may have `longest` characters. `read` gives the bytes of a picture that it names; by default none may be
        named.

        Raises:
            BadQuery: the grammar does not know it, or a picture cannot be read.
        """
        terms = query_terms(text, longest=longest)
        return cls(terms, read_pictures(terms, read), language=language, k=k)

    def digest(self) -> str:
        """Returns what two pages of one result have in common, as 16 hexadecimal digits."""
        seen = {name: hashlib.sha256(one.tobytes()).hexdigest() for name, one in self.pictures.items()}
        facts = (
            self.terms,
            sorted(seen.items()),
            self.language,
            self.translation,
            self.filters,
            self.mode,
            self.fold,
            self.rerank,
            self.least,
        )
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
