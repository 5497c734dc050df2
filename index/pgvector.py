"""Vectors in PostgreSQL: a table of pgvector's for each large index file, which every machine of a home searches.

The file stays what is kept, copied and checked; a table is made of it, and can be made again. It is called by the
file's sha256, so that generations share it as they share the file. Rows are found by a graph (HNSW) over numbers of 16
bits (https://github.com/pgvector/pgvector), and their scores are computed of what is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from index.errors import IndexMoved
from index.vector_index import FEW, allowed_first, padded, require_all
from index.vectors import ROWS_PER_BLOCK

Rows = NDArray[np.float32]
Places = NDArray[np.int64]

MARGIN = 16  # rows beyond the last place, whose 16 bits may have put them there
SCANNED = 20_000  # rows that a search may look at, at least
FILTERED = 1000  # rows that the graph is asked for where a filter is to leave some of them
_UNDEFINED_TABLE = "42P01"  # https://www.postgresql.org/docs/current/errcodes-appendix.html


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

    @property
    def engine_name(self) -> str:
        """What it is called by."""
        return "pgvector"

    @property
    def parameters(self) -> str:
        """How widely a search looks, as pgvector says it."""
        return f"ef_search={self.width}"

    def search(self, queries: Rows, k: int, allowed: NDArray[np.bool_] | None = None) -> tuple[Rows, Places]:
        """Finds rows by the graph; compares where few are allowed, or too few of those that it finds."""
        if allowed is not None and np.count_nonzero(allowed) <= FEW:
            return self._compared(queries, k, allowed)
        # A graph that is told the filter fills up with what is far and allowed; so what it finds is filtered here.
        deep = k if allowed is None else max(k, FILTERED)
        with self.engine.connect() as connection:
            scores, rows = self.by_graph(connection, queries, deep, self.width)
        if allowed is None:
            short = (rows < 0).any(axis=1)
        else:
            scores, rows, short = allowed_first(scores, rows, allowed, k)
        if short.any():
            scores[short], rows[short] = self._compared(queries[short], k, allowed)
        return scores, rows

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
        with self.engine.connect() as connection, _saying_it_moved():
            for start in range(0, len(rows), ROWS_PER_BLOCK):
                block = rows[start : start + ROWS_PER_BLOCK]
                answer = connection.execute(asked, {"rows": np.unique(block).tolist()}).all()
                require_all(self.name, len(answer), block)
                places = np.array([row for row, _ in answer], dtype=np.int64)
                data = b"".join(bytes(sent)[4:] for _, sent in answer)
                sent = np.frombuffer(data, dtype=">f4").reshape(-1, self.dim)
                order = np.argsort(places)
                found[start : start + len(block)] = sent[order[np.searchsorted(places[order], block)]]
        return found

    def by_graph(self, connection: sa.Connection, queries: Rows, k: int, width: int) -> tuple[Rows, Places]:
        """Finds rows by the graph, which holds so many candidates, and goes on until it has found enough."""
        wanted = k + MARGIN
        connection.execute(
            sa.text(
                "SELECT set_config('hnsw.ef_search', :width, true), set_config('hnsw.max_scan_tuples', :most, true), "
                # What is found is put into order here.
                "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
                # Else the planner may go through all of a small table.
                "set_config('enable_seqscan', 'off', true)"
            ),
            {"width": str(width), "most": str(max(SCANNED, 4 * wanted))},
        )
        near = (
            f"SELECT row, embedding FROM {self.name} "
            f"ORDER BY {self.graphed} OPERATOR({self.schema}.<#>) {self._asked('halfvec')} LIMIT :wanted"
        )
        return self._ordered(connection, f"({near}) AS near", {"wanted": wanted}, queries, k)

    @property
    def graphed(self) -> str:
        """What the graph is over."""
        return f"(embedding::{self.schema}.halfvec({self.dim}))"

    def _asked(self, kind: str) -> str:
        return f"CAST(CAST(:query AS text) AS {self.schema}.{kind}({self.dim}))"

    def _compared(self, queries: Rows, k: int, allowed: NDArray[np.bool_] | None) -> tuple[Rows, Places]:
        """Compares every row, or those that are allowed, with all their digits."""
        source, given = self.name, dict[str, Any]()
        if allowed is not None and np.count_nonzero(allowed) <= FEW:
            source = f"(SELECT * FROM {self.name} WHERE row = ANY(:rows)) AS among"
            given["rows"] = np.flatnonzero(allowed).tolist()
        elif allowed is not None:
            source = f"(SELECT * FROM {self.name} WHERE get_bit(:allowed, row) = 1) AS among"
            given["allowed"] = np.packbits(allowed, bitorder="little").tobytes()
        with self.engine.connect() as connection:
            return self._ordered(connection, source, given, queries, k)

    def _ordered(
        self, connection: sa.Connection, source: str, given: dict[str, Any], queries: Rows, k: int
    ) -> tuple[Rows, Places]:
        product = f"embedding::{self.schema}.vector OPERATOR({self.schema}.<#>) {self._asked('vector')}"
        asked = sa.text(f"SELECT row, -({product}) AS score FROM {source} ORDER BY score DESC, row LIMIT :k")
        with _saying_it_moved():
            return padded(
                [
                    [
                        (row, score)
                        for row, score in connection.execute(
                            asked, {**given, "k": k, "query": _as_text(query)}
                        )
                    ]
                    for query in queries
                ],
                k,
            )


@contextmanager
def _saying_it_moved() -> Iterator[None]:
    try:
        yield
    except sa.exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", "") != _UNDEFINED_TABLE:
            raise
        raise IndexMoved from error


def _as_text(vector: Rows) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"
