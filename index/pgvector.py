"""Vectors in PostgreSQL: a table of pgvector's for each large index file, which every machine of a home searches.

The file stays what is kept, copied and checked; a table is made of it, and can be made again. It is called by the
file's sha256, so that generations share it as they share the file. Rows are found by a graph (HNSW) over numbers of 16
bits (https://github.com/pgvector/pgvector), and their scores are computed of what is stored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from index.errors import TablesRefused
from index.faiss_index import ROWS_PER_BLOCK
from index.kinds import HALVED
from index.vector_index import VectorIndex
from ingest.sentence import phrase

Rows = NDArray[np.float32]
Places = NDArray[np.int64]

OLDEST = (0, 8)  # of pgvector: from then on a filtered search goes on until it has found enough
MOST_COLUMNS = 4000  # of a graph
KEPT = 0.99  # of the first `FIRST` of exact search
FIRST = 10
WIDTHS = (100, 200, 400, 800)  # how many candidates a search holds, tried until one keeps enough
WIDEST_SEARCH = 1000  # of pgvector
MARGIN = 16  # rows beyond the last place, whose 16 bits may have put them there
FEW = 10_000  # allowed rows that are compared one by one
SCANNED = 20_000  # rows that a filtered search looks at, at least
_LOCK = 0x7065_7276  # "perv"
_known = sa.Table(
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
class PgVectors:
    """A table of vectors, searched as `index.vector_index` says."""

    engine: sa.Engine
    schema: str  # that pgvector is in, quoted
    name: str
    count: int
    dim: int
    width: int  # how many candidates a search holds
    kept: float

    def search(
        self, queries: Rows, k: int, allowed: NDArray[np.bool_] | None = None
    ) -> tuple[Rows, Places]:
        """Finds rows by the graph, or by comparing where few are allowed or the graph finds fewer than there are."""
        if allowed is not None and np.count_nonzero(allowed) <= FEW:
            return self._compared(queries, k, np.flatnonzero(allowed))
        with self.engine.connect() as connection:
            found = self.by_graph(connection, queries, k, allowed, self.width)
        if all(len(one) == k for one in found):
            return _padded(found, k)
        return self._compared(queries, k, None if allowed is None else np.flatnonzero(allowed))

    def exact(self, queries: Rows, k: int) -> tuple[Rows, Places]:
        """Finds what comparing every row finds."""
        return self._compared(queries, k, None)

    def vectors(self, rows: Places) -> Rows:
        """Gives rows back as they are stored."""
        found = np.empty((len(rows), self.dim), dtype=np.float32)
        asked = sa.text(
            f"SELECT row, {self.schema}.vector_send(embedding::{self.schema}.vector) FROM {self.name} "
            "WHERE row = ANY(:rows)"
        )
        with self.engine.connect() as connection:
            for start in range(0, len(rows), ROWS_PER_BLOCK):
                block = rows[start : start + ROWS_PER_BLOCK]
                answer = connection.execute(asked, {"rows": np.unique(block).tolist()}).all()
                places = np.array([row for row, _ in answer], dtype=np.int64)
                data = b"".join(bytes(sent)[4:] for _, sent in answer)
                sent = np.frombuffer(data, dtype=">f4").reshape(-1, self.dim)
                order = np.argsort(places)
                found[start : start + len(block)] = sent[order[np.searchsorted(places[order], block)]]
        return found

    def by_graph(
        self,
        connection: sa.Connection,
        queries: Rows,
        k: int,
        allowed: NDArray[np.bool_] | None,
        width: int,
    ) -> list[list[tuple[int, float]]]:
        """Returns the (row, score) that a graph finds for each query, holding so many candidates, or as many as asked."""
        share = 1.0 if allowed is None else np.count_nonzero(allowed) / len(allowed)
        wanted = k + MARGIN
        connection.execute(
            sa.text(
                "SELECT set_config('hnsw.ef_search', :width, true), set_config('hnsw.max_scan_tuples', :most, true), "
                "set_config('hnsw.iterative_scan', 'strict_order', true), "
                # The planner takes a filter by bits to leave few rows, and would go through all of them.
                "set_config('enable_seqscan', 'off', true)"
            ),
            {
                "width": str(min(WIDEST_SEARCH, max(width, wanted))),
                "most": str(max(SCANNED, int(4 * wanted / share))),
            },
        )
        where = "" if allowed is None else "WHERE get_bit(:allowed, row) = 1"
        near = (
            f"SELECT row, embedding FROM {self.name} {where} "
            f"ORDER BY {self._graphed} OPERATOR({self.schema}.<#>) {self._asked('halfvec')} LIMIT :wanted"
        )
        given = {"wanted": wanted, "k": k}
        if allowed is not None:
            given["allowed"] = np.packbits(allowed, bitorder="little").tobytes()
        return self._ordered(connection, f"({near}) AS near", given, queries)

    @property
    def _graphed(self) -> str:
        """What the graph is over."""
        return f"(embedding::{self.schema}.halfvec({self.dim}))"

    def _asked(self, kind: str) -> str:
        return f"CAST(CAST(:query AS text) AS {self.schema}.{kind}({self.dim}))"

    def _compared(self, queries: Rows, k: int, rows: Places | None) -> tuple[Rows, Places]:
        """Compares every row, or some, with all their digits."""
        given: dict[str, Any] = {"k": k}
        source = self.name
        if rows is not None:
            source, given["rows"] = f"(SELECT * FROM {self.name} WHERE row = ANY(:rows)) AS among", rows.tolist()
        with self.engine.connect() as connection:
            return _padded(self._ordered(connection, source, given, queries), k)

    def _ordered(
        self, connection: sa.Connection, source: str, given: dict[str, Any], queries: Rows
    ) -> list[list[tuple[int, float]]]:
        product = f"embedding::{self.schema}.vector OPERATOR({self.schema}.<#>) {self._asked('vector')}"
        asked = sa.text(f"SELECT row, -({product}) AS score FROM {source} ORDER BY score DESC, row LIMIT :k")
        return [
            [(row, score) for row, score in connection.execute(asked, {**given, "query": _as_text(query)})]
            for query in queries
        ]


class VectorTables:
    """The tables of a database; one that keeps no vectors has none."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def begin(self) -> None:
        """Has the database keep vectors from now on.

        Raises:
            TablesRefused: it has no pgvector, or too old a one.
        """
        with self._writing() as connection:
            _require_pgvector(connection)
            _known.create(connection, checkfirst=True)

    def end(self) -> None:
        """Has the database keep no vectors; what searches a table now finds it gone."""
        with self._writing() as connection:
            if _is_kept(connection):
                for name in _tables(connection):
                    connection.exec_driver_sql(f"DROP TABLE {name}")
                _known.drop(connection)

    @property
    def are_kept(self) -> bool:
        """Whether the database is to keep vectors."""
        with self._engine.connect() as connection:
            return _is_kept(connection)

    def known(self) -> dict[str, PgVectors]:
        """Returns the tables that there are, by the sha256 of the file that each was made of."""
        with self._engine.connect() as connection:
            if not _is_kept(connection):
                return {}
            there, schema = _tables(connection), _schema(connection)
            rows = connection.execute(sa.select(_known)).all()
        return {
            one.digest: PgVectors(
                self._engine, schema, one.name, one.count, one.dim, one.width, one.kept
            )
            for one in rows
            if one.name in there
        }

    def make(
        self, digest: str, stored: VectorIndex, kind: str, queries: Callable[[], Rows]
    ) -> None:
        """Makes the table of an index file, or leaves the one there is; whoever makes it elsewhere is waited for.

        `queries`, (q, dim) float32 unit rows, are what it is tuned on.

        Raises:
            TablesRefused: the database cannot have it.
        """
        if stored.dim > MOST_COLUMNS:
            raise TablesRefused(
                phrase(
                    "pgvector's graphs have {most} dimensions at most; these vectors have {dim}.",
                    most=MOST_COLUMNS,
                    dim=stored.dim,
                )
            )
        with self._writing() as connection:
            name = f"vectors_{digest[:32]}"
            if name in _tables(connection):
                return
            type_ = "halfvec" if kind.endswith(HALVED) else "vector"
            table = PgVectors(
                self._engine, _schema(connection), name, stored.count, stored.dim, WIDTHS[0], 0.0
            )
            connection.exec_driver_sql(
                f"CREATE TABLE {name} (row integer PRIMARY KEY, "
                f"embedding {table.schema}.{type_}({stored.dim}) NOT NULL)"
            )
            _fill(connection, name, stored, type_)
            connection.exec_driver_sql(
                f"CREATE INDEX ON {name} USING hnsw ({table._graphed} {table.schema}.halfvec_ip_ops)"
            )
            connection.exec_driver_sql(f"ANALYZE {name}")
            width, kept = _tuned(connection, table, stored, queries())
            connection.execute(
                _known.insert().values(
                    digest=digest, name=name, count=stored.count, dim=stored.dim, width=width, kept=kept
                )
            )

    def drop_others(self, needed: Collection[str]) -> list[str]:
        """Removes the tables of files that nobody needs; returns their names."""
        with self._writing() as connection:
            if not _is_kept(connection):
                return []
            gone = connection.execute(
                _known.delete().where(_known.c.digest.not_in(list(needed))).returning(_known.c.name)
            ).scalars()
            names = sorted({*gone} & _tables(connection))
            for name in names:
                connection.exec_driver_sql(f"DROP TABLE {name}")
        return names

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Runs a block as one transaction, one at a time of those that make or remove tables."""
        engine = self._engine.execution_options(isolation_level="READ COMMITTED")
        try:
            with engine.begin() as connection:
                connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
                connection.execute(
                    sa.select(sa.func.pg_advisory_xact_lock(_LOCK, sa.func.hashtext(sa.func.current_schema())))
                )
                yield connection
        except sa.exc.DBAPIError as error:
            said = " ".join(str(error.orig).split()).rstrip(".")
            raise TablesRefused(
                phrase("The database cannot keep the index ({why}); nothing was changed there.", why=said)
            ) from error


def _require_pgvector(connection: sa.Connection) -> None:
    offered = connection.scalar(
        sa.text("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'")
    )
    if offered is None:
        raise TablesRefused(
            phrase(
                "The database has no pgvector. Install it there (https://github.com/pgvector/pgvector), and run this "
                "again."
            )
        )
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS vector")
    version = str(connection.scalar(sa.text("SELECT extversion FROM pg_extension WHERE extname = 'vector'")))
    if tuple(int(one) for one in version.split(".")[:2]) < OLDEST:
        raise TablesRefused(
            phrase(
                "The database has pgvector {version}, and {oldest} or newer is needed: update it, and run `ALTER "
                "EXTENSION vector UPDATE` there.",
                version=version,
                oldest=".".join(map(str, OLDEST)),
            )
        )


def _is_kept(connection: sa.Connection) -> bool:
    return connection.scalar(sa.text("SELECT to_regclass('vector_tables')")) is not None


def _schema(connection: sa.Connection) -> str:
    """Returns where pgvector is, quoted: a home's own schema need not see it."""
    asked = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
    return str(connection.scalar(sa.text(asked)))


def _tables(connection: sa.Connection) -> set[str]:
    asked = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'vectors\\_%'"
    return {*connection.scalars(sa.text(asked))}


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


def _tuned(
    connection: sa.Connection, table: PgVectors, stored: VectorIndex, queries: Rows
) -> tuple[int, float]:
    """Returns how many candidates a search is to hold so that it keeps enough, and what it keeps."""
    first = min(FIRST, table.count)
    right = stored.exact(queries, first)[1]
    kept = 0.0
    for width in WIDTHS:
        found = table.by_graph(connection, queries, first, None, width)
        hits = sum(len({row for row, _ in one} & {*there}) for one, there in zip(found, right.tolist(), strict=True))
        kept = hits / right.size
        if kept >= KEPT:
            break
    return width, kept


def _padded(found: Sequence[Sequence[tuple[int, float]]], k: int) -> tuple[Rows, Places]:
    scores = np.full((len(found), k), -np.inf, dtype=np.float32)
    places = np.full((len(found), k), -1, dtype=np.int64)
    for n, one in enumerate(found):
        places[n, : len(one)] = [row for row, _ in one]
        scores[n, : len(one)] = [score for _, score in one]
    return scores, places


def _as_text(vector: Rows) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
