"""Tables of vectors in PostgreSQL: made of the large index files of generations, found by the sha256 of each, removed.

A database that keeps vectors has a list of them, and whoever opens a generation searches what is on it; so machines
that share a home need no setting to agree. Making takes one at a time of those who make or remove tables, and is seen
when it is done.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa

from index.errors import VectorsRefused
from index.kinds import HALVED
from index.pgvector import PgVectors, Rows
from index.vector_index import FIRST, KEPT, VectorIndex, tuned
from index.vectors import ROWS_PER_BLOCK
from ingest.sentence import phrase

OLDEST = (0, 8)  # of pgvector: from then on a filtered search goes on until it has found enough
PAGE = 8000  # bytes that fit on one of a table
MOST_COLUMNS = 4000  # of a graph
_LOCK = 0x7065_7276  # "perv"
_KEPT = ""  # stands on the list while the database is to keep vectors
_list = sa.Table(
    "vector_tables",
    sa.MetaData(),
    sa.Column("digest", sa.Text, primary_key=True),  # the sha256 of the file
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("count", sa.BigInteger, nullable=False),
    sa.Column("dim", sa.Integer, nullable=False),
    sa.Column("width", sa.Integer, nullable=False),
    sa.Column("kept", sa.Float, nullable=False),
)


@dataclass(frozen=True)
class VectorTables:
    """The tables of a database, as `index.vector_index.VectorEngine` says; one that keeps no vectors has none."""

    engine: sa.Engine

    def begin(self) -> None:
        """Has the database keep vectors from now on; see `VectorEngine`."""
        with self._writing() as connection:
            _require_pgvector(connection)
            if not _is_listed(connection):
                _list.create(connection)
            if not _is_kept(connection):
                connection.execute(
                    _list.insert().values(digest=_KEPT, name="", count=0, dim=0, width=0, kept=0)
                )

    def end(self) -> None:
        """Has it keep none; what it has stays until `drop_others`."""
        with self._writing() as connection:
            if _is_listed(connection):
                connection.execute(_list.delete().where(_list.c.digest == _KEPT))

    @property
    def are_kept(self) -> bool:
        """Whether the database is to keep vectors."""
        with self.engine.connect() as connection:
            return _is_kept(connection)

    def known(self) -> dict[str, PgVectors]:
        """Returns the tables that are searched, by the sha256 of the file that each was made of."""
        with self.engine.connect() as connection:
            if not _is_kept(connection):
                return {}
            there, schema = _tables(connection), _schema(connection)
            rows = connection.execute(sa.select(_list).where(_list.c.kept >= KEPT)).all()
        return {
            digest: PgVectors(self.engine, schema, *facts) for digest, *facts in rows if facts[0] in there
        }

    def make(self, digest: str, stored: VectorIndex, kind: str, queries: Callable[[], Rows]) -> None:
        """Makes the table of an index file; whoever makes it elsewhere is waited for. See `VectorEngine`."""
        if stored.dim > MOST_COLUMNS:
            raise VectorsRefused(
                phrase(
                    "pgvector's graphs have {most} dimensions at most; these vectors have {dim}.",
                    most=MOST_COLUMNS,
                    dim=stored.dim,
                )
            )
        with self.engine.connect() as connection:
            if _is_made(connection, digest):
                return
        asked, first = queries(), min(FIRST, stored.count)
        right = stored.exact(asked, first)[0]
        with self._writing() as connection:
            if _is_made(connection, digest):
                return
            name, schema = f"vectors_{digest[:32]}", _schema(connection)
            table = PgVectors(self.engine, schema, name, stored.count, stored.dim, 0, 0.0)
            _write(connection, table, stored, "halfvec" if kind.endswith(HALVED) else "vector")

            def scores(width: int) -> Rows:
                return table.by_graph(connection, asked, first, width)[0]

            width, kept = tuned(scores, right)
            if kept < KEPT:  # it is not searched, and not made again and again
                connection.exec_driver_sql(f"DROP TABLE {name}")
            said = {"count": table.count, "dim": table.dim, "width": width, "kept": kept}
            connection.execute(_list.delete().where(_list.c.digest == digest))
            connection.execute(_list.insert().values(digest=digest, name=name, **said))

    def drop_others(self, needed: Collection[str] = ()) -> list[str]:
        """Removes the tables of all files but those that are needed; returns their names."""
        with self._writing() as connection:
            if not _is_listed(connection):
                return []
            stay = {_KEPT, *needed} if _is_kept(connection) else set()
            listed = {one.digest: one.name for one in connection.execute(sa.select(_list))}
            gone = [digest for digest in listed if digest not in stay]
            names = sorted({listed[digest] for digest in gone} & _tables(connection))
            for name in names:
                connection.exec_driver_sql(f"DROP TABLE {name}")
            for digest in gone:
                connection.execute(_list.delete().where(_list.c.digest == digest))
        return names

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Runs a block as one transaction, one at a time of those that make or remove tables."""
        engine = self.engine.execution_options(isolation_level="READ COMMITTED")
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
                connection.execute(
                    sa.select(
                        sa.func.pg_advisory_xact_lock(_LOCK, sa.func.hashtext(sa.func.current_schema()))
                    )
                )
                yield connection
        except sa.exc.DBAPIError as error:
            said = str(error.orig).partition("\n")[0].rstrip(".")
            raise VectorsRefused(
                phrase("The database cannot keep the index ({why}); nothing was changed there.", why=said)
            ) from error


