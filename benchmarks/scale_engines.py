"""What indexes take in the engines that run here, for `perennial capacity`: a part of benchmarks/scale.py.

Times are the processor's, so that other work on the machine counts little; PostgreSQL's are those of the process that
answers.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import psutil
import sqlalchemy as sa
from numpy.typing import NDArray
from speed_timing import ROOT

sys.path.insert(0, str(ROOT))  # PostgreSQL is started as tests start it

from index import faiss_index, tuning
from index.faiss_index import FaissVectors
from index.kinds import HALVED
from index.vector_tables import VectorTables
from ingest.postgres_connection import connect
from tests.postgres_server import schema_for

KEPT = ROOT / "index" / "capacity.json"
COUNT, DIM, QUERIES, FIRST = 50_000, 512, 64, 10
# Vectors of pictures lie near a space of fewer numbers. In clouds that lie apart, a few lists would find all.
INNER, AROUND = 16, 0.3

Rows = NDArray[np.float32]
Places = NDArray[np.int64]


def vectors(count: int, dim: int) -> tuple[Rows, Rows]:
    """Returns drawn unit vectors, and others like them as queries."""
    draw = np.random.default_rng(0)
    inner = draw.normal(size=(INNER, dim))
    rows = draw.normal(size=(count + QUERIES, INNER)) @ inner
    rows += AROUND * math.sqrt(INNER) * draw.normal(size=rows.shape)
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return rows[:count], rows[count:]


def kept(found: Sequence[Sequence[int] | Places], right: Places) -> float:
    """Returns which share of what is right was found."""
    return float(np.mean([len({*one} & {*true}) / FIRST for one, true in zip(found, right, strict=True)]))


def in_faiss(rows: Rows, queries: Rows, right: Places, kind: str) -> dict[str, Any]:
    """Measures a kind of index of FAISS's; what approximates is told to find 99 of 100."""
    began = time.process_time()
    index = faiss_index.build(rows, kind)
    built = time.process_time() - began
    if isinstance(index, faiss.IndexIVF):
        tuning.tune(index, queries)
    took, found = [], []
    for query in queries:
        began = time.process_time()
        found.append(faiss_index.search(index, query[None], FIRST)[1][0])
        took.append(time.process_time() - began)
    each = 4 if kind == "Flat" else 2
    stored = faiss.serialize_index(index).nbytes / len(rows)
    own = stored - each * rows.shape[1] + 64  # and the id
    return _measured(kept(found, right), (own, each), (own, each), statistics.median(took), built, rows)


def in_postgres(rows: Rows, queries: Rows, right: Places) -> dict[str, Any]:
    """Measures a table of vectors in a database, as Perennial makes and searches it."""
    place = connect(schema_for("capacity"), read_only=False)
    tables, stored = VectorTables(place), FaissVectors(faiss_index.build(rows, HALVED))
    with place.connect() as connection:
        process = psutil.Process(connection.scalar(sa.text("SELECT pg_backend_pid()")))

    def spent(call: Callable[[], object]) -> float:
        began = process.cpu_times()
        call()
        now = process.cpu_times()
        return float(now.user + now.system - began.user - began.system)

    tables.begin()
    built = spent(lambda: tables.make("c" * 64, stored, HALVED, lambda: queries))
    table = tables.known()["c" * 64]
    found: list[Places] = []
    took = spent(lambda: found.extend(table.search(query[None], FIRST)[1][0] for query in queries))
    sizes = (
        f"SELECT sum(pg_relation_size(indexrelid)) FILTER (WHERE NOT indisprimary), "
        f"pg_total_relation_size('{table.name}') FROM pg_index WHERE indrelid = '{table.name}'::regclass"
    )
    with place.connect() as connection:
        graph, all_of_it = connection.execute(sa.text(sizes)).one()
    tables.end()
    tables.drop_others()
    place.dispose()
    wide = 2 * rows.shape[1]
    memory, disk = (float(graph) / len(rows) - wide, 2), (all_of_it / len(rows) - 2 * wide, 4)
    return _measured(kept(found, right), memory, disk, took / len(queries), built, rows)


def measure(machine: str) -> list[dict[str, Any]]:
    """Measures what runs here, writes it among the constants, and returns all of them."""
    rows, queries = vectors(COUNT, DIM)
    right = np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :FIRST]
    said = json.loads(KEPT.read_text(encoding="utf-8"))
    made: dict[str, Callable[[], dict[str, Any]]] = {
        "FAISS, exact": lambda: in_faiss(rows, queries, right, "Flat"),
        "FAISS, exact, half the bits": lambda: in_faiss(rows, queries, right, HALVED),
        "FAISS in lists, half the bits": lambda: in_faiss(rows, queries, right, f"IVF256,{HALVED}"),
        "PostgreSQL with pgvector": lambda: in_postgres(rows, queries, right),
    }
    found = [one | made[one["name"]]() | {"source": machine} if one["name"] in made else one for one in said]
    _write(KEPT, found)
    return found


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the table of what was measured, or published."""
    return [
        "",
        "What an index takes, as `perennial capacity` knows it; processor time of one core.",
        "",
        "| engine | vectors | finds | in memory, a vector | on disk, a vector | a query | building, a vector | from |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {one['name']} | {one['count']:,} of {one['dim']} | {one['finds']:.3f} | {_bytes(one, 'memory')} | "
            f"{_bytes(one, 'disk')} | {one['query_ms']:.2f} ms | {one['build_ms']:.3f} ms | {one['source']} |"
            for one in found
        ),
    ]


def _bytes(one: dict[str, Any], where: str) -> str:
    own, each = one[f"{where}_bytes"]
    return f"{own + one['dim'] * each:,.0f} bytes"


def _measured(
    found: float, memory: tuple[float, int], disk: tuple[float, int], seconds: float, built: float, rows: Rows
) -> dict[str, Any]:
    return {
        "finds": round(found, 4),
        "memory_bytes": [round(memory[0], 1), memory[1]],
        "disk_bytes": [round(disk[0], 1), disk[1]],
        "query_ms": round(1000 * seconds, 3),
        "build_ms": round(1000 * built / len(rows), 5),
        "count": len(rows),
        "dim": rows.shape[1],
    }


def _write(path: Path, found: Sequence[dict[str, Any]]) -> None:
    path.write_text("[\n " + ",\n ".join(json.dumps(one) for one in found) + "\n]\n", encoding="utf-8")
