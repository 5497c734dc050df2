"""What every archive does: its members are streamed one after another, never extracted, and bombs are refused.

No member's name ever becomes a path on this machine, so traversal, links and long-path tricks have nothing to
act on (`tarfile`'s own filter does not stop all of them). Sizes are checked as declared before reading, and
counted as read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from ingest.errors import BadRow, BadUpload
from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Formats, Origin, Skipped, Text
from ingest.readers.listing import Listing
from ingest.readers.names import NameIndex, label_of
from ingest.readers.table_file import too_large

MEGABYTE = 1024**2
SPECIAL = BadRow("special_file", SPECIAL_FILE)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive."""

    name: str  # as the archive has it
    size: int  # declared, in bytes
    problem: BadRow | None  # why it is not even looked at
    read: Callable[[], bytes]  # raises `BadRow` when it is damaged


class Archive(ABC):
    """An archive; a scan fills in where its members are found."""

    def __init__(
        self, path: Path, limits: Limits, *, folder: Path | None = None, within: str | None = None
    ) -> None:
        self.name = path.name
        self._path = path
        self._limits = limits
        self._within = within
        self._index = NameIndex()

    @abstractmethod
    def _members(self, notes: list[str]) -> Iterator[Member]:
        """Yields the files in the order in which they lie in the archive; adds remarks on the whole.

        Raises:
            BadUpload: it is damaged, or a bomb.
        """

    def scan(self, formats: Formats) -> Listing:
        """Lists the pictures and reads the texts."""
        listing = Listing(self._limits, formats, within=self._within)
        declared = 0
        for count, member in enumerate(self._members(listing.notes), start=1):
            declared += member.size
            if count > self._limits.items:
                raise too_many_items(count, self._limits)
            if declared > self._limits.unpacked_bytes:
                raise too_much(self._limits)
            name = listing.label(member.name)
            try:
                if member.problem is not None:
                    raise member.problem
                if format := listing.text_format(name, member.size):
                    listing.add_text(name, Text(format, member.read()))
            except BadRow as problem:
                listing.problem(name, problem.code, problem.sentence)
        self._index = listing.index()
        return listing

    def locate(self, name: str) -> str | None:
        """Finds a member by its relative name."""
        return self._index.find(name)

    def above(self, name: str) -> list[str]:
        """Returns below which folders files of this name lie."""
        return self._index.above(name)

    def origin(self, name: str) -> Origin:
        """Returns the archive and the member's name in it."""
        return Origin.at(self._path.resolve(), name.removeprefix(f"{self._within}/"))

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of the wanted members in archive order."""
        for member in self._members([]):
            name, _ = label_of(member.name, self._within)
            if member.problem is not None or name not in wanted:
                continue
            if member.size > self._limits.image_bytes:
                yield name, too_large(name, member.size, self._limits)
                continue
            try:
                yield name, member.read()
            except BadRow as problem:
                yield name, Skipped(name, problem.code, problem.sentence)


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
    """Refuses a file that expands as no pictures do."""
    return BadUpload("archive_bomb", f"The file expands more than {limits.ratio}:1; pictures never do.")


def damaged(kind: str) -> BadUpload:
    """Refuses an archive that cannot be read."""
    return BadUpload("archive_damaged", f"The {kind} is damaged or incomplete; make or upload it again.")
