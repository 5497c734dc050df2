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
    """One query with everything that belongs to it.

    Attributes:
        terms: its parts.
        pictures: those that parts name, decoded.
        language: of its texts, or "auto".
        translation: of a query that is one text, in English; empty where there is none.
        filters: which pictures may be found.
        k: hits a page.
        cursor: of a page after the first, from the answer before.
        offset: hits to pass over where there is no cursor, for pages by number.
        mode: vectors, captions, or both fused.
        fold: show of near-copies only the best, the others with it.
        rerank: order the first 50 by the release's fusion encoder.
        explain: say of each hit how near each part is.
        least: leave out hits that are worth less than this; None leaves none out.
        captions: how many captions to return beside the pictures.
        caption_languages: of those captions; all learned ones when empty.
    """

    terms: tuple[Term, ...]
    pictures: Mapping[str, Image.Image] = field(default_factory=dict)
    language: str = AUTO
    translation: str = ""
    filters: Filters = field(default_factory=Filters)
    k: int = 24
    cursor: str = ""
    offset: int = 0
    mode: Mode = Mode.VECTORS
    fold: bool = False
    rerank: bool = False
    explain: bool = False
    least: Relevance | None = None
    captions: int = 0
    caption_languages: tuple[str, ...] = ()

    @classmethod
    def typed(
        cls, text: str, *, longest: int, k: int, language: str = AUTO, read: ReadPicture = no_file
    ) -> Question:
        """Returns the question that a text in the query grammar asks, and nothing beside it.

        Args:
            text: as typed.
            longest: characters that it may have.
            k: hits that are wanted.
            language: of its texts, or "auto".
            read: gives the bytes of a picture that it names; by default none may be named.

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
    """An answer with what it was asked.

    Attributes:
        terms: the parts of the query.
        mode: what it was looked up in.
        gallery: pictures of the release.
        searched: those that could be found: all, or what the filters leave of them.
        first: number of the page's first hit among all, from 0.
        next: the cursor of the next page; empty when there is none.
        relevance: of the best hit; empty where nobody can say, or there is none.
        captions: nearest to the query.
        eta: how much the translation counted, 0 … 1; None where there was none.
        unlearned: the language of its words, where the release has not learned it and no translation was given.
    """

    terms: tuple[Term, ...] = ()
    mode: Mode = Mode.VECTORS
    gallery: int = 0
    searched: int = 0
    first: int = 0
    next: str = ""
    relevance: str = ""
    captions: tuple[FoundCaption, ...] = ()
    eta: float | None = None
    unlearned: str = ""
