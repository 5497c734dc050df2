"""A catalog in SQLite: one file, and how a connection to it is set up."""

import logging
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, QueuePool

from ingest.dialect import TOKENIZER
from ingest.errors import (
    CatalogDamaged,
    CatalogError,
    CatalogFull,
    CatalogHeld,
    CatalogMissing,
    CatalogMoved,
    CatalogTooNew,
    MayNotWrite,
)
from ingest.migration import copy_before, migrate
from ingest.schema import SCHEMA
from ingest.sentence import phrase
from ingest.tables import COMING, LEFT, as_json, metadata, of_json

logger = logging.getLogger(__name__)

BUSY_MILLISECONDS = 30_000  # one writer at a time; an intake's transaction of 100,000 rows takes seconds
NAME = "sqlite"
_WRITE = "catalog_write"

FULL_TEXT = (
    "CREATE VIRTUAL TABLE captions_text USING fts5("
    f"text, content='captions', content_rowid='seq', tokenize='{TOKENIZER}')",
    "CREATE TRIGGER captions_inserted AFTER INSERT ON captions BEGIN "
    "INSERT INTO captions_text(rowid, text) VALUES (new.seq, new.text); END",
    "CREATE TRIGGER captions_deleted AFTER DELETE ON captions BEGIN "
    "INSERT INTO captions_text(captions_text, rowid, text) VALUES ('delete', old.seq, old.text); END",
)
"""The index of words and its triggers; no catalog has other triggers, views or virtual tables."""

_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_WRITE)


def open_engine(path: Path, *, read_only: bool) -> sa.Engine:
    """Opens the database file, making its tables when it is new and writable.

    Raises:
        CatalogMissing: `read_only` and there is no file, or it holds no tables yet.
        CatalogTooNew: written by a newer release.
        CatalogFull: the disk has no room for what SQLite writes beside the file.
        MayNotWrite: it may only be read.
        CatalogError: the file is not a catalog.
    """
    if read_only and not path.exists():
        raise CatalogMissing(f"There is no catalog at {path} yet. Run `perennial init` first.")
    if not read_only:
        path.parent.mkdir(parents=True, exist_ok=True)
    engine = connect(path, read_only=read_only)
    try:
        _check_schema(engine, path, read_only=read_only)
    except (DatabaseError, sqlite3.DatabaseError) as error:
        engine.dispose()
        cause = getattr(error, "orig", error)
        _require_sound(cause, path)
        if getattr(cause, "sqlite_errorcode", 0) in _NO_ROOM:
            raise CatalogFull(
                phrase(
                    "The catalog {file} cannot be opened, because the disk is full. Nothing is lost: free some space "
                    "and try again.",
                    file=path,
                )
            ) from error
        if _may_only_be_read(cause, path):
            raise MayNotWrite(path) from error
        raise CatalogError(
            f"{path} cannot be opened as a catalog ({cause}). Restore it from a backup."
        ) from error
    except CatalogError:
        engine.dispose()
        raise
    return engine


def connect(path: Path, *, read_only: bool) -> sa.Engine:
    """Returns an engine for a file, which is not opened yet."""
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: _connected(path, read_only=read_only),
        poolclass=QueuePool,
        pool_size=4,
        max_overflow=28,
        json_serializer=as_json,
        json_deserializer=of_json,
    )
    sa.event.listen(engine, "connect", _set_read_pragmas if read_only else _set_pragmas)
    sa.event.listen(engine, "begin", _begin)
    sa.event.listen(engine, "handle_error", lambda context: _require_sound(context.original_exception, path))
    return engine


