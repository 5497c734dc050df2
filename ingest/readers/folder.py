"""A folder of pictures with caption files or tables beside them, or of shards that hold both."""

import os
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Container, Format, Formats, Origin, Skipped, Text
from ingest.readers.listing import Listing
from ingest.readers.names import PICTURE_SUFFIXES, NameIndex, suffix_of, text_of
from ingest.readers.table_file import read_file, unreadable
from ingest.sentence import phrase

_NAMED_LIKE_A_PICTURE = phrase("This is a folder that is named like a picture; what lies in it is read.")


class Folder:
    """A folder on this machine, read with everything below it; links are not followed.

    A tar, and a Parquet file that holds pictures, is a shard: read as if it were a folder of its own name.
    """

    def __init__(self, path: Path, limits: Limits) -> None:
        self.path = path.resolve()
        self.name = self.path.name
        self._limits = limits
        # A folder on the own disk may be of any size.
        huge = sys.maxsize >> 16
        self._shard_limits = replace(limits, items=huge, unpacked_bytes=huge, text_bytes=sys.maxsize)
        self._index = NameIndex()
        self._shards: dict[str, Container] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # size and time of change of each file, by name
        self._files: set[str] = set()  # these names as the catalog has them
        self._closed: list[str] = []  # beginnings of the names below folders that cannot be looked into

    def scan(self, formats: Formats) -> Listing:
        """Lists the pictures and the texts."""
        listing = Listing(self._limits, formats)
        shards: dict[str, Listing] = {}
        for name, stat in self._files_of(listing):
            self._seen[name] = (stat.st_size, stat.st_mtime_ns)
            try:
                self._sort_in(name, listing, formats, shards)
            except BadUpload as error:
                listing.problem(name, error.code, error.sentence)
            except OSError as error:
                listing.problems.append(unreadable(name, error))
        self._files = {text_of(name) for name in self._seen}
        self._index = listing.index()
        for name, shard_listing in shards.items():
            listing.add_shard(name, shard_listing)
        return listing

    def lacks(self, place: str) -> bool:
        """Returns whether the scan has not found a file below this folder, where it could look."""
        name = place.removeprefix(text_of(f"{self.path}/"))
        return name not in self._files and not name.startswith(tuple(self._closed))

    def locate(self, name: str) -> str | None:
        """Finds a file of the folder, or of a shard in it, by its relative name."""
        shard = self._shard_of(name)
        return self._index.find(name) if shard is None else shard.locate(name)

    def above(self, name: str) -> list[str]:
        """Returns below which folders files of this name lie."""
        return self._index.above(name)

    def origin(self, name: str) -> Origin:
        """Returns where a file lies; its size and time are those of the scan, before it was read."""
        shard = self._shard_of(name)
        if shard is not None:
            return shard.origin(name)
        return (
            Origin(self.path / name, "", *self._seen[name])
            if name in self._seen
            else Origin.at(self.path / name)
        )

    def portions(self, names: Collection[str], size: int, first: int) -> Iterator[list[str]]:
        """Yields names in the order in which they are read: `first` of them, then about `size`; a shard stays whole."""
        inside: dict[Container, list[str]] = {}
        part: list[str] = []
        for name in sorted(names):
            shard = self._shard_of(name)
            if shard is not None:
                inside.setdefault(shard, []).append(name)
                continue
            part.append(name)
            if len(part) >= min(first, size):
                yield part
                part, first = [], size
        for of_shard in inside.values():
            part += of_shard
            if len(part) >= size:
                yield part
                part = []
        if part:
            yield part

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of the wanted files in alphabetical order, then shard after shard."""
        inside: dict[Container, set[str]] = {}
        for name in sorted(wanted):
            shard = self._shard_of(name)
            if shard is None:
                yield name, read_file(self.path, name, self._limits)
            else:
                inside.setdefault(shard, set()).add(name)
        for shard, names in inside.items():
            yield from shard.read(names)

    def _sort_in(self, name: str, listing: Listing, formats: Formats, shards: dict[str, Listing]) -> None:
        format = formats.get(suffix_of(name))
        if format is not None and format.is_shard and (shard := self._opened(name, format)):
            shards[name] = shard.scan(formats)
            self._shards[name] = shard
        elif text := listing.text_format(name, self._seen[name][0]):
            listing.add_text(name, Text(text, self.path / name))

    def _opened(self, name: str, format: Format) -> Container | None:
        path = self.path / name
        with path.open("rb") as file:
            head = file.read(4096)
        if format.opens is None or format.recognises is None or not format.recognises(path, head):
            return None
        return format.opens(path, self._shard_limits, folder=self.path, within=name)

    def _shard_of(self, name: str) -> Container | None:
        """Returns the shard below which a name lies."""
        if not self._shards:
            return None
        parts = name.split("/")
        above = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return next((self._shards[name] for name in above if name in self._shards), None)

    def _files_of(self, listing: Listing) -> Iterator[tuple[str, os.stat_result]]:
        """Yields each file's name and what one look at it says: on a disk of the network every look is a question."""

        def skip(error: OSError) -> None:
            name = Path(error.filename).relative_to(self.path).as_posix()
            self._closed.append("" if name == "." else text_of(f"{name}/"))
            listing.problems.append(unreadable(name, error))

        for root, folders, files in os.walk(self.path, onerror=skip):
            above = Path(root).relative_to(self.path).as_posix()
            within = "" if above == "." else f"{above}/"
            folders[:] = [one for one in sorted(folders) if self._is_entered(within + one, listing)]
            for name in sorted(within + file for file in files):
                if not listing.is_left_out(name) and (stat := self._plain(name, S_ISREG, listing)):
                    yield name, stat

    def _is_entered(self, name: str, listing: Listing) -> bool:
        if listing.is_left_out(name) or not self._plain(name, S_ISDIR, listing):
            return False
        if suffix_of(name) in PICTURE_SUFFIXES:
            listing.problem(name, "folder", _NAMED_LIKE_A_PICTURE)
        return True

    def _plain(self, name: str, is_kind: Callable[[int], bool], listing: Listing) -> os.stat_result | None:
        """Looks at a file, or a folder; what is a link to one, or nothing of the kind, is noted and None."""
        try:
            stat = os.lstat(f"{self.path}/{name}")
        except OSError as error:
            listing.problems.append(unreadable(name, error))
            return None
        if is_kind(stat.st_mode):
            return stat
        listing.problem(name, "special_file", SPECIAL_FILE)
        return None
