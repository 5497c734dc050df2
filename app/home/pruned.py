"""Releases whose encoder and index were removed to free room: a mark for each, beside what it says of itself.

The mark is the point of no return. Before it a release is whole; from then on nothing needs its version and generation
any more, and whoever tidies up next removes what no other release needs, also where this was cut short. Manifest and
report stay, so that lineage, history and what was measured still name it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from app.home.commits import now
from app.home.durable import FileSystem, fault, replace_file
from ingest.sentence import known_fields


@dataclass(frozen=True, slots=True)
class Pruned:
    """That a release was pruned."""

    release: str  # its id
    by: str  # who did it
    why: str  # in that person's words
    time: str  # ISO 8601, UTC

    def to_json(self) -> bytes:
        """Returns what is written."""
        return json.dumps(asdict(self), indent=2).encode()


def mark(folder: Path, release: str, *, by: str, why: str, files: FileSystem) -> Pruned:
    """Marks a release as pruned, durably; the folder of marks is made when missing."""
    pruned = Pruned(release, by, why, now())
    fault("prune:mark")
    keep(folder, release, pruned.to_json(), files)
    return pruned


def keep(folder: Path, release: str, mark: bytes | None, files: FileSystem | None = None) -> None:
    """Writes a mark as it is, durably; None is no mark."""
    files = files or FileSystem()
    if mark is None:
        return
    if not folder.is_dir():
        files.mkdir(folder)
        files.fsync_dir(folder.parent)
    replace_file(_place(folder, release), mark, files=files)


def read(folder: Path, release: str) -> Pruned | None:
    """Returns the mark of a release; None of one that is kept. A mark that cannot be read is one all the same."""
    try:
        return of_json(_place(folder, release).read_bytes(), release)
    except FileNotFoundError:
        return None
    except OSError:
        return Pruned(release, "", "", "")


def of_json(data: bytes | None, release: str) -> Pruned | None:
    """Reads a mark; None where there is none. One that cannot be read is one all the same."""
    try:
        return None if data is None else Pruned(**known_fields(Pruned, json.loads(data)))
    except (ValueError, TypeError, AttributeError):
        return Pruned(release, "", "", "")


def _place(folder: Path, release: str) -> Path:
    return folder / f"{release}.json"
