"""Catalogs that tests make lie in PostgreSQL, each in a schema of its own, instead of in a file.

`make scale-test` runs tests so: what is asked of a catalog is answered alike by both. What asks SQLite itself is marked
`sqlite`, and left out.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from app.home import engines
from app.home.commits import carry_commits
from app.home.folder import Home
from ingest import carrying, postgres
from ingest.catalog import Catalog
from ingest.commit_rows import CommitRows
from ingest.engines import open_engine
from ingest.postgres_connection import connect
from ingest.schema import SCHEMA
from tests.postgres_server import made_in, schema_for

_create = Home.create.__func__  # type: ignore[attr-defined]


def _created(cls: type[Home], root: Path) -> Home:
    is_new = not (root / "FORMAT").exists()
    home: Home = _create(cls, root)
    if is_new:
        engines.write(root, engines.Engines(made_in(root.resolve()), commits=True))
    return home


def _opened(cls: type[Catalog], place: Path | str, *, read_only: bool = False, owner: str = "") -> Catalog:
    if not isinstance(place, str):
        # Where a test opens the file of a home, it means the catalog of the home.
        of_home = engines.read(place.parent).catalog
        place = of_home or (schema_for(place) if read_only else made_in(place))
    engine = open_engine(place, read_only=read_only, owner=owner)
    return cls(engine, place, read_only=read_only, owner=owner)


_copytree = shutil.copytree


def _copied(source: Path, target: Path, *more: Any, **how: Any) -> Path:
    """Copies a folder; a home that comes to lie there has a catalog of its own."""
    copied = Path(_copytree(source, target, *more, **how))
    if (copied / engines.FILE).exists():
        address = schema_for(copied.resolve())
        engine = connect(address, read_only=False)
        before = engines.read(copied).catalog or ""
        with carrying.held(before) as rows, postgres.making(engine) as copy:
            carrying.copy_all(rows, copy)
            postgres.set_number(copy, SCHEMA)
        engine.dispose()
        carry_commits(CommitRows(before), CommitRows(address))
        engines.write(copied, engines.Engines(address, commits=True))
    return copied


_patched: Any = (Home, Catalog, shutil)
_patched[0].create = classmethod(_created)
_patched[1].open = classmethod(_opened)
_patched[2].copytree = _copied
