"""A catalog in PostgreSQL: the same tables, in a database that several machines reach.

One writer at a time holds an advisory lock until its transaction ends, as SQLite's writer holds its file. A reader sees
one moment for as long as its transaction lasts. A password is never part of an address: libpq finds it in PGPASSWORD,
in ~/.pgpass, or in the service that the address names (https://www.postgresql.org/docs/current/libpq-pgpass.html).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, TSVECTOR
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError
from sqlalchemy.ext.compiler import compiles

from ingest.dialect import vector_of, words_of
from ingest.errors import CatalogError, CatalogMissing, CatalogMoved, CatalogTooNew, CatalogUnreachable
from ingest.schema import SCHEMA, captions, images
from ingest.sentence import phrase
from ingest.tables import COMING, LEFT, as_json, metadata, of_json

logger = logging.getLogger(__name__)

OLDEST = 16  # version of PostgreSQL
_READ_ONLY = "25006"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
# Of the schema: two homes may share a database.
_LOCK = sa.select(
    sa.func.pg_advisory_xact_lock(0x7065_7265, sa.func.hashtext(sa.func.current_schema()))  # "pere"
)
_SCHEME = "postgresql"
_own = sa.MetaData()
_number = sa.Table(
    "catalog_schema",
    _own,
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("owner", sa.Text, nullable=False),  # whose catalog is on its way here
)
_words = sa.Table(
    "caption_words",
    _own,
    sa.Column("caption", sa.BigInteger, primary_key=True),
    sa.Column("words", ARRAY(sa.Text), nullable=False),  # in their order
    sa.Column("vector", TSVECTOR, nullable=False),
    sa.Index("captions_by_word", "vector", postgresql_using="gin"),
)
# How many captions have words in the index, and how many these are together, by which BM25 weighs.
_totals = sa.Table(
    "caption_totals",
    _own,
    sa.Column("captions", sa.BigInteger, nullable=False),
    sa.Column("words_all", sa.BigInteger, nullable=False),
)
_FOLLOW = (
    "ALTER TABLE caption_words ADD FOREIGN KEY (caption) REFERENCES captions (seq) ON DELETE CASCADE",
    "INSERT INTO caption_totals VALUES (0, 0)",
    """CREATE OR REPLACE FUNCTION count_caption_words() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
        sign integer := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
    BEGIN
        UPDATE caption_totals SET (captions, words_all) = (
            SELECT captions + sign * count(*), words_all + sign * coalesce(sum(cardinality(words)), 0) FROM changed
        );
        RETURN NULL;
    END $$""",
    *(
        f"CREATE TRIGGER count_{happens} AFTER {happens} ON caption_words REFERENCING {those} TABLE AS changed "
        "FOR EACH STATEMENT EXECUTE FUNCTION count_caption_words()"
        for happens, those in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ),
)
_ENTER = sa.text(
    "INSERT INTO caption_words SELECT number, string_to_array(words, chr(10)), CAST(vector AS tsvector) FROM unnest("
    "CAST(:numbers AS bigint[]), CAST(:words AS text[]), CAST(:vectors AS text[])) AS one (number, words, vector)"
)


# Said here and not with the table: SQLAlchemy would load all of PostgreSQL's for it.
(_outside,) = (one for one in images.indexes if one.name == "images_outside")
_outside.dialect_options["postgresql"]["where"] = sa.text("NOT in_gallery")


@compiles(sa.Text, "postgresql")
@compiles(sa.String, "postgresql")
def _text(kind: sa.String, compiler: Any, **how: Any) -> str:
    # By code point, as SQLite compares.
    return 'TEXT COLLATE "C"'


@compiles(OnConflictDoNothing, "postgresql")
@compiles(OnConflictDoUpdate, "postgresql")
def _on_conflict(clause: Any, compiler: Any, **how: Any) -> str:
    # SQLite's, which is loaded already, has all but the name of a constraint.
    clause.constraint_target = None
    return str(getattr(compiler, f"visit_{clause.__visit_name__}")(clause, **how))


def open_engine(url: str, *, read_only: bool) -> sa.Engine:
    """Connects to a database that holds a catalog.

    Raises:
        CatalogMissing: it holds none.
        CatalogTooNew: the catalog was written by a newer release.
        CatalogUnreachable: the database cannot be reached, or does not let this user in.
        CatalogError: the address, or the database, cannot be used.
    """
    engine = connect(url, read_only=read_only)
    try:
        with engine.connect() as connection:
            found = number_of(connection)
        if found in {0, LEFT}:
            raise CatalogMissing(
                f"There is no catalog in {shown(engine)}. Where `perennial home move` was cut off, run it again."
            )
        if found == COMING and not read_only:
            with locked(engine) as connection:
                set_number(connection, SCHEMA)
        if 0 < found < SCHEMA:
            raise CatalogError(
                f"The catalog in {shown(engine)} has schema {found}, of an earlier release; this one reads {SCHEMA}. "
                "Carry it back with that release (`perennial home move --to sqlite`), and then here again."
            )
        if found != COMING and found > SCHEMA:
            raise CatalogTooNew(
                f"The catalog in {shown(engine)} has schema {found}; this Perennial reads up to {SCHEMA}. "
                "Install a newer release."
            )
    except DBAPIError as error:
        engine.dispose()
        raise CatalogError(f"The catalog in {shown(engine)} cannot be used ({_why(error.orig)}).") from error
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextmanager
def making(engine: sa.Engine, owner: str = "") -> Iterator[sa.Connection]:
    """Makes an empty catalog and runs a block that fills it, as one transaction; it is not one to be opened yet.

    What was left there is removed, and what an `owner` did not finish.

    Raises:
        CatalogUnreachable: the database cannot be reached, or does not let this user in.
        CatalogError: it holds a catalog, or tables of others, or cannot hold one.
    """
    with locked(engine) as connection:
        _require_fit(engine, connection)
        there, own = _tables(connection), {*metadata.tables, *_own.tables}
        number = number_of(connection)
        is_ours = number == COMING and connection.scalar(sa.select(_number.c.owner)) == owner
        if number not in {0, LEFT} and not is_ours:
            raise CatalogError(
                f"{shown(engine)} holds a catalog already. Name a database that holds none, or another schema of it."
            )
        if number == 0 and there & own:
            raise CatalogError(
                f"{shown(engine)} has a table {min(there & own)!r} already, which belongs to others. Name another "
                "database, or another schema of it."
            )
        for tables in (_own, metadata):
            present = [one for one in tables.sorted_tables if one.name in there]
            tables.drop_all(connection, present, checkfirst=False)
        for tables in (metadata, _own):
            tables.create_all(connection, checkfirst=False)
        for statement in _FOLLOW:
            connection.exec_driver_sql(statement)
        connection.execute(_number.insert().values(number=COMING, owner=owner))
        yield connection


def shown(engine: sa.Engine) -> str:
    """Returns where a database is, as people write it."""
    return engine.url.set(drivername=_SCHEME).render_as_string(hide_password=True)


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction; see `ingest.engines.writing`."""
    with locked(engine) as connection:
        if connection.scalar(sa.select(_number.c.number)) == LEFT:
            raise CatalogMoved
        yield connection


