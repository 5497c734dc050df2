"""A catalog in PostgreSQL: the same tables, in a database that several machines reach.

One writer at a time holds an advisory lock until its transaction ends, as SQLite's writer holds its file. A reader sees
one moment for as long as its transaction lasts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from shlex import quote
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, TSVECTOR
from sqlalchemy.dialects.sqlite.dml import OnConflictDoNothing, OnConflictDoUpdate
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.compiler import compiles

from ingest.dialect import vector_of, words_of
from ingest.errors import CatalogError, CatalogMissing, CatalogMoved, CatalogTooNew
from ingest.long_texts import hashed
from ingest.postgres_connection import connect, shown, why
from ingest.schema import SCHEMA, captions, images
from ingest.sentence import phrase
from ingest.tables import COMING, LEFT, metadata

logger = logging.getLogger(__name__)

OLDEST = 16  # version of PostgreSQL
SHARED = "shared:"
"""How an owner begins that is a home of several machines."""
OWNER = "owner"
"""The execution option of an engine that says for whom it writes."""
_READ_ONLY = "25006"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
# Of the schema: two homes may share a database.
_LOCK = sa.select(
    sa.func.pg_advisory_xact_lock(0x7065_7265, sa.func.hashtext(sa.func.current_schema()))  # "pere"
)
_own = sa.MetaData()
_number = sa.Table(
    "catalog_schema",
    _own,
    sa.Column("number", sa.Integer, nullable=False),
    # Whose catalog it is, in lines any of which tells; empty: it may be anybody's.
    sa.Column("owner", sa.Text, nullable=False),
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
# Which release is live since when (`app.home.commits`): each row is written once.
commits = sa.Table(
    "catalog_commits",
    _own,
    sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
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

# Of catalogs as they were on 2026-11-27.
_LONG_KEYS = (
    "ALTER TABLE sources DROP CONSTRAINT sources_pkey",
    "ALTER TABLE pins DROP CONSTRAINT pins_pkey",
    "ALTER TABLE feedback DROP CONSTRAINT feedback_by_query_release_other_image_id_key",
    "DROP INDEX sources_by_place, sources_by_key",
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
    clause = copy(clause)
    clause.constraint_target = None
    if clause.inferred_target_elements:
        clause.inferred_target_elements = hashed(clause.inferred_target_elements)
    return str(getattr(compiler, f"visit_{clause.__visit_name__}")(clause, **how))


def open_engine(url: str, *, read_only: bool, owner: str = "") -> sa.Engine:
    """Connects to a database that holds a catalog; one to be written has to be the owner's, in every transaction.

    Raises:
        CatalogMissing: it holds none.
        CatalogTooNew: the catalog was written by a newer release.
        CatalogUnreachable: the database cannot be reached, or does not let this user in.
        CatalogError: the address, or the database, cannot be used, or it is another owner's.
    """
    engine = connect(url, read_only=read_only)
    engine.update_execution_options(**{OWNER: owner})
    try:
        with engine.connect() as connection:
            _require_schema(connection)
            found = number_of(connection)
            known = "" if read_only or found in {0, LEFT} else _require_own(connection)[1]
        if found in {0, LEFT} and owner.startswith(SHARED):
            raise CatalogMissing(
                f"There is no catalog in {shown(engine)}: it was carried away, or the address is another's. Where it "
                "lies now, `perennial home join` makes this machine's folder anew."
            )
        if found in {0, LEFT}:
            raise CatalogMissing(
                f"There is no catalog in {shown(engine)}. Where `perennial home move` was cut off, run it again."
            )
        if found < SCHEMA:
            found = _bring_up_to_date(engine, found, owner)
        if found != COMING and found > SCHEMA:
            raise CatalogTooNew(
                f"The catalog in {shown(engine)} has schema {found}; this Perennial reads up to {SCHEMA}. "
                "Install a newer release."
            )
        if not read_only and (found == COMING or (known and not _covers(known, owner))):
            with locked(engine) as connection:
                if _require_own(connection)[0] != LEFT:
                    set_number(connection, SCHEMA)
        if not read_only:
            _key_by_hash(engine)
    except DBAPIError as error:
        engine.dispose()
        raise CatalogError(f"The catalog in {shown(engine)} cannot be used ({why(error.orig)}).") from error
    except BaseException:
        engine.dispose()
        raise
    return engine


def _bring_up_to_date(engine: sa.Engine, found: int, owner: str) -> int:
    """Takes the steps from a schema to this program's, all or none; returns its number.

    Raises:
        CatalogError: it is another owner's, or this user may change no tables.
    """
    from ingest.migration import migrate

    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    writer = connect(url, read_only=False)
    writer.update_execution_options(**{OWNER: owner})
    try:
        with writing(writer) as connection:
            now = number_of(connection)  # another process may have been first
            if now < SCHEMA:
                migrate(connection, now, SCHEMA)
                logger.info("the catalog in %s went from schema %d to %d", shown(engine), found, SCHEMA)
        return SCHEMA
    except CatalogError as error:
        raise CatalogError(
            f"The catalog in {shown(engine)} is of an earlier release (schema {found}) and has to be written once to "
            f"be read by this one (schema {SCHEMA}), which failed: {error}"
        ) from error
    finally:
        writer.dispose()


def _key_by_hash(engine: sa.Engine) -> None:
    """Brings up to date a catalog whose keys were long texts themselves, as on 2026-11-27; it can be read as it is."""
    has_long = sa.text(
        "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND indexname = 'sources_pkey'"
    )
    with engine.connect() as connection:
        if not connection.scalar(has_long):
            return
    with locked(engine) as connection:
        if connection.scalar(has_long):  # nobody else was first
            for statement in _LONG_KEYS:
                connection.exec_driver_sql(statement)
            for table in ("sources", "pins", "feedback"):
                for index in metadata.tables[table].indexes:
                    index.create(connection)


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
        there, own = tables_of(connection), {*metadata.tables, *_own.tables}
        number = number_of(connection)
        is_ours = number == COMING and _is_same(str(connection.scalar(sa.select(_number.c.owner))), owner)
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


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction; see `ingest.engines.writing`."""
    with locked(engine) as connection:
        if _require_own(connection)[0] == LEFT:
            raise CatalogMoved
        yield connection


