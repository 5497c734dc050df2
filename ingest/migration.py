"""How a catalog of an earlier release becomes one of this release: alembic takes the steps of `ingest/migrations/`.

A catalog's number is SQLite's `user_version`, which a program of any age can read, and which costs nothing to ask; so
nothing of alembic is loaded to open a catalog that needs no step. Its own table of versions is written with the first
step that it takes. Each step only adds tables, and columns that have a default, so a process of the earlier release
that still runs goes on working on the same file. Nothing is read anew.
"""

import sqlite3
import threading
import uuid
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection

BEFORE = "catalog-schema-*.sqlite"
"""What copies of catalogs are called, as they were before they went to a newer schema."""
_STEPS = Path(__file__).parent / "migrations"
_alembic = threading.Lock()  # it keeps what it works on for the whole process


def copy_before(catalog: Path, found: int) -> Path:
    """Copies a catalog of schema `found` beside itself, whole or not at all, and returns where the copy lies."""
    copy = catalog.with_name(BEFORE.replace("*", str(found)))
    fresh = catalog.with_name(f".{copy.name}.{uuid.uuid4().hex}")
    try:
        with closing(sqlite3.connect(f"{catalog.resolve().as_uri()}?mode=ro", uri=True)) as source:
            source.execute("VACUUM INTO ?", [str(fresh)])
        with closing(sqlite3.connect(fresh, isolation_level=None)) as written:
            written.execute("PRAGMA synchronous=FULL")
            # SQLite makes the file durable with this.
            written.execute(f"PRAGMA user_version={found}")
        fresh.replace(copy)
    finally:
        fresh.unlink(missing_ok=True)
    return copy


def migrate(connection: Connection, found: int, wanted: int) -> None:
    """Brings a catalog from schema `found` to `wanted`; call it inside a write transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    with _alembic:
        command.stamp(config, str(found), purge=True)
        command.upgrade(config, str(wanted))