def _connected(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Connects to the file.

    On a disk that is full or may only be read SQLite cannot make the file that its processes share. Then nobody else
    has the catalog open, and one without a journal can be read as it lies.
    """
    uri, beside = path.resolve().as_uri(), path.with_name(f"{path.name}-wal")
    seconds = BUSY_MILLISECONDS / 1000
    connection = sqlite3.connect(
        f"{uri}?mode={'ro' if read_only else 'rwc'}", uri=True, check_same_thread=False, timeout=seconds
    )
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        is_stuck = getattr(error, "sqlite_errorcode", 0) in _NO_ROOM or _may_only_be_read(error, path)
        if not (is_stuck and read_only) or (beside.exists() and beside.stat().st_size):
            return connection  # whoever reads next is told
        connection.close()
        connection = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    return connection


def _may_only_be_read(error: BaseException, path: Path) -> bool:
    """Whether SQLite failed because it may not write the file, or beside it."""
    is_refused = getattr(error, "sqlite_errorcode", 0) & 0xFF in (
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
    )
    return is_refused and not all(os.access(one, os.W_OK) for one in (path, path.parent))


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction; see `ingest.engines.writing`."""
    with locked(engine) as connection:
        if number_of(connection) == LEFT:
            raise CatalogMoved
        yield connection


@contextmanager
def making(engine: sa.Engine, owner: str = "") -> Iterator[sa.Connection]:
    """Makes an empty catalog and runs a block that fills it, as one transaction; it is not one to be opened yet.

    Whose it is makes no difference: a file lies in the folder of its home.

    Raises:
        CatalogFull: the disk has no room.
        CatalogError: the file holds a catalog.
    """
    with locked(engine) as connection:
        if number_of(connection) not in {0, LEFT, COMING}:
            (_, _, file) = connection.exec_driver_sql("PRAGMA database_list").one()
            raise CatalogError(f"{file} holds a catalog already. Put it aside, and try again.")
        connection.exec_driver_sql("DROP TABLE IF EXISTS captions_text")
        metadata.drop_all(connection)
        _make_tables(connection)
        set_number(connection, COMING)
        yield connection


@contextmanager
def locked(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction, whatever the number of the schema.

    Raises:
        CatalogFull: the disk has no room.
        CatalogHeld: another writes for too long.
        CatalogError: the catalog was opened read-only.
    """
    try:
        with engine.execution_options(**{_WRITE: True}).begin() as connection:
            yield connection
    except OperationalError as error:
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
            raise CatalogHeld from error
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise CatalogFull(
                f"Writing to the catalog failed ({error.orig}); nothing was recorded. "
                "Free some disk space and try again."
            ) from error
        if getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY:
            raise CatalogError(
                "Nothing was recorded: the catalog could only be opened for reading, because its disk is full or may "
                "not be written. Free some space, or run this as the user whom the home belongs to."
            ) from error
        raise CatalogError(
            f"The catalog could not be written ({error.orig}); nothing was recorded."
        ) from error


def _require_sound(error: BaseException, path: Path) -> None:
    """Says it in a sentence where SQLite finds the file damaged, whatever it was asked.

    Raises:
        CatalogDamaged: it does.
    """
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        raise CatalogDamaged(
            phrase(
                "The catalog {file} is damaged ({why}). `perennial repair` puts its copy in its place.",
                file=path,
                why=error,
            )
        ) from error


def _set_read_pragmas(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    connection.isolation_level = None  # transactions are begun by `_begin`, not guessed by the driver
    connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def _set_pragmas(connection: sqlite3.Connection, entry: ConnectionPoolEntry) -> None:
    _set_read_pragmas(connection, entry)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin(connection: sa.Connection) -> None:
    # A writer takes its lock first: upgrading a read transaction would fail when another writer came between.
    writing = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _check_schema(engine: sa.Engine, path: Path, *, read_only: bool) -> None:
    with engine.connect() as connection:
        found = number_of(connection)
    if found == 0 and read_only:
        raise CatalogMissing(f"The catalog at {path} is empty. Run `perennial init` first.")
    if found == 0:
        found = _create(engine)
    if found == LEFT:
        raise CatalogMissing(
            f"The catalog that was in {path} was carried to another place. Where `perennial home move` was cut off, "
            "run it again."
        )
    if found == COMING:
        if not read_only:
            with locked(engine) as connection:
                set_number(connection, SCHEMA)
        return
    if found > SCHEMA:
        raise CatalogTooNew(
            f"The catalog at {path} has schema {found}; this Perennial reads up to {SCHEMA}. "
            "Install a newer release."
        )
    if found < SCHEMA:
        _bring_up_to_date(engine, path, found, read_only=read_only)


def _bring_up_to_date(engine: sa.Engine, path: Path, found: int, *, read_only: bool) -> None:
    if read_only:  # it cannot be read as it is: somebody has to write once
        try:
            open_engine(path, read_only=False).dispose()
        except CatalogError as error:
            raise CatalogError(
                f"The catalog at {path} is of an earlier release (schema {found}) and has to be written once "
                f"to be read by this one (schema {SCHEMA}), which failed: {error} Make the file and its folder "
                "writable, or run `perennial status` as somebody who may write them."
            ) from error
        return
    copy = copy_before(path, found)
    with writing(engine) as connection:
        # Asked again: another process may have migrated while this one waited for the lock.
        now = number_of(connection)
        if now < SCHEMA:
            migrate(connection, now, SCHEMA)
            logger.info("the catalog went from schema %d to %d; as it was it lies in %s", now, SCHEMA, copy)


def set_number(connection: sa.Connection, number: int) -> None:
    """Writes the number of the schema; nobody writes to a catalog that was left, nor does an earlier program."""
    connection.exec_driver_sql(f"PRAGMA user_version={number}")
    for table in metadata.sorted_tables:
        for verb in ("INSERT", "UPDATE", "DELETE"):
            name = f"left_{verb}_{table.name}"
            connection.exec_driver_sql(
                f"CREATE TRIGGER {name} BEFORE {verb} ON {table.name} "
                "BEGIN SELECT RAISE(ABORT, 'the catalog lies in another place now'); END"
                if number == LEFT
                else f"DROP TRIGGER IF EXISTS {name}"
            )


def number_of(connection: sa.Connection) -> int:
    """Returns the number of the schema; 0 where there are no tables."""
    if not connection.in_transaction():
        connection.begin()
    # Asked in each transaction that writes: SQLAlchemy would take ten times as long.
    asked: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    return int(asked.execute("PRAGMA user_version").fetchone()[0])


def _create(engine: sa.Engine) -> int:
    with writing(engine) as connection:
        found = number_of(connection)
        if found:  # another process made the tables while this one waited for the lock
            return found
        _make_tables(connection)
        connection.exec_driver_sql(f"PRAGMA user_version={SCHEMA}")
    return SCHEMA


def _make_tables(connection: sa.Connection) -> None:
    metadata.create_all(connection, checkfirst=False)
    for statement in FULL_TEXT:
        connection.exec_driver_sql(statement)
