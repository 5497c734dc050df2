"""What the members of an archive are sorted into, within what budgets, and how an archive is refused.

No member's name ever becomes a path on this machine, so traversal, links and long-path tricks have nothing to
act on (`tarfile`'s own filter does not stop all of them). Sizes are checked as declared before reading, and
counted as read.
"""

from __future__ import annotations

from pathlib import Path

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.container import (
    ARCHIVE_SUFFIXES,
    NESTED_ARCHIVE,
    PICTURE_SUFFIXES,
    SIDECAR_SUFFIXES,
    TEXT_SUFFIXES,
    Listing,
    NameIndex,
    Problem,
    is_system_file,
    label_of,
    suffix_of,
)

MEGABYTE = 1024**2


class Archive:
    """An archive and its name; a scan fills in where its members are found."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.name
        self._path = path
        self._limits = limits
        self._index = NameIndex(())

    def locate(self, name: str) -> str | None:
        """Finds a member by its relative name."""
        return self._index.find(name)


class Sorter:
    """Sorts the members of an archive into a listing and keeps its budgets."""

    def __init__(self, limits: Limits) -> None:
        self.listing = Listing()
        self._limits = limits
        self._members = 0
        self._declared = 0
        self._text_bytes = 0
        self._renamed = 0
        self._seen: set[str] = set()

    def count(self, size: int) -> None:
        """Counts a member of a declared size, in bytes; refuses one too many or too much."""
        self._members += 1
        self._declared += size
        if self._members > self._limits.items:
            raise too_many_items(self._members, self._limits)
        if self._declared > self._limits.unpacked_bytes:
            raise too_much(self._limits)

    def label(self, raw_name: str) -> str:
        """Returns the name by which a member is known, whatever folders it names."""
        name, changed = label_of(raw_name)
        self._renamed += changed
        return name

    def wants_text(self, name: str, size: int) -> bool:
        """Files a regular member; returns whether its bytes are a text to be read now."""
        suffix = suffix_of(name)
        if is_system_file(name):
            return False
        if suffix in PICTURE_SUFFIXES:
            self.listing.pictures.append(name)
        elif suffix in ARCHIVE_SUFFIXES:
            self.problem(name, "nested_archive", NESTED_ARCHIVE)
        elif suffix in TEXT_SUFFIXES:
            limit = self._limits.sidecar_bytes if suffix in SIDECAR_SUFFIXES else self._limits.text_bytes
            if size <= limit:
                return True
            if suffix == ".json":  # too much for one picture: annotations of many, or none at all
                self.listing.others.append(name)
                return False
            self.problem(name, "text_too_large", f"The text has more than {limit / 1024:,.0f} KB.")
        else:
            self.listing.others.append(name)
        return False

    def text(self, name: str, data: bytes) -> None:
        """Files the bytes of a table or a caption; refuses too many of them."""
        self._text_bytes += len(data)
        if self._text_bytes > self._limits.text_bytes:
            raise BadUpload(
                "text_too_large",
                f"Tables and captions have more than {self._limits.text_bytes >> 20} MB. Split the upload.",
            )
        if name in self.listing.texts:
            self.listing.notes.append(f"{name!r} is in the archive more than once; the last one counts")
        self.listing.texts[name] = data

    def problem(self, name: str, code: str, sentence: str) -> None:
        """Files why a member is not taken."""
        self.listing.problems.append(Problem(name, code, sentence))

    def finish(self) -> tuple[Listing, NameIndex]:
        """Returns what the archive has, with notes on odd names, and where each name is found."""
        repeated = len(self.listing.pictures) - len(set(self.listing.pictures))
        if repeated:
            self.listing.notes.append(
                f"{repeated} picture names stand twice in the archive; each picture was judged by itself"
            )
        if self._renamed:
            self.listing.notes.append(
                f"the folders in {self._renamed} unusual member names (.., drive or root) were ignored"
            )
        return self.listing, NameIndex((*self.listing.pictures, *self.listing.others))


def too_many_items(found: int, limits: Limits) -> BadUpload:
    """Refuses an archive with too many members."""
    return BadUpload(
        "too_many_items",
        f"The archive has {found:,} items or more; the limit is {limits.items:,}. "
        "Split it, or unpack it and ingest the folder.",
    )


def too_much(limits: Limits) -> BadUpload:
    """Refuses an archive that is too large once unpacked."""
    return BadUpload(
        "too_large_unpacked",
        f"Unpacked, the archive has more than {limits.unpacked_bytes / 1024**3:.0f} GB. "
        "Split it, or unpack it and ingest the folder.",
    )


def bomb(limits: Limits) -> BadUpload:
    """Refuses an archive that expands as no pictures do."""
    return BadUpload("archive_bomb", f"The archive expands more than {limits.ratio}:1; pictures never do.")


def damaged(kind: str) -> BadUpload:
    """Refuses an archive that cannot be read."""
    return BadUpload("archive_damaged", f"The {kind} is damaged or incomplete; make or upload it again.")
