"""Connecting to PostgreSQL: addresses, what a connection is told, and what can be said and kept there.

A password is never part of an address: libpq finds it in PGPASSWORD, in ~/.pgpass, or in the service that the address
names (https://www.postgresql.org/docs/current/libpq-pgpass.html).
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, OperationalError

from ingest.errors import CatalogError, CatalogHeld, CatalogUnreachable
from ingest.sentence import phrase
from ingest.tables import as_json, of_json

_SCHEME = "postgresql"
_ESCAPED = re.compile(r"\\ud[89ab]..\\ud[c-f]..|\\u0000|\\ud[89a-f]..|\\.")
_LOCK_NOT_AVAILABLE = "55P03"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
_PAIR = 12  # letters of two halves of one character


def connect(url: str, *, read_only: bool) -> sa.Engine:
    """Returns an engine for a database, which is not asked yet.

    Raises:
        CatalogError: the address cannot be used, or what connects to it is not installed.
    """
    address = address_of(url)
    try:
        from ingest.postgres_waiting import OPTIONS, connecting

        engine = sa.create_engine(
            address.set(drivername=f"{_SCHEME}+psycopg"),
            isolation_level="REPEATABLE READ",
            pool_size=4,
            max_overflow=28,
            pool_pre_ping=True,  # one that was restarted is connected to again
            json_serializer=json_text,
            json_deserializer=of_json,
            execution_options={"postgresql_readonly": read_only},
            connect_args={name: value for name, value in OPTIONS.items() if name not in address.query},
        )
    except ModuleNotFoundError as error:
        raise CatalogError(
            "What connects to PostgreSQL is not installed here: `pip install 'perennial-search[postgres]'`."
        ) from error
    sa.event.listen(engine, "do_connect", connecting(address))
    sa.event.listen(engine, "connect", _set_up)
    sa.event.listen(engine, "handle_error", _explain)
    return engine


def shown(engine: sa.Engine) -> str:
    """Returns where a database is, as people write it."""
    return engine.url.set(drivername=_SCHEME).render_as_string(hide_password=True)


def address_of(url: str) -> sa.URL:
    """Reads an address; those are equal that say the same.

    Raises:
        CatalogError: it is none of PostgreSQL's, or holds a password.
    """
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
    """Says in a sentence that the database cannot be reached, or that somebody else holds what is asked for.

    Raises:
        CatalogHeld: somebody does, for longer than is waited.
        CatalogUnreachable: it cannot.
    """
    if getattr(context.original_exception, "sqlstate", "") == _LOCK_NOT_AVAILABLE:
        raise CatalogHeld from context.original_exception
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
                why=why(context.original_exception),
            )
        ) from context.original_exception


def why(error: BaseException | None) -> str:
    """Returns what an error of the database says, in one line."""
    return " ".join(str(error).split()).rstrip(".")
