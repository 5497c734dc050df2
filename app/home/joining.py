"""A further machine of a home: a folder that says where everything lies, and fills itself with what is asked for."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from app.desk.errors import UsageProblem
from app.home import engines
from app.home.folder import Home
from app.home.objects_move import home_in
from app.home.store import ReleaseStore
from ingest.objects import Objects
from ingest.postgres_connection import address_of

_LEFT = {engines.FILE, ".catalog.lock"}


@dataclass(frozen=True, slots=True)
class Joined:
    """A home that this machine has a part in now."""

    home: Path  # the folder that was made
    catalog: str  # the address of its database
    objects: str  # the address of its bucket
    release: str  # that is live; empty where none is


def join(root: Path, catalog: str, address: str, index: str | None = None) -> Joined:
    """Makes the folder of a further machine, of a home whose catalog and pictures lie where it reaches them.

    A Milvus that searches the home's `index` is named to each machine; a database that does so is found by itself.

    Raises:
        UsageProblem: the folder holds something already, no home lies there, or what is to search is no Milvus.
        CatalogError: the database cannot be used, or its catalog is another home's.
        ObjectsError: the bucket cannot be used.
    """
    address_of(catalog)  # refused before it is written anywhere
    if index is not None and not engines.is_milvus(index):
        raise UsageProblem(
            f"{index!r} is no address of a Milvus (http://host:19530). Where the database searches the index, this "
            "machine finds that by itself: leave `--index` out."
        )
    objects = Objects(address)
    name = home_in(objects)
    if not name:
        raise UsageProblem(
            f"No home's pictures lie in {objects.address}. Carry them there on the machine that has them: "
            "`perennial home move --objects`."
        )
    wanted = engines.Engines(catalog, commits=True, objects=objects.address, home=name, index=index)
    found = _found_in(root)
    # What was cut off, or copied by hand, goes on.
    is_begun = bool(found) and engines.read(root) == wanted
    if found and not is_begun and not {*found} <= _LEFT:
        raise UsageProblem(
            f"{root} holds something already ({found[0]}). Choose an empty or a new folder: `--home FOLDER`."
        )
    was_there = root.exists()
    try:
        root.mkdir(parents=True, exist_ok=True)
        engines.write(root, wanted)  # first: without it, the folder would be a home of its own
        home = Home.create(root)
        home.open_catalog().close()  # is it this home's?
        live = ReleaseStore(home).current()
    except BaseException:
        for path in [] if is_begun else root.iterdir() if was_there else [root]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        raise
    return Joined(root, catalog, objects.address, live.release if live else "")


def _found_in(root: Path) -> list[str]:
    if root.is_dir():
        return sorted(path.name for path in root.iterdir())
    return [root.name] if root.exists() else []
