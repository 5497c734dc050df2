"""What a backup is on the disk: files under known names, and a manifest that names size and sha256 of each."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.home.package import unsealed

MANIFEST = "backup.json"
FORMAT = 1
PACKS = ("blobs", "features")
"""The stores whose records a backup has in packs: pictures, and what encoders saw in them."""
_ID = "[A-Za-z0-9][A-Za-z0-9._+-]{0,120}"
NAMES = re.compile(
    rf"FORMAT|catalog\.sqlite|perennial\.toml|({'|'.join(PACKS)})-[0-9]{{5}}\.pack|commits/[0-9]{{8}}\.json"
    rf"|pruned/{_ID}\.json|(versions|generations|releases|graphs)/{_ID}/{_ID}|staging/j[0-9]{{1,18}}/{_ID}"
)
"""What the files of a backup are called; one that names anything else is not restored."""
_PREFIX = "perennial-"


@dataclass(frozen=True)
class Backup:
    """A backup that lies somewhere."""

    folder: Path
    facts: Mapping[str, Any]  # what its manifest says
    sha256: str  # of the manifest

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Size and sha256 by name."""
        found: dict[str, dict[str, Any]] = self.facts["files"]
        return found

    @property
    def number(self) -> int:
        """How many were written into the same place before it; the clock may have been set back since."""
        return int(self.facts.get("number", 0))

    @property
    def bytes(self) -> int:
        """How large its files are together."""
        return sum(int(one["bytes"]) for one in self.files.values())


def newest(place: Path) -> Backup | None:
    """Returns the newest backup below a folder; one whose manifest cannot be read is passed over."""
    found = filter(None, map(read_manifest, place.glob(f"{_PREFIX}*")))
    return max(found, key=lambda one: (one.number, one.folder.name), default=None)


def read_manifest(folder: Path) -> Backup | None:
    """Returns the backup that a folder holds; None where it has no manifest that is as it was written."""
    try:
        data = (folder / MANIFEST).read_bytes()
    except OSError:
        return None
    facts = unsealed(data)
    return None if facts is None else Backup(folder, facts, hashlib.sha256(data).hexdigest())


def new_name(to: Path) -> str:
    """Returns the name of a new backup: by time, and another's of the same second with a number."""
    name = f"{_PREFIX}{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    count = len(list(to.glob(f"{name}*")))
    return f"{name}-{count + 1}" if count else name
