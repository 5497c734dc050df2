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


def mark(folder: Path, release: str, *, by: str, why: str, files: FileSystem) -> Pruned:
    """Marks a release as pruned, durably; the folder of marks is made when missing."""
    if not folder.is_dir():
        files.mkdir(folder)
        files.fsync_dir(folder.parent)
    pruned = Pruned(release, by, why, now())
    fault("prune:mark")
    replace_file(_place(folder, release), json.dumps(asdict(pruned), indent=2).encode(), files=files)
    return pruned


def read(folder: Path, release: str) -> Pruned | None:
    """Returns the mark of a release; None of one that is kept. A mark that cannot be read is one all the same."""
    try:
        return Pruned(**known_fields(Pruned, json.loads(_place(folder, release).read_bytes())))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError):
        return Pruned(release, "", "", "")


def _place(folder: Path, release: str) -> Path:
    return folder / f"{release}.json"
