"""How a catalog is carried from one place to another, and written to a file: every row is copied, and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ingest import catalog, postgres, sqlite
from ingest.engines import Place, index_words, kind_of, open_engine, writing
from ingest.errors import CatalogError
from ingest.postgres_connection import plain
from ingest.schema import SCHEMA
from ingest.tables import LEFT, metadata

__all__ = [
    "carry",
    "catalog",
    "copy_rows",
    "held",
]  # a catalog has all tables, which are known when it is imported

_ROWS = 1000  # that are carried at once
_MADE_ANEW = {"alembic_version"}


def carry(source: Place, target: Place, decide: Callable[[], None], owner: str = "") -> int:
    """Carries a catalog to another place, where there is none; returns of how many rows.

    Readers go on meanwhile, and writers wait. Then the old place is closed to writers, and `decide` has everybody open
    the new one. Killed in between, which is a moment, nobody can write anywhere until it is called again, for the same
    `owner`; killed before, all is as it was.

    Raises:
        CatalogMissing: there is none at `source`.
        CatalogUnreachable: a database does not answer.
        CatalogError: there is one at `target`, or what was copied there is something else, or `source` is another's.
    """
    come, go = kind_of(target), kind_of(source)
    with ExitStack() as stack:
        there = come.connect(target, read_only=False)
        stack.callback(there.dispose)
        here = go.connect(source, read_only=False)
        stack.callback(here.dispose)
        here.update_execution_options(owner=owner)  # nobody moves what is another's
        _reopen(source, here, owner)
        with writing(here) as old:
            with come.making(there, owner) as new:
                count = copy_all(old, new)
            go.set_number(old, LEFT)
        try:
            decide()
        except BaseException:
            _reopen(source, here, owner)
            raise
        with writing(there) as new:
            come.set_number(new, SCHEMA)
    return count


def _reopen(place: Place, engine: sa.Engine, owner: str) -> None:
    """Opens a place to writers again that was left for another one, which nobody has gone to.

    Raises:
        CatalogMissing: there is no catalog.
    """
    kind = kind_of(place)
    with kind.locked(engine) as connection:
        if kind.number_of(connection) == LEFT:
            kind.set_number(connection, SCHEMA)
    open_engine(place, read_only=False, owner=owner).dispose()


@contextmanager
def held(place: Place) -> Iterator[sa.Connection]:
    """Holds a catalog as it is in this moment, for reading.

    Raises:
        CatalogMissing: there is none.
        CatalogUnreachable: the database does not answer.
    """
    engine = open_engine(place, read_only=True)
    try:
        with engine.connect() as connection:
            connection.execute(sa.text("SELECT count(*) FROM chunks"))  # only now it is held
            yield connection
    finally:
        engine.dispose()


def copy_rows(source: sa.Connection, target: Path) -> None:
    """Writes a new file of SQLite's with all rows of a catalog, as a connection sees them.

    Raises:
        CatalogFull: the disk has no room.
    """
    engine = sqlite.connect(target, read_only=False)
    try:
        with sqlite.making(engine) as new:
            copy_all(source, new)
            sqlite.set_number(new, SCHEMA)
    finally:
        engine.dispose()


def copy_all(source: sa.Connection, target: sa.Connection) -> int:
    """Copies every row into an empty catalog, and compares them; returns how many.

    Raises:
        CatalogError: the copy holds something else, or the catalog what cannot be copied.
    """
    is_postgres = target.dialect.name == "postgresql"
    if source.dialect.name == sqlite.NAME:
        _require_whole(source, is_strict=is_postgres)
    count = 0
    for table in metadata.sorted_tables:
        with _ordered(source, table) as rows:
            for some in rows.partitions(_ROWS):
                target.execute(table.insert(), [row._asdict() for row in some])
                count += len(some)
        with _ordered(source, table) as rows, _ordered(target, table) as copies:
            for row, copied in zip_longest(rows, copies):
                if (
                    row is None
                    or copied is None
                    or tuple(copied) != (_plain(row) if is_postgres else tuple(row))
                ):
                    raise CatalogError(
                        f"A row of {table.name} was not copied as it is; nothing was changed: {(row or copied)[:2]}"
                    )
        if is_postgres:
            postgres.count_on(target, table)
    index_words(target)
    if is_postgres:
        postgres.look_at_tables(target)
    return count


def _require_whole(source: sa.Connection, *, is_strict: bool) -> None:
    """Refuses a file with a table that would be left behind; a database may hold tables of others beside ours.

    Raises:
        CatalogError: it has one, or, where that is looked at, rows that refer to rows that are not there.
    """
    strange = set(sa.inspect(source).get_table_names()) - set(metadata.tables) - _MADE_ANEW
    strange = {name for name in strange if not name.startswith("captions_text")}
    if strange:
        raise CatalogError(f"The catalog has a table {min(strange)!r}, which this Perennial does not know.")
    if is_strict and source.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
        raise CatalogError(
            "The catalog has rows that refer to rows that are not there, which no database takes. Nothing was "
            "changed; `perennial doctor` says more."
        )


def _ordered(connection: sa.Connection, table: sa.Table) -> sa.CursorResult[Any]:
    query = sa.select(table).order_by(*table.primary_key)
    return connection.execute(query, execution_options={"yield_per": _ROWS})


def _plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(plain, row))
