"""What a backup is written of, held while others work; nobody is kept waiting, and still all of it belongs together.

- What is published is held by second names first, on the home's own disk, where pruning takes away the first ones
  alone: the commits, then the releases, then their folders, then which releases were pruned. So a release that a
  commit names is there, with its folders or with the mark that says why not.
- Then the catalog and the pictures are held as they are at one moment. Intake stores pictures before it names them, so
  the catalog names none that is not there, and no release one that the catalog does not know.
- Uploads that wait for their job are held before the catalog and again after it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from app.home import garbage
from app.home.catalog_copy import reading
from app.home.commit_files import CommitFiles, file_of
from app.home.commits import kept_at
from app.home.durable import FileSystem
from app.home.folder import Home
from app.home.store import ReleaseStore
from ingest.carrying import copy_rows, held
from ingest.records import FINAL_STATES
from ingest.storage import HeldStore, Store
from ingest.tables import COMING, LEFT
from model_updates.version_files import SOUND

WITH_UPLOAD = ("ingest", "import")
"""The kinds of jobs that wait with a file of their own."""
_TRIES = 5


def hold_published(home: Home, pinned: Path) -> None:
    """Gives all that is published second names in a new folder on the disk of the home."""
    for left in reversed(range(_TRIES)):
        pinned.mkdir()
        try:
            _hold_once(home, pinned)
            return
        except FileNotFoundError:  # pruned in this moment
            shutil.rmtree(pinned)
            if not left:
                raise


def _hold_once(home: Home, pinned: Path) -> None:
    held = Home(pinned)
    commits = kept_at(home.commits_place, home, FileSystem())
    are_files = isinstance(commits, CommitFiles)
    if not are_files:
        held.commits.mkdir()
        for number, data in commits.read_many(commits.numbers()).items():
            file_of(held.commits, number).write_bytes(data)
    published = (home.releases, home.generations, home.versions, home.graphs, home.pruned)
    for folder in (*[home.commits] * are_files, *published):
        (pinned / folder.name).mkdir()
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            inner = path.relative_to(folder)
            if inner.name == SOUND or any(name.startswith(".") for name in inner.parts):
                continue
            target = pinned / folder.name / inner
            if path.is_dir():
                target.mkdir()
            else:
                os.link(path, target)
    for unneeded in garbage.unneeded(ReleaseStore(held)):
        shutil.rmtree(unneeded)
    for graphs in held.graphs.iterdir():
        if not (held.versions / graphs.name).is_dir():
            shutil.rmtree(graphs)


def hold_uploads(home: Home, pinned: Path) -> None:
    """Gives the files that jobs wait with second names, too; once more adds what came meanwhile."""
    with home.open_catalog(read_only=True) as catalog:
        waiting = [job for job in catalog.jobs() if job.state not in FINAL_STATES]
    jobs = {job.id: _waits_with(job.kind, job.arguments) for job in waiting}
    for job, source in jobs.items():
        if source is None or (pinned / "staging" / job / source).exists():
            continue
        (pinned / "staging" / job).mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # it is not there yet, or taken in by now
            os.link(home.staging / job / source, pinned / "staging" / job / source)


@contextmanager
def at_one_moment(home: Home, part: Path) -> Iterator[tuple[sqlite3.Connection, HeldStore]]:
    """Holds catalog and pictures so that nothing was written to the pictures between the two.

    Raises:
        CatalogMissing: the catalog was left for another place, and nobody has gone there.
    """
    with Store.open(home.blobs, read_only=True) as store:
        while True:
            # Brings one of an earlier release up to date, and one that was just carried.
            with home.open_catalog() as opened:
                place = opened.place  # which may be another one in the next round
            at = _held_in_database(place, part) if isinstance(place, str) else _held_in_file(place)
            with store.held() as blobs, at as catalog:
                if catalog is not None and blobs.is_newest():
                    yield catalog(), blobs
                    return


@contextmanager
def _held_in_file(place: Path) -> Iterator[Callable[[], sqlite3.Connection] | None]:
    """Holds a moment of the file; None where it is left for another place, or filled from one, in this moment."""
    with closing(reading(place)) as catalog:
        catalog.isolation_level = None
        catalog.execute("BEGIN")
        number = catalog.execute("PRAGMA user_version").fetchone()[0]  # only now it is held
        yield None if number in (LEFT, COMING) else lambda: catalog


@contextmanager
def _held_in_database(place: str, part: Path) -> Iterator[Callable[[], sqlite3.Connection]]:
    """Holds a moment of the database; when it is asked for, it is written to a file, which goes in the end."""
    folder = part / ".rows"
    with ExitStack() as stack, ExitStack() as holding:
        rows = holding.enter_context(held(place))

        def written() -> sqlite3.Connection:
            folder.mkdir()
            stack.callback(shutil.rmtree, folder)
            copy_rows(rows, folder / "catalog.sqlite")
            holding.close()  # the database would keep everything that changes while the pictures are packed
            return stack.enter_context(closing(reading(folder / "catalog.sqlite")))

        yield written


def unfinished(catalog: sqlite3.Connection) -> dict[str, str | None]:
    """Returns the jobs that have not ended, each with the name of the file that it waits with."""
    marks = ", ".join("?" * len(FINAL_STATES))
    rows = catalog.execute(
        f"SELECT seq, kind, arguments FROM jobs WHERE state NOT IN ({marks})", sorted(FINAL_STATES)
    )
    return {f"j{seq}": _waits_with(kind, json.loads(arguments)) for seq, kind, arguments in rows}


def _waits_with(kind: str, arguments: Mapping[str, Any]) -> str | None:
    return Path(str(arguments.get("source", ""))).name or None if kind in WITH_UPLOAD else None
