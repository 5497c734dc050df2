"""What people say of answers, what they ask for, and what a candidate shows beside the live release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.desk.hits import Strict
from ingest.feedback import FeedbackRecord

DEPTH = 10
"""Hits that are compared."""
FEWEST = 30
"""Queries below which a mean says little: one odd query would move it by three points."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What people preferred between two releases.

    Attributes:
        a: a release's id.
        b: another's.
        for_a: votes.
        for_b: votes.
        ties: votes.
        both_bad: votes.
        share_b: of the votes that preferred one, those for B, in percent; None without any.
        low: of its 95 % interval.
        high: of its 95 % interval.
    """

    a: str
    b: str
    for_a: int
    for_b: int
    ties: int
    both_bad: int
    share_b: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ProposedPair:
    """A query beside the picture that is right for it.

    Attributes:
        id: of the pair; the same picture, language and text have the same one.
        image_id: of the picture.
        text: the query.
        language: of it.
        domain: of the picture.
        split: that the picture is in for good; a test pair measures and is never trained on.
        up: how many people found the picture right, or 0 for a canary of a person's choosing.
        down: how many did not.
    """

    id: str
    image_id: str
    text: str
    language: str
    domain: str
    split: str
    up: int
    down: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """What could be taught of what people said.

    Attributes:
        pairs: to look through, those with the most thumbs up first.
        known: how many more the catalog has already.
        disputed: how many more have as many thumbs down as up, or more.
        unusable: how many more are no single text, in no language that can be told, or of a withdrawn picture.
    """

    pairs: tuple[ProposedPair, ...]
    known: int
    disputed: int
    unusable: int


@dataclass(frozen=True, slots=True)
class ShadowLine:
    """How far a release's answers lie from the live ones, over queries in one language or all; 0 where there were none.

    Attributes:
        language: of the queries; `und` where nobody can tell, empty of those without words, "all" of the sum.
        queries: that both answered.
        refused: that the release could not answer.
        overlap: percent of the first ten hits in common, the mean.
        low: of its 95 % interval.
        high: of its 95 % interval.
        same_first: percent of queries of which both show the same picture first.
        same_first_low: of its 95 % interval.
        same_first_high: of its 95 % interval.
        moved: places that a picture both found stands apart, the mean.
        stronger: queries of which its best hit is worth more than the live one.
        weaker: queries of which it is worth less.
        seconds: that it took, the mean.
        seconds_live: that the live release took, the mean.
    """

    language: str
    queries: int
    refused: int
    overlap: float = 0.0
    low: float = 0.0
    high: float = 0.0
    same_first: float = 0.0
    same_first_low: float = 0.0
    same_first_high: float = 0.0
    moved: float = 0.0
    stronger: int = 0
    weaker: int = 0
    seconds: float = 0.0
    seconds_live: float = 0.0


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What the shadow of a release has shown.

    Attributes:
        release: its id.
        against: id of the newest release with the version that it was compared with; empty before the first query.
        is_active: whether it is asked now.
        share: of the live queries that it is, or was last, asked; 0 when it never was.
        started: when it was last put there, ISO 8601 in UTC; empty when it never was.
        by: who put it there.
        stopped: when that ended; empty while it goes on.
        stopped_by: who ended it.
        why: it ended.
        dropped: queries of the share that it was not asked, because the server had no time for them.
        is_enough: whether there were enough queries to say anything.
        total: over all languages; None before the first query.
        languages: a line each, the most asked first.
    """

    release: str
    against: str
    is_active: bool
    share: float
    started: str
    by: str
    stopped: str
    stopped_by: str
    why: str
    dropped: int
    is_enough: bool
    total: ShadowLine | None
    languages: tuple[ShadowLine, ...]


@dataclass(frozen=True, slots=True)
class AskedLanguage:
    """How often one language was asked for lately.

    Attributes:
        language: a tag, or `und` where nobody can tell.
        queries: that were answered.
        unanswered: of these, where probably nothing of the gallery fitted.
        share: of all queries, 0 to 1.
        is_learned: whether the live release knows it.
    """

    language: str
    queries: int
    unanswered: int
    share: float
    is_learned: bool


_Release = Annotated[str, Field(min_length=1, max_length=80)]


class Opinion(Strict):
    """A thumb (`release`, `image`, `verdict`), or a vote between two releases (`a`, `b`, `choice`)."""

    query: str = Field(min_length=1, max_length=2000)
    language: str = Field(default="auto", min_length=1, max_length=80)
    release: _Release | None = None
    image: str | None = Field(default=None, max_length=64)
    verdict: Literal["up", "down"] | None = None
    a: _Release | None = None
    b: _Release | None = None
    choice: Literal["a", "b", "tie", "both_bad"] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        thumb = [self.release, self.image, self.verdict]
        vote = [self.a, self.b, self.choice]
        whole = [all(one is not None for one in kind) for kind in (thumb, vote)]
        begun = [any(one is not None for one in kind) for kind in (thumb, vote)]
        if whole != begun or sum(whole) != 1:
            raise ValueError("send release, image and verdict for a thumb, or a, b and choice for a vote")
        try:
            self.query.encode()
        except UnicodeEncodeError as error:
            raise ValueError("the query is not valid text") from error
        return self


@dataclass(frozen=True)
class Opinions:
    """What people said of answers, newest first, and all their votes by pair of releases."""

    feedback: tuple[FeedbackRecord, ...]
    votes: tuple[Votes, ...]
