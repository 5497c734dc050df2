"""How often people search in each language, by day: counts alone, never the queries."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Column, Text, func, select

from ingest.dialect import upsert
from ingest.engines import writing
from ingest.tables import TableQueries, record_table


@dataclass(frozen=True, slots=True)
class AskedRecord:
    """How often people searched in a language."""

    language: str  # a tag, or `und` where it could not be detected
    queries: int  # how many were answered
    unanswered: int  # how many of these probably found nothing that fits


asked = record_table("asked", AskedRecord, Column("day", Text, primary_key=True), keys=["language"])


class AskedTable(TableQueries):
    """The counts in the catalog's database."""

    def add(self, day: date, counts: Mapping[str, tuple[int, int]]) -> None:
        """Adds to a day's counts.

        A day is one in UTC; a count is of the queries in a language, and of those among them that were not answered.
        """
        rows = [
            {"day": day.isoformat(), "language": language, "queries": queries, "unanswered": unanswered}
            for language, (queries, unanswered) in counts.items()
        ]
        if not rows:
            return
        statement = upsert(asked)
        added = {name: asked.c[name] + statement.excluded[name] for name in ("queries", "unanswered")}
        with writing(self._engine) as connection:
            connection.execute(
                statement.on_conflict_do_update(index_elements=["day", "language"], set_=added), rows
            )

    def since(self, day: date) -> list[AskedRecord]:
        """Returns the counts from a day on (UTC), the most asked language first."""
        total = func.sum(asked.c.queries)
        query = (
            select(asked.c.language, total, func.sum(asked.c.unanswered))
            .where(asked.c.day >= day.isoformat())
            .group_by(asked.c.language)
            .order_by(total.desc(), asked.c.language)
        )
        return [AskedRecord(*row) for row in self._rows(query)]
