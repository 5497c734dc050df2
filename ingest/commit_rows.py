"""Commits in the database of a catalog: bytes under numbers, each of which is written once."""

from __future__ import annotations

import time
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from ingest import postgres
from ingest.engines import writing
from ingest.errors import CatalogError, CatalogHeld, CatalogUnreachable, CommitUnknown
from ingest.postgres import commits
from ingest.postgres_connection import connect, shown, why

_AGAIN_SECONDS = 30.0  # that a database which stopped answering as a commit was written is asked again
_PUT = sa.text("INSERT INTO catalog_commits VALUES (:number, :data) ON CONFLICT DO NOTHING")


class CommitRows:
    """The rows of one database. What is written is its owner's (see `ingest.engines.open_engine`)."""

    def __init__(self, place: str, *, owner: str = "") -> None:
        self._engine = connect(place, read_only=False)
        self._engine.update_execution_options(**{postgres.OWNER: owner})
        self._closing = weakref.finalize(self, self._engine.dispose)

    def numbers(self) -> list[int]:
        """Returns all numbers in use, ascending.

        Raises:
            CatalogUnreachable: the database does not answer.
            CatalogError: it has no commits, or lets this user read none.
        """
        with self._reading() as connection:
            return list(connection.scalars(sa.select(commits.c.number).order_by(commits.c.number)))

    def read(self, number: int) -> bytes | None:
        """Returns what was written under a number, or None.

        Raises:
            CatalogUnreachable, CatalogError: as of `numbers`.
        """
        return self.read_many([number]).get(number)

    def read_many(self, numbers: Collection[int]) -> dict[int, bytes]:
        """Returns what was written under some numbers.

        Raises:
            CatalogUnreachable, CatalogError: as of `numbers`.
        """
        if not numbers:
            return {}
        query = sa.select(commits.c.number, commits.c.data)
        asked = commits.c.number.between(min(numbers), max(numbers))
        with self._reading() as connection:
            found = {number: bytes(data) for number, data in connection.execute(query.where(asked))}
        wanted = set(numbers)
        return {number: data for number, data in found.items() if number in wanted}

    def put_if_absent(self, number: int, data: bytes) -> bool:
        """Writes under a number that nobody has written under; says whether that was so.

        Raises:
            CommitUnknown: the database stopped answering at the end; it may have been written.
            CatalogUnreachable: the database does not answer; nothing was written.
            CatalogHeld, CatalogMoved, CatalogError: nothing was written, as `ingest.engines.writing` says.
        """
        is_sent = False
        try:
            with writing(self._engine) as connection:
                is_sent = True
                return self._put(connection, number, data)
        except CatalogUnreachable:
            if not is_sent:
                raise
        end = time.monotonic() + _AGAIN_SECONDS
        while True:
            try:
                # The database may still be at it: who writes again waits for that.
                with writing(self._engine) as connection:
                    return self._put(connection, number, data) or self._is_ours(connection, number, data)
            except (CatalogUnreachable, CatalogHeld) as error:
                if time.monotonic() > end:
                    raise CommitUnknown(str(error)) from error
                time.sleep(1)

    @staticmethod
    def _put(connection: sa.Connection, number: int, data: bytes) -> bool:
        return connection.execute(_PUT, {"number": number, "data": data}).rowcount == 1

    @staticmethod
    def _is_ours(connection: sa.Connection, number: int, data: bytes) -> bool:
        return connection.scalar(sa.select(commits.c.data).where(commits.c.number == number)) == data

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise CatalogError(
                f"The commits in {shown(self._engine)} cannot be read ({why(error.orig)})."
            ) from error
