"""Carrying a home's catalog and commits to a database that several machines reach, and back into the home's folder.

Servers of the home go on answering meanwhile and follow within `poll_seconds`; who wants to write waits until it is
done. Nobody can write to what was left behind.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from app.desk.errors import UpdateRunning, UsageProblem
from app.home import engines, holding, lock
from app.home.catalog_copy import copying, drop_copy, keep_copy
from app.home.commits import carry_commits, kept_at
from app.home.durable import FileSystem, fault
from app.home.folder import Home
from ingest.carrying import carry
from ingest.postgres import claim
from ingest.postgres_connection import address_of

HERE = "sqlite"
"""Says that the catalog is to lie in the home's folder."""
_PATIENCE = 2.0  # seconds: a worker outlives its job by the moment in which it copies the catalog
DECIDED = "catalog:decided"
"""The fault point just before everybody is sent to the new place."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Where a catalog was carried."""

    catalog: str  # the address of its database, or the path of its file
    left: str  # where it was before
    rows: int  # that were copied and compared
    seconds: float
    was_of: str = ""  # the home whose catalog it was, where it was not carried but is this one's from now on


def move_catalog(home: Home, to: str) -> Moved:
    """Carries the catalog into the database at an address, or back where `to` is "sqlite".

    Where it lies there already and is another home's, this home was moved, and it is made this one's.

    Killed at any moment, it leaves the catalog where it was, or in its new place, whole; asking again finishes.

    Raises:
        UsageProblem: it lies there already and is this home's, or the address holds what cannot be written down.
        UpdateRunning: somebody updates this home, or takes something in.
        CatalogError: one lies there already, or the database cannot be used; the sentence says why.
    """
    home.require_stores()
    before = home.catalog_place
    place: Path | str = home.catalog if to == HERE else to
    engines.line_of(to)  # refused before anything is carried
    started = time.monotonic()
    if _is_same(place, before):
        was = claim(before, home.identity) if isinstance(before, str) else home.identity
        if not {*was.split("\n")}.isdisjoint(home.identity.split("\n")):
            raise UsageProblem(f"The catalog lies in {place} already.")
        return Moved(str(place), str(place), 0, time.monotonic() - started, was.partition("\n")[0])
    with holding.hold(home, holding.UPDATER, "moving the catalog"), copying(home):
        require_rest(home)

        def decide() -> None:
            here, there = home.commits_place, home.commits if place == home.catalog else place
            with lock.briefly(home.commits_lock, alone=True):  # nothing goes live meanwhile
                carry_commits(*(kept_at(one, home, FileSystem()) for one in (here, there)))
                # First: what is removed for good from now on would stay in it, and `repair` might take it one day.
                drop_copy(home)
                fault(DECIDED)
                is_there = place != home.catalog
                kept = engines.read(home.root)
                engines.write(home.root, replace(kept, catalog=to if is_there else None, commits=is_there))

        rows = carry(before, place, decide, owner=home.identity)
    keep_copy(home, at_once=True)  # where it lies in the home again
    return Moved(str(place), str(before), rows, time.monotonic() - started)


def _is_same(place: Path | str, other: Path | str) -> bool:
    if isinstance(place, str) and isinstance(other, str):
        return address_of(place) == address_of(other)
    return place == other


def require_rest(home: Home) -> None:
    """Refuses while a job is at work, or another machine that shares the home.

    Raises:
        UpdateRunning: one is; the sentence names it.
    """
    others = holding.at_work_elsewhere(home)
    if others:
        raise UpdateRunning(
            f"Other machines are at work on this home: {', '.join(others)}. Stop their servers and workers, and try "
            "again half a minute later."
        )
    end = time.monotonic() + _PATIENCE
    for path in sorted((home.root / "workers").glob("*.lock")):
        while holding.holder(home, path.stem) is not None:
            if time.monotonic() > end:
                raise UpdateRunning(
                    f"Job {path.stem} is at work and writes to the catalog. Wait until it ends."
                )
            time.sleep(0.05)