@contextmanager
def locked(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Runs a block as one write transaction, whatever the number of the schema.

    Raises:
        CatalogUnreachable: the database does not answer.
        CatalogHeld: another writes for too long.
        CatalogError: the catalog was opened read-only, or rights are missing.
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
            f"The catalog could not be written ({why(error.orig)}); nothing was recorded."
        ) from error


def set_number(connection: sa.Connection, number: int) -> None:
    """Writes the number of the schema, and what the owner is known by now; of two, the other is known no more.

    Raises:
        CatalogError: it is the catalog of another owner.
    """
    known, asks = _require_own(connection)[1], _owner_asking(connection)
    connection.execute(_number.update().values(number=number, owner=known if _covers(known, asks) else asks))


def claim(url: str, owner: str) -> str:
    """Makes somebody the owner of a catalog; returns whose it was.

    Raises:
        CatalogMissing: there is none.
        CatalogUnreachable: the database does not answer.
    """
    engine = open_engine(url, read_only=False)
    try:
        with locked(engine) as connection:
            was = str(connection.scalar(sa.select(_number.c.owner)))
            connection.execute(_number.update().values(owner=owner))
    finally:
        engine.dispose()
    return was


def _require_own(connection: sa.Connection) -> tuple[int, str]:
    """Returns number and owner of a catalog that the engine's owner may write.

    Raises:
        CatalogError: it is another's; the sentence says what to do.
    """
    number, owner = connection.execute(sa.select(_number.c.number, _number.c.owner)).one()
    asks = _owner_asking(connection)
    if asks and owner and not _is_same(owner, asks):
        there, here = (one.partition("\n")[0] for one in (owner, asks))
        place = shown(connection.engine)
        if here.startswith(SHARED):
            raise CatalogError(
                f"The catalog in {place} is not that of the home whose pictures lie in this one's bucket; it may have "
                "been carried away. Where it lies now, `perennial home join` makes this machine's folder anew."
            )
        raise CatalogError(
            f"The catalog in {place} is that of the home at {there}; this one lies at {here}. "
            "A copy cannot share it: make copies with `perennial backup` and `perennial restore`. If this is the same "
            f"home, which was moved, say so: `perennial home move --to {quote(place)} --home {quote(here)}`."
        )
    return number, owner


def _covers(owner: str, other: str) -> bool:
    """Whether nothing of what another is known by has to be written: it is known, or the catalog is anybody's."""
    return not owner or not other or {*other.split("\n")} <= {*owner.split("\n")}


def _owner_asking(connection: sa.Connection) -> str:
    return str(connection.get_execution_options().get(OWNER, ""))


def _is_same(owner: str, other: str) -> bool:
    return not {*owner.split("\n")}.isdisjoint(other.split("\n"))


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


def number_of(connection: sa.Connection) -> int:
    """Returns the number of the schema; 0 where there is no catalog."""
    if _number.name not in tables_of(connection):
        return 0
    return int(connection.scalar(sa.select(_number.c.number)) or 0)


def tables_of(connection: sa.Connection) -> set[str]:
    """Returns the names of the tables of the schema; of others on its path none."""
    return set(
        sa.inspect(connection).get_table_names(str(connection.scalar(sa.select(sa.func.current_schema()))))
    )


def _require_schema(connection: sa.Connection) -> None:
    """Refuses an address whose schema is not there; PostgreSQL passes over such a one without a word.

    Raises:
        CatalogMissing: it is one.
    """
    if connection.scalar(sa.select(sa.func.current_schema())) is None and (
        "options" in connection.engine.url.query
    ):
        raise CatalogMissing(
            phrase(
                "The schema {schema} that the address names is not in the database, or this user may not use it. "
                "Correct `options=-csearch_path` in the address {url}, or make the schema there (CREATE SCHEMA).",
                schema=connection.exec_driver_sql("SHOW search_path").scalar_one(),
                url=shown(connection.engine),
            )
        )


def _require_fit(engine: sa.Engine, connection: sa.Connection) -> None:
    """Refuses a server that is too old, and a database that keeps texts in another encoding.

    Raises:
        CatalogError: it is one of these, or this user may make no tables in it.
    """
    _require_schema(connection)
    version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one()) // 10_000
    encoding = str(connection.exec_driver_sql("SHOW server_encoding").scalar_one())
    may = connection.scalar(sa.select(sa.func.has_schema_privilege(sa.func.current_schema(), "CREATE")))
    unfit = ""
    if version < OLDEST:
        unfit = f"it is PostgreSQL {version}, and {OLDEST} or newer is needed"
    elif encoding != "UTF8":
        unfit = f"it keeps texts as {encoding}; make a database with ENCODING 'UTF8'"
    elif not may:
        unfit = "this user may make no tables there; grant CREATE on its schema"
    if unfit:
        raise CatalogError(f"{shown(engine)} cannot hold a catalog: {unfit}.")
