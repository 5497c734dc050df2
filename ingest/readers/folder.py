"""A folder of pictures with caption files or tables beside them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from ingest.limits import Limits
from ingest.readers.container import (
    ARCHIVE_SUFFIXES,
    NESTED_ARCHIVE,
    PICTURE_SUFFIXES,
    SPECIAL_FILE,
    TABLE_SUFFIXES,
    Listing,
    NameIndex,
    Problem,
    is_system_file,
    suffix_of,
)
from ingest.readers.table import read_file


class Folder:
    """A folder on this machine, read with everything below it; links are not followed."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.resolve().name
        self._path = path.resolve()
        self._limits = limits
        self._index = NameIndex(())

    def scan(self) -> Listing:
        """Lists the pictures and reads the texts."""
        listing = Listing()
        for name in self._names(listing):
            suffix = suffix_of(name)
            path = self._path / name
            if suffix in PICTURE_SUFFIXES:
                listing.pictures.append(name)
            elif suffix in ARCHIVE_SUFFIXES:
                listing.problems.append(Problem(name, "nested_archive", NESTED_ARCHIVE))
            elif suffix in TABLE_SUFFIXES or suffix == ".txt":
                limit = self._limits.sidecar_bytes if suffix == ".txt" else self._limits.text_bytes
                if path.stat().st_size > limit:
                    sentence = f"The text has more than {limit / 1024:,.0f} KB."
                    listing.problems.append(Problem(name, "text_too_large", sentence))
                else:
                    listing.texts[name] = path.read_bytes()
            else:
                listing.others.append(name)
        self._index = NameIndex((*listing.pictures, *listing.others))
        return listing

    def locate(self, name: str) -> str | None:
        """Finds a file of the folder by its relative name."""
        return self._index.find(name)

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Problem]]:
        """Yields the bytes of the wanted files in alphabetical order."""
        for name in sorted(wanted):
            yield name, read_file(self._path, name, self._limits)

    def _names(self, listing: Listing) -> Iterator[str]:
        for root, folders, files in os.walk(self._path):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            for file in sorted(files):
                path = Path(root) / file
                name = path.relative_to(self._path).as_posix()
                if is_system_file(name):
                    continue
                if path.is_symlink() or not path.is_file():
                    listing.problems.append(Problem(name, "special_file", SPECIAL_FILE))
                else:
                    yield name