def _require_pgvector(connection: sa.Connection) -> None:
    offered = connection.scalar(
        sa.text("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
    )
    if offered is None:
        raise VectorsRefused(
            phrase(
                "The database has no pgvector. Install it there (https://github.com/pgvector/pgvector), and run this "
                "again."
            )
        )
    # Where every schema of the database finds it, if that may be: it would go with the first home's otherwise.
    may = connection.scalar(sa.text("SELECT has_schema_privilege('public', 'CREATE')"))
    connection.exec_driver_sql(f"CREATE EXTENSION IF NOT EXISTS vector {'SCHEMA public' if may else ''}")
    version = str(connection.scalar(sa.text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")))
    if tuple(int(one) for one in version.split(".")[:2]) < OLDEST:
        raise VectorsRefused(
            phrase(
                "The database has pgvector {version}, and {oldest} or newer is needed: update it, and run `ALTER "
                "EXTENSION vector UPDATE` there.",
                version=version,
                oldest=".".join(map(str, OLDEST)),
            )
        )


def _is_listed(connection: sa.Connection) -> bool:
    return _list.name in _tables(connection)


def _is_kept(connection: sa.Connection) -> bool:
    asked = sa.select(sa.literal(1)).where(_list.c.digest == _KEPT)
    return _is_listed(connection) and connection.scalar(asked.select_from(_list)) is not None


def _schema(connection: sa.Connection) -> str:
    """Returns where pgvector is, quoted: a home's own schema need not see it."""
    asked = "SELECT extnamespace::regnamespace::text FROM pg_extension WHERE extname = 'vector'"
    return str(connection.scalar(sa.text(asked)))


def _is_made(connection: sa.Connection, digest: str) -> bool:
    listed = connection.execute(sa.select(_list).where(_list.c.digest == digest)).one_or_none()
    return listed is not None and (listed.kept < KEPT or listed.name in _tables(connection))


def _tables(connection: sa.Connection) -> set[str]:
    """Returns the tables of the home's own schema that may be ours, whatever else is on the path."""
    asked = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'vector%'"
    return {*connection.scalars(sa.text(asked))}


def _write(connection: sa.Connection, table: PgVectors, stored: VectorIndex, type_: str) -> None:
    """Makes a table with the graph over it."""
    connection.exec_driver_sql(
        f"CREATE TABLE {table.name} (row integer PRIMARY KEY, "
        f"embedding {table.schema}.{type_}({table.dim}) NOT NULL)"
    )
    if 4 * table.dim < PAGE:  # beside its row, where it is read soonest
        connection.exec_driver_sql(f"ALTER TABLE {table.name} ALTER embedding SET STORAGE PLAIN")
    _fill(connection, table.name, stored, type_)
    connection.exec_driver_sql(
        f"CREATE INDEX ON {table.name} USING hnsw ({table.graphed} {table.schema}.halfvec_ip_ops)"
    )
    connection.exec_driver_sql(f"ANALYZE {table.name}")


def _fill(connection: sa.Connection, name: str, stored: VectorIndex, type_: str) -> None:
    """Copies the vectors of a file into a table, as PostgreSQL's binary format has them.

    https://www.postgresql.org/docs/current/sql-copy.html
    """
    number = ">f2" if type_ == "halfvec" else ">f4"
    size = 4 + np.dtype(number).itemsize * stored.dim
    form = np.dtype(
        [("fields", ">i2"), ("four", ">i4"), ("row", ">i4"), ("size", ">i4"), ("dim", ">i2"), ("none", ">i2")]
        + [("numbers", number, (stored.dim,))]
    )
    driver: Any = connection.connection.driver_connection
    with driver.cursor().copy(f"COPY {name} FROM STDIN (FORMAT BINARY)") as copy:
        copy.write(b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0))
        for start in range(0, stored.count, ROWS_PER_BLOCK):
            rows = np.arange(start, min(start + ROWS_PER_BLOCK, stored.count))
            block = np.zeros(len(rows), dtype=form)
            block["fields"], block["four"], block["size"], block["dim"] = 2, 4, size, stored.dim
            block["row"], block["numbers"] = rows, stored.vectors(rows)
            copy.write(block.tobytes())
        copy.write(struct.pack(">h", -1))
