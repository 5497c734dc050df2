"""Where a catalog lies: in a file of SQLite's, or in a database of PostgreSQL's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import sqlalchemy as sa

from ingest import sqlite
from ingest.fence import require_held

POSTGRESQL = "postgresql"
Place = Path | str
"""A file, or the address of a database."""


def open_engine(place: Place, *, read_only: bool, owner: str = "") -> sa.Engine:
    """Opens the file at a path, making its tables when it is new and writable, or the database at an address.

    A database is written for its `owner` alone, or for anybody where one of both is not said; a file lies in the folder
    of its home.

    Raises:
        CatalogMissing: there is none; a file that may be written is made.
        CatalogTooNew: written by a newer release.
        CatalogFull: the disk has no room for what SQLite writes beside the file.
        CatalogUnreachable: the database does not answer.
        MayNotWrite: it may only be read.
        CatalogError: it is no catalog, or that of another owner, or the address cannot be used.
    """
    if isinstance(place, Path):
        return sqlite.open_engine(place, read_only=read_only)
    engine: sa.Engine = kind_of(place).open_engine(place, read_only=read_only, owner=owner)
    return engine


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction: all of it is recorded, or nothing.

    Raises:
        CatalogFull: the disk has no room.
        CatalogUnreachable: the database does not answer.
        CatalogHeld: another writes for too long.
        CatalogMoved: the catalog was carried away.
        LeaseLost: it was begun under a lease that another machine has now.
        CatalogError: it was opened read-only.
    """
    with kind_of(engine.dialect.name).writing(engine) as connection:
        require_held(connection)
        yield connection


def index_words(connection: sa.Connection) -> None:
    """Enters the words of captions that came last; triggers of SQLite's do so by themselves."""
    if connection.dialect.name == POSTGRESQL:
        kind_of(POSTGRESQL).index_words(connection)


def kind_of(place: Place) -> ModuleType:
    """Returns the module that knows the database of a place: an address, a name of SQLAlchemy's, or a file.

    PostgreSQL's costs a twentieth of a second to load.
    """
    if isinstance(place, Path) or place == sqlite.NAME:
        return sqlite
    from ingest import postgres

    return postgres
