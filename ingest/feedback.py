"""What people said of answers: one table, in which a person's newest word on the same thing counts."""

from dataclasses import dataclass

from sqlalchemy import UniqueConstraint, select

from ingest.dialect import upsert
from ingest.engines import writing
from ingest.errors import BadOption
from ingest.jobs import now
from ingest.tables import TableQueries, columns_of, record_table

THUMBS = ("up", "down")
CHOICES = ("a", "b", "tie", "both_bad")


@dataclass(frozen=True, slots=True)
class FeedbackRecord:
    """One judgement of an answer: a thumb on a picture, or a vote between two releases."""

    id: int  # never changes
    created: str  # ISO 8601 in UTC, of the newest word
    by: str  # who said so
    query: str  # the query that was answered
    language: str  # in which it was asked, or "auto"
    release: str  # the release that answered; of a vote, release A
    other: str  # of a vote, release B; empty for a thumb
    image_id: str  # of a thumb; empty for a vote
    verdict: str  # one of `THUMBS` or of `CHOICES`


_SAME = ("by", "query", "release", "other", "image_id")
feedback = record_table("feedback", FeedbackRecord, UniqueConstraint(*_SAME), long=["by", "query"])


class FeedbackTable(TableQueries):
    """Feedback in the catalog's database."""

    def keep(
        self,
        *,
        by: str,
        query: str,
        language: str,
        release: str,
        verdict: str,
        other: str = "",
        image_id: str = "",
    ) -> FeedbackRecord:
        """Keeps a thumb on a picture, or a vote between two releases, in place of the same person's earlier one.

        Raises:
            BadOption: there is no such thumb or choice.
        """
        allowed = CHOICES if other else THUMBS
        if verdict not in allowed:
            raise BadOption(f"{verdict[:40]!r} is no verdict here; use one of {', '.join(allowed)}.")
        same = {"by": by, "query": query, "release": release, "other": other, "image_id": image_id}
        said = {"created": now(), "language": language, "verdict": verdict}
        statement = upsert(feedback).values(**same, **said)
        statement = statement.on_conflict_do_update(
            index_elements=[feedback.c[name] for name in _SAME], set_=said
        )
        with writing(self._engine) as connection:
            seq = connection.execute(statement.returning(feedback.c.seq)).scalar_one()
        return FeedbackRecord(seq, verdict=verdict, language=language, created=str(said["created"]), **same)

    def all(self, *, limit: int | None = None) -> list[FeedbackRecord]:
        """Returns all feedback, newest first."""
        query = select(*columns_of(feedback, FeedbackRecord)).limit(limit)
        query = query.order_by(feedback.c.created.desc(), feedback.c.seq.desc())
        return [FeedbackRecord(*row) for row in self._rows(query)]
