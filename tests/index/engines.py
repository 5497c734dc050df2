"""Engines that keep vectors, each of its own: a schema of the PostgreSQL that tests start, a name in the Milvus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from index.vector_index import VectorEngine
from tests import milvus_server

PGVECTOR = pytest.param("pgvector", marks=pytest.mark.postgres)
MILVUS = pytest.param("milvus", marks=pytest.mark.milvus)


@contextmanager
def engine_for(name: str, place: str) -> Iterator[VectorEngine]:
    if name == "milvus":
        from index.milvus import MilvusCollections

        yield MilvusCollections(milvus_server.place())
        return
    from index.vector_tables import VectorTables
    from ingest.postgres_connection import connect
    from tests.postgres_server import schema_for

    opened = connect(schema_for(place), read_only=False)
    try:
        yield VectorTables(opened)
    finally:
        opened.dispose()
