"""Vectors in Milvus: a collection for each large index file, which every machine of a home searches.

As in a database (`index.vector_tables`), the file stays what is kept, and a collection can be made of it again. What is
known of a collection is part of its name, which it gets when it is complete, so that a list of names says everything
(https://milvus.io/docs; 2.3 or newer).
"""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from index.errors import IndexMoved, VectorsRefused, VectorsUnreachable
from index.vector_index import FEW, FIRST, KEPT, VectorIndex, allowed_first, padded, require_all, tuned
from index.vectors import nearest_rows
from ingest.circuit import Circuit
from ingest.sentence import phrase

if TYPE_CHECKING:
    from pymilvus import MilvusClient

SECONDS, PROBE_SECONDS = (
    10.0,
    3.0,
)  # that an answer is waited for, and where it is only asked whether there is one
BUILDING_SECONDS = 24 * 3600.0
FILTERED = 1000  # rows that the graph is asked for where a long filter is to leave some of them
MOST_FOUND = 16_384  # by a search of Milvus
AT_ONCE = 4096  # vectors that are sent or fetched together
LINKS, BUILDING_WIDTH = 16, 200  # of the graph
# How the names of collections go on: of one that is complete, with what is known of it, and of one that is not.
_MADE, _MAKING = r"_of_([0-9a-f]{64})_(\d+)_(\d+)_(\d+)_(\d+)", r"_making_[0-9a-f]{32}"
_NO_COLLECTION, _REFUSED = 100, 65535  # as Milvus counts its errors

_circuits: dict[str, Circuit] = {}

