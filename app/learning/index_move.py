"""Carrying what searches a home's index: into tables beside its catalog, into a Milvus, or back into its files."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from app.desk.errors import UsageProblem
from app.home import engines
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.gallery import asked_of
from app.learning.going_live import live_release
from index.elsewhere import keep_vectors
from index.vector_index import VectorEngine
from ingest.sentence import phrase

PGVECTOR, HOME = "pgvector", "home"


@dataclass(frozen=True)
class IndexCarried:
    """What was carried."""

    index: str  # what searches it now: pgvector, home, or the address of a Milvus
    release: str  # whose index it is
    vectors: int  # that were copied
    seconds: float


def move_index(workspace: Workspace, to: str) -> IndexCarried:
    """Has another engine search the index of what is live and of what follows, or the home again.

    Whoever searches goes on: the files stay, and servers follow by themselves. What was made of them stays, too, until
    the next pruning, or until a server starts; in a Milvus, until somebody removes it.

    Raises:
        UsageProblem: the catalog lies in the home, or there is no such engine.
        VectorsRefused: the engine cannot keep the index; the sentence says what to do.
        VectorsUnreachable: it does not answer.
        NoRelease: nothing is live.
        UpdateRunning: somebody updates.
    """
    started, root = time.monotonic(), workspace.home.root
    if engines.is_milvus(to) and not urlsplit(to).path.strip("/"):  # others may have homes there, too
        to = f"{to.rstrip('/')}/home_{hashlib.sha256(workspace.home.identity.encode()).hexdigest()[:12]}"
    made = _engine_of(workspace, to)
    with workspace.releases.updater_lock("carrying the index"):
        _, live = live_release(workspace)
        before, vectors = workspace.vector_engine, 0
        if made is not None:
            vectors = _made(workspace, made, live)
        engines.write(root, replace(engines.read(root), index=to if engines.is_milvus(to) else None))
        if before is not None and before != made:
            before.end()
    return IndexCarried(to, live.id, vectors, time.monotonic() - started)


def _made(workspace: Workspace, engine: VectorEngine, live: ReleaseRecord) -> int:
    """Has an engine keep what is live; one that cannot is not left half begun. Returns how many vectors were copied."""
    was_kept = engine.are_kept
    engine.begin()
    generation, encoder = workspace.open_generation(live.generation), workspace.open_searcher(live.version)
    try:
        return keep_vectors(
            engine, generation.folder, lambda: asked_of(workspace, encoder, generation.routes, None)
        )
    except BaseException:
        if not was_kept:
            engine.end()
        raise


def _engine_of(workspace: Workspace, to: str) -> VectorEngine | None:
    """Returns what is to search; None for the home."""
    if to == HOME:
        return None
    if engines.is_milvus(to):
        from index.milvus import MilvusCollections

        return MilvusCollections(to)
    if to != PGVECTOR:
        raise UsageProblem(
            phrase(
                "{name} searches no index. There are `pgvector`, beside a catalog in PostgreSQL, the address of a "
                "Milvus (http://host:19530), and `home`.",
                name=repr(re.sub("//.*@", "//…@", to)[:40]),
            )
        )
    if not isinstance(workspace.catalog.place, str):
        raise UsageProblem(
            phrase(
                "The index is searched beside the catalog, and this home's lies in its folder. Carry that first: "
                "`perennial home move --to postgresql://user@host/database`."
            )
        )
    from index.vector_tables import VectorTables

    return VectorTables(workspace.catalog.engine)
