"""A folder of pictures with caption files or tables beside them, or of shards that hold both."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.arrow_file import ArrowFile, ArrowTables
from ingest.readers.container import (
    ARCHIVE_SUFFIXES,
    ARROW_SUFFIXES,
    NESTED_ARCHIVE,
    PICTURE_SUFFIXES,
    SIDECAR_SUFFIXES,
    SPECIAL_FILE,
    TEXT_SUFFIXES,
    Container,
    Listing,
    NameIndex,
    Problem,
    is_system_file,
    suffix_of,
)
from ingest.readers.table_file import read_file
from ingest.readers.tar_archive import TarArchive, is_tar_file


@dataclass(frozen=True, eq=False)
class _Shard:
    """A container inside the folder; `prefix` stands before its own names of pictures."""

    container: Container
    prefix: str


class Folder:
    """A folder on this machine, read with everything below it; links are not followed.

    A tar, and a Parquet file that holds pictures, is a shard: read as if it were a folder of its own name.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.resolve().name
        self._path = path.resolve()
        self._limits = limits
        self._index = NameIndex(())
        self._shards: dict[str, _Shard] = {}

    def scan(self) -> Listing:
        """Lists the pictures and reads the texts."""
        listing = Listing()
        for name in self._names(listing):
            suffix = suffix_of(name)
            if suffix in PICTURE_SUFFIXES:
                listing.pictures.append(name)
            elif suffix in ARROW_SUFFIXES:
                self._add_arrow(name, listing)
            elif suffix in ARCHIVE_SUFFIXES:
                self._add_archive(name, listing)
            elif suffix in TEXT_SUFFIXES:
                self._add_text(name, listing)
            else:
                listing.others.append(name)
        own = [name for name in listing.pictures if self._shard_of(name) is None]
        self._index = NameIndex((*own, *(name for name in listing.others if self._shard_of(name) is None)))
        return listing

    def locate(self, name: str) -> str | None:
        """Finds a file of the folder, or of a shard in it, by its relative name."""
        shard = self._shard_of(name)
        if shard is None:
            return self._index.find(name)
        found = shard.container.locate(name.removeprefix(shard.prefix))
        return None if found is None else shard.prefix + found

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Problem]]:
        """Yields the bytes of the wanted files in alphabetical order, then shard after shard."""
        inside: dict[_Shard, set[str]] = {}
        for name in sorted(wanted):
            shard = self._shard_of(name)
            if shard is None:
                yield name, read_file(self._path, name, self._limits)
            else:
                inside.setdefault(shard, set()).add(name.removeprefix(shard.prefix))
        for shard, names in inside.items():
            for name, data in shard.container.read(names):
                yield shard.prefix + name, data

    def _add_text(self, name: str, listing: Listing) -> None:
        path = self._path / name
        is_sidecar = suffix_of(name) in SIDECAR_SUFFIXES
        limit = self._limits.sidecar_bytes if is_sidecar else self._limits.text_bytes
        if path.stat().st_size <= limit:
            listing.texts[name] = path.read_bytes()
        elif suffix_of(name) == ".json":  # too much for one picture: annotations of many, or none at all
            listing.others.append(name)
        else:
            sentence = f"The text has more than {limit / 1024:,.0f} KB."
            listing.problems.append(Problem(name, "text_too_large", sentence))

    def _add_arrow(self, name: str, listing: Listing) -> None:
        limits = _own_disk(self._limits)
        file = ArrowFile(self._path / name, name, limits.text_bytes)
        try:
            if file.embedded:
                self._shards[name] = _Shard(ArrowTables(name, {name: file.path}, limits), "")
            listing.tables[name] = file.table()
        except BadUpload as error:
            listing.problems.append(Problem(name, error.code, error.sentence))

    def _add_archive(self, name: str, listing: Listing) -> None:
        if not is_tar_file(self._path / name):
            listing.problems.append(Problem(name, "nested_archive", NESTED_ARCHIVE))
            return
        shard = TarArchive(self._path / name, _own_disk(self._limits))
        try:
            part = shard.scan()
        except BadUpload as error:
            listing.problems.append(Problem(name, error.code, error.sentence))
            return
        self._shards[name] = _Shard(shard, f"{name}/")
        listing.pictures += [f"{name}/{picture}" for picture in part.pictures]
        listing.texts.update({f"{name}/{text}": data for text, data in part.texts.items()})
        listing.others += [f"{name}/{other}" for other in part.others]
        listing.problems += [replace(problem, where=f"{name}/{problem.where}") for problem in part.problems]
        listing.notes += [f"{name}: {note}" for note in part.notes]

    def _shard_of(self, name: str) -> _Shard | None:
        """Returns the shard below which a name lies."""
        if not self._shards:
            return None
        parts = name.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return next((self._shards[name] for name in above if name in self._shards), None)

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


def _own_disk(limits: Limits) -> Limits:
    """Returns limits for a shard: a folder on the own disk may be of any size."""
    return replace(limits, items=sys.maxsize >> 16, unpacked_bytes=sys.maxsize >> 16, text_bytes=sys.maxsize)