Rows = NDArray[np.float32]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class MilvusVectors:
    """A collection of vectors, searched as `index.vector_index` says."""

    address: str
    name: str
    count: int
    dim: int
    width: int  # how many candidates a search holds
    kept: float

    @property
    def engine_name(self) -> str:
        """What it is called by."""
        return "Milvus"

    @property
    def parameters(self) -> str:
        """How widely a search looks, as Milvus says it."""
        return f"ef={self.width}"

    def search(self, queries: Rows, k: int, allowed: NDArray[np.bool_] | None = None) -> tuple[Rows, Places]:
        """Finds rows by the graph; a filter goes along while it is short, and is applied here otherwise."""
        if allowed is None:
            return self._found(queries, k)
        inside, outside = np.flatnonzero(allowed), np.flatnonzero(~allowed)
        if len(inside) <= FEW:
            return self._found(queries, k, f"row in {inside.tolist()}", len(outside))
        if len(outside) <= FEW:
            return self._found(queries, k, f"row not in {outside.tolist()}", len(outside))
        deep = min(MOST_FOUND, max(FILTERED, 2 * k * len(allowed) // len(inside)))
        scores, rows, short = allowed_first(*self._found(queries, deep), allowed, k)
        if short.any():
            found = self._found(queries[short], k, f"row in {inside.tolist()}", MOST_FOUND)
            scores[short], rows[short] = found
        return scores, rows

    def exact(self, queries: Rows, k: int) -> tuple[Rows, Places]:
        """Finds what comparing every row finds: all of them are fetched."""
        return nearest_rows(self.vectors, queries, k, np.arange(self.count))

    def vectors(self, rows: Places) -> Rows:
        """Gives rows back as they are stored."""
        found = np.empty((len(rows), self.dim), dtype=np.float32)
        for start in range(0, len(rows), AT_ONCE):
            wanted, places = np.unique(rows[start : start + AT_ONCE], return_inverse=True)
            with _explained(self.address) as client:
                answer = client.query(
                    self.name, ids=wanted.tolist(), output_fields=["row", "embedding"], timeout=SECONDS
                )
            require_all(self.name, len(answer), wanted)
            answer.sort(key=lambda one: one["row"])
            found[start : start + AT_ONCE] = np.array([one["embedding"] for one in answer], dtype=np.float32)[
                places
            ]
        return found

    def _found(self, queries: Rows, k: int, filter_: str = "", hidden: int = 0) -> tuple[Rows, Places]:
        wanted = min(k, MOST_FOUND)
        width = max(self.width + min(hidden, MOST_FOUND), wanted)  # what is near may all be filtered out
        with _explained(self.address) as client:
            answer = client.search(
                self.name,
                data=list(queries),
                limit=wanted,
                filter=filter_,
                search_params={"metric_type": "IP", "params": {"ef": width}},
                consistency_level="Eventually",  # a collection never changes
                timeout=SECONDS,
            )
        return padded([[(hit["id"], hit["distance"]) for hit in one] for one in answer], k)


@dataclass(frozen=True)
class MilvusCollections:
    """The collections of a home in a Milvus, as `index.vector_index.VectorEngine` says."""

    address: str  # http://host:19530/name; the name, `perennial` without one, tells homes apart

    @property
    def _of(self) -> str:
        """How the names of the home's collections begin."""
        return urlsplit(self.address).path.strip("/") or "perennial"

    def begin(self) -> None:
        """Looks whether Milvus answers.

        Raises:
            VectorsUnreachable: it does not.
        """
        with _explained(self.address) as client:
            client.list_collections(timeout=SECONDS)

    def end(self) -> None:
        """Does nothing: the home says where its index is searched."""

    @property
    def are_kept(self) -> bool:
        """Whether it is to keep vectors."""
        return True

    def known(self) -> dict[str, MilvusVectors]:
        """Returns the collections that keep enough, by the sha256 of the file that each was made of."""
        return {digest: one for digest, one in self._all().items() if one.kept >= KEPT}

    def _all(self) -> dict[str, MilvusVectors]:
        found: dict[str, MilvusVectors] = {}
        for name in self._names():
            if (said := re.fullmatch(self._of + _MADE, name)) is not None:
                count, dim, width, kept = (int(number) for number in said.groups()[1:])
                found[said[1]] = MilvusVectors(self.address, name, count, dim, width, kept / 1e4)
        return found

    def make(self, digest: str, stored: VectorIndex, kind: str, queries: Callable[[], Rows]) -> None:
        """Makes the collection of an index file, or leaves the one there is; what was cut off is removed.

        `queries`, (q, dim) float32 unit rows, are what it is tuned on. Whoever calls it holds the updater lock.

        Raises:
            VectorsRefused: Milvus cannot keep it.
            VectorsUnreachable: Milvus does not answer.
        """
        if digest in self._all():
            return
        asked, name = queries(), f"{self._of}_making_{uuid.uuid4().hex}"
        with _explained(self.address) as client:
            for left in self._names():
                if re.fullmatch(self._of + _MAKING, left):
                    client.drop_collection(left, timeout=SECONDS)
            _fill(client, name, stored)
            table = MilvusVectors(self.address, name, stored.count, stored.dim, 0, 0.0)
            first = min(FIRST, stored.count)

            def scores(width: int) -> Rows:
                return replace(table, width=width).search(asked, first)[0]

            width, kept = tuned(scores, stored.exact(asked, first)[0])
            if kept < KEPT:  # it is not searched, and need not lie in memory
                client.release_collection(name, timeout=SECONDS)
            facts = f"{digest}_{stored.count}_{stored.dim}_{width}_{int(1e4 * kept)}"
            client.rename_collection(name, f"{self._of}_of_{facts}", timeout=SECONDS)

    def drop_others(self, needed: Collection[str] = ()) -> list[str]:
        """Removes the collections of all files but those that are needed, and what was cut off; returns their names.

        Whoever calls it holds the updater lock.
        """
        stay = {one.name for digest, one in self._all().items() if digest in needed}
        own = re.compile(f"{self._of}({_MADE}|{_MAKING})")
        gone = [name for name in self._names() if own.fullmatch(name) and name not in stay]
        with _explained(self.address) as client:
            for name in gone:
                client.drop_collection(name, timeout=SECONDS)
        return gone

    def _names(self) -> list[str]:
        with _explained(self.address) as client:
            return [str(name) for name in client.list_collections(timeout=SECONDS)]


def _fill(client: MilvusClient, name: str, stored: VectorIndex) -> None:
    from pymilvus import DataType

    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field("row", DataType.INT64, is_primary=True)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=stored.dim)
    client.create_collection(name, schema=schema, timeout=SECONDS)
    for start in range(0, stored.count, AT_ONCE):
        rows = np.arange(start, min(start + AT_ONCE, stored.count))
        both = zip(rows.tolist(), stored.vectors(rows), strict=True)
        client.insert(name, [{"row": row, "embedding": vector} for row, vector in both], timeout=60)
    client.flush(name, timeout=BUILDING_SECONDS)
    graph = client.prepare_index_params()
    graph.add_index(
        "embedding",
        index_type="HNSW",
        metric_type="IP",
        params={"M": LINKS, "efConstruction": BUILDING_WIDTH},
    )
    client.create_index(name, graph, timeout=BUILDING_SECONDS)
    client.load_collection(name, timeout=BUILDING_SECONDS)


@contextmanager
def _explained(address: str) -> Iterator[MilvusClient]:
    """Gives the client, and says in a sentence what it could not do.

    Raises:
        IndexMoved: what is asked for is not there any more.
        VectorsUnreachable: Milvus does not answer, or not in time.
        VectorsRefused: it cannot do it, or what asks it is not installed.
    """
    try:
        from pymilvus.exceptions import MilvusException
    except ModuleNotFoundError as error:
        raise VectorsRefused(
            phrase("What asks Milvus is not installed here: `pip install 'perennial-search[milvus]'`.")
        ) from error
    circuit = _circuits.setdefault(address, Circuit(partial(_ask, address)))
    if why := circuit.why_open():
        raise _unreachable(address, why)
    try:
        yield _client(_uri(address))
    except MilvusException as error:
        if error.code == _NO_COLLECTION:
            raise IndexMoved from error
        said = " ".join(str(error.message).split())[:300].rstrip(".")
        if error.code == _REFUSED:
            raise VectorsRefused(phrase("Milvus cannot do this ({why}).", why=said)) from error
        circuit.doubt()
        raise _unreachable(address, said) from error


def _unreachable(address: str, why: str) -> VectorsUnreachable:
    return VectorsUnreachable(
        phrase(
            "Milvus at {url} cannot be reached ({why}). Nothing was lost: look whether it runs.",
            url=address,
            why=why,
        )
    )


def _ask(address: str) -> str:
    """Returns why Milvus does not answer; nothing where it does."""
    from pymilvus.exceptions import MilvusException

    try:
        _client(_uri(address)).list_collections(timeout=PROBE_SECONDS)
    except MilvusException as error:
        return " ".join(str(error.message).split())[:300].rstrip(".")
    return ""


def _uri(address: str) -> str:
    return urlsplit(address)._replace(path="").geturl()


@cache
def _client(uri: str) -> MilvusClient:
    from pymilvus import MilvusClient

    # https://milvus.io/docs/authenticate.md: user:password, or a token of a provider's; never part of the address.
    token = os.environ.get("MILVUS_TOKEN", "")
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # what goes wrong is said by us
    return MilvusClient(uri=uri, token=token, timeout=SECONDS)
