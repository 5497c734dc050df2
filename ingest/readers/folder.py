"""A folder of pictures with caption files or tables beside them, or of shards that hold both."""

import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Container, Format, Formats, Origin, Skipped, Text
from ingest.readers.listing import Listing
from ingest.readers.names import NameIndex, is_system_file, suffix_of
from ingest.readers.table_file import read_file


class Folder:
    """A folder on this machine, read with everything below it; links are not followed.

    A tar, and a Parquet file that holds pictures, is a shard: read as if it were a folder of its own name.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.resolve().name
        self._path = path.resolve()
        self._limits = limits
        # A folder on the own disk may be of any size.
        huge = sys.maxsize >> 16
        self._shard_limits = replace(limits, items=huge, unpacked_bytes=huge, text_bytes=sys.maxsize)
        self._index = NameIndex()
        self._shards: dict[str, Container] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # size and time of change of each file, by name

    def scan(self, formats: Formats) -> Listing:
        """Lists the pictures and the texts."""
        listing = Listing(self._limits, formats)
        shards: dict[str, Listing] = {}
        for name in self._names(listing):
            path = self._path / name
            format = formats.get(suffix_of(name))
            if format is not None and format.is_shard:
                try:
                    if shard := self._opened(name, format):
                        shards[name] = shard.scan(formats)
                        self._shards[name] = shard
                        continue
                except BadUpload as error:
                    listing.problem(name, error.code, error.sentence)
                    continue
            stat = path.stat()
            self._seen[name] = (stat.st_size, stat.st_mtime_ns)
            if text := listing.text_format(name, stat.st_size):
                listing.add_text(name, Text(text, path))
        self._index = listing.index()
        for name, shard_listing in shards.items():
            listing.add_shard(name, shard_listing)
        return listing

    def locate(self, name: str) -> str | None:
        """Finds a file of the folder, or of a shard in it, by its relative name."""
        shard = self._shard_of(name)
        return self._index.find(name) if shard is None else shard.locate(name)

    def origin(self, name: str) -> Origin:
        """Returns where a file lies; its size and time are those of the scan, before it was read."""
        shard = self._shard_of(name)
        if shard is not None:
            return shard.origin(name)
        return (
            Origin(self._path / name, "", *self._seen[name])
            if name in self._seen
            else Origin.at(self._path / name)
        )

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of the wanted files in alphabetical order, then shard after shard."""
        inside: dict[Container, set[str]] = {}
        for name in sorted(wanted):
            shard = self._shard_of(name)
            if shard is None:
                yield name, read_file(self._path, name, self._limits)
            else:
                inside.setdefault(shard, set()).add(name)
        for shard, names in inside.items():
            yield from shard.read(names)

    def _opened(self, name: str, format: Format) -> Container | None:
        path = self._path / name
        with path.open("rb") as file:
            head = file.read(4096)
        if format.opens is None or format.recognises is None or not format.recognises(path, head):
            return None
        return format.opens(path, self._shard_limits, folder=self._path, within=name)

    def _shard_of(self, name: str) -> Container | None:
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
                    listing.problem(name, "special_file", SPECIAL_FILE)
                else:
                    yield name
