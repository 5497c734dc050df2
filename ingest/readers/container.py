"""What every reader offers: one scan for names and texts, then the pictures one after another."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ingest.errors import BadRow

PICTURE_SUFFIXES = frozenset(
    # The last ones cannot be read, but leaving them out without a word would look like a loss.
    [
        ".jpg",
        ".jpeg",
        ".jpe",
        ".jfif",
        ".png",
        ".apng",
        ".webp",
        ".gif",
        ".bmp",
        ".dib",
        ".tif",
        ".tiff",
        ".svg",
        ".heic",
        ".heif",
        ".avif",
        ".pdf",
        ".eps",
        ".psd",
        ".jp2",
        ".jxl",
        ".ico",
        ".raw",
        ".dng",
        ".cr2",
        ".nef",
    ]
)
TABLE_SUFFIXES = frozenset((".csv", ".tsv", ".jsonl", ".ndjson"))
ARROW_SUFFIXES = frozenset((".parquet", ".arrow"))
SIDECAR_SUFFIXES = frozenset((".txt", ".json"))
TEXT_SUFFIXES = TABLE_SUFFIXES | ARROW_SUFFIXES | SIDECAR_SUFFIXES
ARCHIVE_SUFFIXES = frozenset([".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar"])
_SYSTEM_NAMES = frozenset(("__macosx", ".ds_store", "thumbs.db", "desktop.ini"))
_NAME_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Row:
    """One caption or table line. `image` names a picture of the same container; None means not stated."""

    where: str
    image: str
    caption: str | None
    language: str | None = None
    domain: str | None = None
    split: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the container that is skipped, and why."""

    where: str
    code: str
    sentence: str


class Embedded(str):
    """A name of a picture that lies in the table itself; it is nobody's path."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose lines need no parsing, because its file has types.

    `lines` reads it from its beginning. Columns in `embedded` hold picture files; a line has an `Embedded` for each.
    `split` is stated for the whole table.
    """

    columns: Sequence[str]
    embedded: frozenset[str]
    lines: Callable[[], Iterator[Mapping[str, Any]]]
    split: str | None = None


@dataclass(slots=True)
class Listing:
    """What a scan found.

    `pictures` are names in container order (a name may repeat), `texts` the bytes of tables and caption
    files, `tables` those that need no parsing, `others` names of files that are neither; a table may still
    name one of them as its picture.
    """

    pictures: list[str] = field(default_factory=list)
    texts: dict[str, bytes] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Pictures(Protocol):
    """What yields the files of pictures by their names."""

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Problem]]:
        """Yields the bytes of each wanted file, in container order, or why it cannot be read.

        Raises:
            BadUpload: the container turned out to be damaged, or breaks a limit.
        """
        ...


class Container(Pictures, Protocol):
    """A folder, archive or table that holds or names pictures."""

    name: str

    def scan(self) -> Listing:
        """Reads names and texts, no picture.

        Raises:
            BadUpload: the container is damaged, or breaks a limit.
        """
        ...

    def locate(self, name: str) -> str | None:
        """Returns the container's own spelling of a normalised relative name, or None for no such file."""
        ...


class NameIndex:
    """Finds files by the names people write: composed or decomposed letters, with or without folders."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_name: dict[str, str] = {}
        self._by_last: dict[str, set[str]] = {}
        for name in names:
            composed = unicodedata.normalize("NFC", name)
            self._by_name[composed] = name
            self._by_last.setdefault(posixpath.basename(composed), set()).add(name)

    def find(self, name: str) -> str | None:
        """Returns the file of this name, or the only file of this last name component."""
        composed = unicodedata.normalize("NFC", name)
        if composed in self._by_name:
            return self._by_name[composed]
        same_last = self._by_last.get(posixpath.basename(composed), set())
        return next(iter(same_last)) if len(same_last) == 1 else None


def label_of(raw_name: str) -> tuple[str, bool]:
    """Returns a member's name as a harmless relative label, and whether it had to be changed.

    Nothing is ever written under this name; it only ties captions to pictures and appears in reports.
    """
    name = raw_name.split("\0")[0].replace("\\", "/")
    name = re.sub(r"^[A-Za-z]:", "", name)
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    label = "/".join(parts)[-255:]
    return label, label != raw_name.removeprefix("./").rstrip("/")


def inside_name(cell: str, table_name: str) -> list[str]:
    """Returns the names a table cell may mean: relative to the table's folder, then to the top.

    Raises:
        BadRow: an absolute path, a URL, or a path that leaves the upload.
    """
    written = cell.strip().replace("\\", "/")
    outside = BadRow(
        "image_outside", f"{shown(cell)!r} must name a file inside the upload; URLs are not fetched."
    )
    if "\0" in written or written.startswith(("/", "~")) or re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", written):
        raise outside
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(table_name), written))
    top = posixpath.normpath(written)
    names = [
        name
        for name in dict.fromkeys((beside, top))
        if not name.startswith("../") and name not in ("..", ".")
    ]
    if not names:
        raise outside
    return names


def shown(name: str) -> str:
    """Returns a name fit for a report: printable and of bounded length."""
    printable = (
        name
        if name.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    )
    return printable if len(printable) <= _NAME_SHOWN else "…" + printable[1 - _NAME_SHOWN :]


def suffix_of(name: str) -> str:
    """Returns the last suffix in lower case, with its dot."""
    return posixpath.splitext(name)[1].lower()


def stem_of(name: str) -> str:
    """Returns the name without its last suffix, folders included."""
    return posixpath.splitext(name)[0]


def is_system_file(name: str) -> bool:
    """Returns whether a file was left by an operating system and is nobody's picture."""
    parts = name.lower().split("/")
    return any(part in _SYSTEM_NAMES for part in parts) or parts[-1].startswith("._")


SPECIAL_FILE = "Links and special files are not accepted; put the picture itself in."
NESTED_ARCHIVE = "Archives inside archives are not opened; upload it by itself."
