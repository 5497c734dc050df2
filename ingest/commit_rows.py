"""Commits in the database of a catalog: bytes under numbers, each of which is written once."""

from __future__ import annotations

import weakref

import sqlalchemy as sa

from ingest import postgres
from ingest.errors import CatalogUnreachable, CommitUnknown
from ingest.postgres_connection import connect

_PUT = sa.text("INSERT INTO commits VALUES (:number, :data) ON CONFLICT DO NOTHING")


class CommitRows:
    """The rows of one database. What is written is its owner's (see `ingest.engines.open_engine`)."""

    def __init__(self, place: str, *, owner: str = "") -> None:
        self._engine = connect(place, read_only=False)
        self._engine.update_execution_options(**{postgres.OWNER: owner})
        self._closing = weakref.finalize(self, self._engine.dispose)

    def are_kept(self) -> bool:
        """Whether the database has a place for commits; those of before 2026-11-28 have none.

        Raises:
            CatalogUnreachable: the database does not answer.
        """
        with self._engine.connect() as connection:
            return postgres.commits.name in postgres.tables_of(connection)

    def numbers(self) -> list[int]:
        """Returns all numbers in use, ascending.

        Raises:
            CatalogUnreachable: the database does not answer.
        """
        query = sa.select(postgres.commits.c.number).order_by(postgres.commits.c.number)
        with self._engine.connect() as connection:
            return list(connection.scalars(query))

    def read(self, number: int) -> bytes | None:
        """Returns what was written under a number, or None.

        Raises:
            CatalogUnreachable: the database does not answer.
        """
        query = sa.select(postgres.commits.c.data).where(postgres.commits.c.number == number)
        with self._engine.connect() as connection:
            found: bytes | None = connection.scalar(query)
            return found

    def put_if_absent(self, number: int, data: bytes) -> bool:
        """Writes under a number that nobody has written under; says whether that was so.

        Raises:
            CommitUnknown: the database stopped to answer at the end; it may have been written.
            CatalogUnreachable: the database does not answer; nothing was written.
            CatalogHeld, CatalogMoved, CatalogError: nothing was written, as `ingest.engines.writing` says.
        """
        is_sent = False
        try:
            with postgres.writing(self._engine) as connection:
                is_sent = True
                return connection.execute(_PUT, {"number": number, "data": data}).rowcount == 1
        except CatalogUnreachable as error:
            if not is_sent:
                raise
            try:
                found = self.read(number)
            except CatalogUnreachable as still:
                raise CommitUnknown(str(still)) from still
            if found is None:
                raise error
            return found == data
