"""What every reader offers: one scan for names and texts, then the pictures one after another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ingest.facts.record import PictureFacts, together
from ingest.limits import Limits
from ingest.sentence import phrase

if TYPE_CHECKING:
    from ingest.readers.listing import Listing

SPECIAL_FILE = phrase("Links and special files are not accepted; put the picture itself in.")
NESTED_ARCHIVE = "Archives inside archives are not opened; upload it by itself."


@dataclass(frozen=True, slots=True)
class Row:
    """One caption or table line.

    `image` names a picture of the same container. A `caption` of None leaves the picture to the gallery, an empty
    one is rejected; any other None means not stated.
    """

    where: str
    image: str
    caption: str | None
    language: str | None = None
    domain: str | None = None
    split: str | None = None
    group: str | None = None
    told: Told | None = None  # what it says of its picture beyond that


@dataclass(frozen=True, slots=True)
class Told:
    """What a table or a file beside a picture says of it: its owner's id, free fields, and what its camera knew."""

    key: str = ""
    fields: Mapping[str, str | int | float] = field(default_factory=dict)
    facts: PictureFacts | None = None

    def __or__(self, other: Told) -> Told:
        """Returns both; what was said first counts."""
        facts = [one.facts for one in (self, other) if one.facts is not None]
        both = together(*facts) if facts else None
        return Told(self.key or other.key, {**other.fields, **self.fields}, both)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a container found a picture."""

    path: (
        Path | None
    )  # absolute, of the file, archive or table; None where it lies on no disk of this machine
    within: str = ""  # the picture's name inside that file; empty where the file is the picture
    size: int = 0  # of that file, in bytes
    modified: int = 0  # when it was changed last, in nanoseconds since 1970
    is_row: bool = False  # whether it is a row of a table
    url: str = ""  # where it was fetched

    @classmethod
    def at(cls, path: Path, within: str = "", *, is_row: bool = False) -> Origin:
        """Returns the origin of a picture in a file of this machine; one that cannot be looked at has no size."""
        try:
            stat = path.stat()
        except OSError:
            return cls(path.absolute(), within, is_row=is_row)
        return cls(path.absolute(), within, stat.st_size, stat.st_mtime_ns, is_row)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in the container that is skipped, and why."""

    where: str
    code: str
    sentence: str
    named: str = ""  # the picture that a line of a table names and nobody has


class Remark(str):
    """A remark for the report that names files of the upload: some are not told where pictures lie."""

    __slots__ = ()


class EmbeddedPicture(str):
    """The name of a picture that lies in the table itself; no path leads to it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table, which come before its lines."""

    names: Sequence[str]  # as the file writes them
    # those that hold picture files; a line has an `EmbeddedPicture` for each
    embedded: frozenset[str] = frozenset()
    downloads: bool = False  # whether it is img2dataset's record of what it could download


Line = Columns | Skipped | Remark | tuple[str, Mapping[str, Any]]
"""What a table yields: its columns once, then each line as its place and its fields by column."""


class Opens(Protocol):
    """Opens a file as a container."""

    def __call__(self, path: Path, limits: Limits, *, folder: Path | None, within: str | None) -> Container:
        """Returns the file as a container; nothing but its beginning is read yet.

        `folder` is where pictures that it names may lie, None when there may be none. `within` is the file's name in
        the folder that is read, None when it is given by itself; the names of all that it holds begin with it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A file format and what reads it; `ingest.readers.formats` lists them all.

    A format has lines (a table), or captions (a text beside a picture), or only opens (an archive).
    """

    names: tuple[str, ...]  # of the format, as an error lists them
    suffixes: tuple[str, ...]  # in lower case, with their dots
    # whether a file given by itself is of this format, by its path and its first 4,096 bytes; None when such a file
    # is no upload
    recognises: Callable[[Path, bytes], bool] | None = None
    opens: Opens | None = None  # the file as a container; None for a table whose pictures lie in its folder
    is_shard: bool = False  # whether a folder opens such a file that lies in it
    # yields the lines of a table, given its name, the file and the limits. Raises `BadRow` or `BadUpload` when it
    # cannot be read
    lines: Callable[[str, Text, Limits], Iterator[Line]] | None = None
    # yields what a text says of the picture beside it, given its name, bytes, the picture and the limits
    captions: Callable[[str, bytes, str, Limits], Iterator[Row | Skipped]] | None = None
    # whether files of these suffixes are often something else: one that is too large, or beside no picture, is then
    # ignored
    may_be_other: bool = False


Formats = Mapping[str, Format]
"""Formats by suffix."""


@dataclass(frozen=True, slots=True)
class Text:
    """A table or caption file of a container."""

    format: Format  # that reads it
    data: bytes | Path  # its bytes, or where they lie
    split: str | None = None  # of all its lines that state none
    # whether the upload consists of such tables, and is refused when one cannot be read
    is_upload: bool = False

    def read(self) -> bytes:
        """Returns the bytes."""
        return self.data if isinstance(self.data, bytes) else self.data.read_bytes()


class Container(Protocol):
    """A folder, archive or table that holds or names pictures."""

    name: str

    def scan(self, formats: Formats) -> Listing:
        """Reads names and texts, no picture.

        Raises:
            BadUpload: the container is damaged, or breaks a limit.
        """
        ...

    def locate(self, name: str) -> str | None:
        """Returns the container's own spelling of a normalised relative name, or None for no such file."""
        ...

    def above(self, name: str) -> Sequence[str]:
        """Returns below which folders, each with its last slash, files of this relative name lie; not the top."""
        ...

    def origin(self, name: str) -> Origin:
        """Returns where a picture of this container lies."""
        ...

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of each wanted file, in container order, or why it cannot be read.

        Raises:
            BadUpload: the container turned out to be damaged, or breaks a limit.
        """
        ...
