"""What people say of answers, what they ask for, and what a candidate shows beside the live release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from app.desk.fields import Strict
from ingest.feedback import FeedbackRecord

DEPTH = 10
"""Hits that are compared."""
FEWEST = 30
"""Queries below which a mean says little: one odd query would move it by three points."""


@dataclass(frozen=True, slots=True)
class Votes:
    """What people preferred between two releases."""

    a: str  # a release's id
    b: str  # another's
    for_a: int  # votes
    for_b: int  # votes
    ties: int  # votes
    both_bad: int  # votes
    share_b: float | None  # of the votes that preferred one, those for B, in percent; None without any
    low: float | None  # of its 95 % interval
    high: float | None  # of its 95 % interval


@dataclass(frozen=True, slots=True)
class ProposedPair:
    """A query beside the picture that is right for it."""

    id: str  # of the pair; the same picture, language and text have the same one
    image_id: str  # of the picture
    text: str  # the query
    language: str  # of it
    domain: str  # of the picture
    split: str  # that the picture is in for good; a test pair measures and is never trained on
    up: int  # how many people found the picture right, or 0 for a canary of a person's choosing
    down: int  # how many did not


@dataclass(frozen=True, slots=True)
class Proposal:
    """What could be taught of what people said."""

    pairs: tuple[ProposedPair, ...]  # to look through, those with the most thumbs up first
    known: int  # how many more the catalog has already
    disputed: int  # how many more have as many thumbs down as up, or more
    # how many more are no single text, in no language that can be told, or of a withdrawn picture
    unusable: int


@dataclass(frozen=True, slots=True)
class ShadowLine:
    """How far a release's answers lie from those of the live one, in one language or all; 0 without queries."""

    # of the queries; `und` where nobody can tell, empty of those without words, "all" of the sum
    language: str
    queries: int  # that both answered
    refused: int  # that the release could not answer
    overlap: float = 0.0  # percent of the first ten hits in common, the mean
    low: float = 0.0  # of its 95 % interval
    high: float = 0.0  # of its 95 % interval
    same_first: float = 0.0  # percent of queries of which both show the same picture first
    same_first_low: float = 0.0  # of its 95 % interval
    same_first_high: float = 0.0  # of its 95 % interval
    moved: float = 0.0  # places that a picture both found stands apart, the mean
    stronger: int = 0  # queries of which its best hit is worth more than the live one
    weaker: int = 0  # queries of which it is worth less
    seconds: float = 0.0  # that it took, the mean
    seconds_live: float = 0.0  # that the live release took, the mean


@dataclass(frozen=True, slots=True)
class ShadowReport:
    """What the shadow of a release has shown."""

    release: str  # its id
    # id of the newest release with the version that it was compared with; empty before the first query
    against: str
    is_active: bool  # whether it is asked now
    share: float  # of the live queries that it is, or was last, asked; 0 when it never was
    started: str  # when it was last put there, ISO 8601 in UTC; empty when it never was
    by: str  # who put it there
    stopped: str  # when that ended; empty while it goes on
    stopped_by: str  # who ended it
    why: str  # it ended
    dropped: int  # queries of the share that it was not asked, because the server had no time for them
    is_enough: bool  # whether there were enough queries to say anything
    total: ShadowLine | None  # over all languages; None before the first query
    languages: tuple[ShadowLine, ...]  # a line each, the most asked first


@dataclass(frozen=True, slots=True)
class AskedLanguage:
    """How often one language was asked for lately."""

    language: str  # a tag, or `und` where nobody can tell
    queries: int  # that were answered
    unanswered: int  # of these, where probably nothing of the gallery fitted
    share: float  # of all queries, 0 to 1
    is_learned: bool  # whether the live release knows it


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
