"""What people said of answers: one table, in which a person's newest word on the same thing counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from sqlalchemy import Engine, select
from sqlalchemy.dialects.sqlite import insert as upsert

from ingest.errors import BadOption
from ingest.jobs import now
from ingest.schema import feedback, writing

THUMBS = ("up", "down")
CHOICES = ("a", "b", "tie", "both_bad")


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    """One judgement of an answer: a thumb on a picture, or a vote between two releases."""

    id: int  # stable
    created: str  # ISO 8601 in UTC, of the newest word
    by: str  # who said so
    query: str  # that was asked
    language: str  # it was asked in, or "auto"
    release: str  # that answered; of a vote, release A
    other: str  # of a vote, release B; empty for a thumb
    image_id: str  # of a thumb; empty for a vote
    verdict: str  # one of `THUMBS` or of `CHOICES`


class FeedbackTable:
    """Feedback in the catalog's database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def thumb(
        self, *, by: str, query: str, language: str, release: str, image_id: str, verdict: str
    ) -> FeedbackRecord:
        """Keeps a thumb on a picture, in place of the same person's earlier one.

        Raises:
            BadOption: there is no such thumb.
        """
        return self._keep(THUMBS, verdict, by, query, language, release, image_id=image_id)

    def vote(
        self, *, by: str, query: str, language: str, release: str, other: str, verdict: str
    ) -> FeedbackRecord:
        """Keeps a vote between two releases, in place of the same person's earlier one.

        Raises:
            BadOption: there is no such choice.
        """
        return self._keep(CHOICES, verdict, by, query, language, release, other=other)

    def all(self, *, limit: int | None = None) -> list[FeedbackRecord]:
        """Returns all feedback, newest first."""
        return self._records(limit=limit)

    def _keep(
        self,
        allowed: Sequence[str],
        verdict: str,
        by: str,
        query: str,
        language: str,
        release: str,
        *,
        other: str = "",
        image_id: str = "",
    ) -> FeedbackRecord:
        if verdict not in allowed:
            raise BadOption(f"{verdict[:40]!r} is no verdict here; use one of {', '.join(allowed)}.")
        same = {"by": by, "query": query, "release": release, "other": other, "image_id": image_id}
        said = {"created": now(), "language": language, "verdict": verdict}
        statement = upsert(feedback).values(**same, **said)
        statement = statement.on_conflict_do_update(index_elements=list(same), set_=said)
        with writing(self._engine) as connection:
            seq = connection.execute(statement.returning(feedback.c.seq)).scalar_one()
        return self._records(seq=seq)[0]

    def _records(self, *, seq: int | None = None, limit: int | None = None) -> list[FeedbackRecord]:
        columns = [feedback.c.seq, *(feedback.c[field.name] for field in fields(FeedbackRecord)[1:])]
        query = select(*columns).order_by(feedback.c.created.desc(), feedback.c.seq.desc()).limit(limit)
        if seq is not None:
            query = query.where(feedback.c.seq == seq)
        with self._engine.connect() as connection:
            return [FeedbackRecord(*row) for row in connection.execute(query)]