@contextmanager
def locked(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction, whatever the number of the schema.

    Raises:
        CatalogUnreachable: the database does not answer.
        CatalogError: the catalog was opened read-only, another process holds it for too long, or rights are missing.
    """
    # Each statement sees what was written before it: a moment that was fixed before the lock would be too early.
    try:
        with engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
            connection.execute(_LOCK)
            yield connection
    except IntegrityError:
        raise
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", "") == _READ_ONLY:
            raise CatalogError("Nothing was recorded: the catalog was opened for reading.") from error
        raise CatalogError(
            f"The catalog could not be written ({_why(error.orig)}); nothing was recorded."
        ) from error


def set_number(connection: sa.Connection, number: int) -> None:
    """Writes the number of the schema."""
    connection.execute(_number.update().values(number=number))


def index_words(connection: sa.Connection) -> None:
    """Enters the words of the captions that came last, which are those with the highest numbers."""
    last = connection.scalar(sa.select(sa.func.max(_words.c.caption))) or 0
    query = sa.select(captions.c.seq, captions.c.text).where(captions.c.seq > last).order_by(captions.c.seq)
    while some := connection.execute(query.where(captions.c.seq > last).limit(10_000)).all():
        last = some[-1].seq
        read = words_of([text for _, text in some])
        connection.execute(
            _ENTER,
            {
                "numbers": [seq for seq, _ in some],
                "words": list(map("\n".join, read)),
                "vectors": list(map(vector_of, read)),
            },
        )


def count_on(connection: sa.Connection, table: sa.Table) -> None:
    """Has the next row of a table be numbered after the last; its rows came with their numbers."""
    column = table.c.get("seq")
    if column is not None:
        last = sa.select(sa.func.coalesce(sa.func.max(column), 0) + 1).scalar_subquery()
        named = sa.func.pg_get_serial_sequence(table.name, "seq")
        connection.execute(sa.select(sa.func.setval(named, last, sa.false())))


def look_at_tables(connection: sa.Connection) -> None:
    """Has the planner know how much there is; by itself it looks a minute after much has come."""
    connection.exec_driver_sql(f"ANALYZE {', '.join([*metadata.tables, _words.name])}")


def connect(url: str, *, read_only: bool) -> sa.Engine:
    """Returns an engine for a database, which is not asked yet.

    Raises:
        CatalogError: the address cannot be used, or what connects to it is not installed.
    """
    try:
        engine = sa.create_engine(
            _address(url).set(drivername=f"{_SCHEME}+psycopg"),
            isolation_level="REPEATABLE READ",
            pool_size=4,
            max_overflow=28,
            pool_pre_ping=True,  # one that was restarted is connected to again
            json_serializer=json_text,
            json_deserializer=of_json,
            execution_options={"postgresql_readonly": read_only},
            connect_args={"connect_timeout": 10},
        )
    except ModuleNotFoundError as error:
        raise CatalogError(
            "What connects to PostgreSQL is not installed here: `pip install 'perennial-search[postgres]'`."
        ) from error
    sa.event.listen(engine, "connect", _set_up)
    sa.event.listen(engine, "handle_error", _explain)
    return engine


def _address(url: str) -> sa.URL:
    written = "Write it like postgresql://user@host/database."
    try:
        address = sa.make_url(url)
    except (ArgumentError, ValueError) as error:
        raise CatalogError(f"What was given is no address of a database. {written}") from error
    if address.password or any("password" in one for one in address.query):
        raise CatalogError(
            "The address of the catalog holds a password, which would lie in the home for everybody to read. Leave it "
            "out, and put it into PGPASSWORD or ~/.pgpass."
        )
    if address.drivername != _SCHEME:
        raise CatalogError(
            f"A catalog cannot lie in {address.drivername}: PostgreSQL is the one database that can hold it. {written}"
        )
    return address


def _set_up(connection: Any, _: object) -> None:
    connection.adapters.register_dumper(str, _without_nul())
    with connection.cursor() as cursor:
        # To compile what takes milliseconds would take seconds; a writer waits as long as for SQLite.
        cursor.execute("SET jit = off; SET lock_timeout = '30s'")
    connection.commit()


@cache
def _without_nul() -> type:
    """Returns what sends texts: a character that cannot be kept becomes the one that stands for such."""
    from psycopg.types.string import StrDumperUnknown

    class WithoutNul(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(plain(obj))

    return WithoutNul


_ESCAPED = re.compile(r"\\ud[89ab]..\\ud[c-f]..|\\u0000|\\ud[89a-f]..|\\.")
_PAIR = 12  # letters of two halves of one character


def json_text(document: Any) -> str:
    """Returns JSON as PostgreSQL keeps it: without NUL, halves of characters, and numbers that are none."""
    text = as_json(document)
    if "NaN" in text or "Infinity" in text:
        text = json.dumps(json.loads(text, parse_constant=lambda _: None))
    return _ESCAPED.sub(lambda found: found[0] if len(found[0]) in (2, _PAIR) else r"\ufffd", text)


def plain(value: Any) -> Any:
    """Returns a value of a row as PostgreSQL keeps it."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    return of_json(json_text(value)) if isinstance(value, dict | list) else value


def _explain(context: sa.engine.ExceptionContext) -> None:
    """Says in a sentence that the database cannot be reached.

    Raises:
        CatalogUnreachable: it cannot.
    """
    if context.is_pre_ping or context.engine is None:  # it connects anew
        return
    if context.is_disconnect or (
        context.connection is None and isinstance(context.sqlalchemy_exception, OperationalError)
    ):
        raise CatalogUnreachable(
            phrase(
                "The catalog in {url} cannot be reached ({why}). Nothing was lost: look whether the database runs, and "
                "whether it lets this user in.",
                url=shown(context.engine),
                why=_why(context.original_exception),
            )
        ) from context.original_exception


def _why(error: BaseException | None) -> str:
    return " ".join(str(error).split()).rstrip(".")


def number_of(connection: sa.Connection) -> int:
    """Returns the number of the schema; 0 where there is no catalog."""
    if _number.name not in _tables(connection):  # of this schema alone, not of others on its path
        return 0
    return int(connection.scalar(sa.select(_number.c.number)) or 0)


def _tables(connection: sa.Connection) -> set[str]:
    return set(
        sa.inspect(connection).get_table_names(str(connection.scalar(sa.select(sa.func.current_schema()))))
    )


def _require_fit(engine: sa.Engine, connection: sa.Connection) -> None:
    """Refuses a server that is too old, and a database that keeps texts in another encoding.

    Raises:
        CatalogError: it is one of these, or this user may make no tables in it.
    """
    version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
    encoding = str(connection.exec_driver_sql("SHOW server_encoding").scalar_one())
    may = connection.exec_driver_sql(
        "SELECT has_schema_privilege(current_schema(), 'CREATE') FROM (SELECT 1) AS one"
    ).scalar()
    why = ""
    if version < OLDEST:
        why = f"it is PostgreSQL {version}, and {OLDEST} or newer is needed"
    elif encoding != "UTF8":
        why = f"it keeps texts as {encoding}; make a database with ENCODING 'UTF8'"
    elif not may:
        why = "this user may make no tables there; grant CREATE on its schema"
    if why:
        raise CatalogError(f"{shown(engine)} cannot hold a catalog: {why}.")
