"""A table as a container of its own, and files that lie beside one."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ingest.errors import UNREADABLE, BadUpload
from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Format, Formats, Origin, Skipped, Text
from ingest.readers.listing import Listing
from ingest.sentence import phrase


class TableFile:
    """A table given by itself; its pictures lie in its own folder, or in another one that is named with it."""

    def __init__(self, path: Path, limits: Limits, format: Format, *, pictures: Path | None = None) -> None:
        self.name = path.name
        self._path = path
        self._folder = pictures.resolve() if pictures else path.resolve().parent
        self._limits = limits
        self._format = format

    def scan(self, formats: Formats) -> Listing:
        """Lists the table; pictures that it does not name are none of its business."""
        size = self._path.stat().st_size
        if size > self._limits.text_bytes:
            raise BadUpload(
                "table_too_large",
                f"The table has {size >> 20} MB; the limit is {self._limits.text_bytes >> 20} MB. Split it.",
            )
        listing = Listing(self._limits, formats)
        listing.add_text(self.name, Text(self._format, self._path, is_upload=True))
        return listing

    def locate(self, name: str) -> str | None:
        """Returns the name if it is a file in the folder of the pictures or below."""
        return name if is_file(self._folder, name) else None

    def above(self, name: str) -> Sequence[str]:
        """Returns nothing: a table that is given by itself says where its pictures lie."""
        return ()

    def origin(self, name: str) -> Origin:
        """Returns where a picture beside the table lies."""
        return Origin.at(self._folder / name)

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of the wanted files in alphabetical order."""
        for name in sorted(wanted):
            yield name, read_file(self._folder, name, self._limits)


def is_file(folder: Path, name: str) -> bool:
    """Returns whether there is such a file; a name that no file can have is none."""
    try:
        return (folder / name).is_file()
    except (OSError, ValueError):
        return False


def read_file(folder: Path, name: str, limits: Limits) -> bytes | Skipped:
    """Reads a file that must really lie inside `folder`."""
    path = folder / name
    try:
        if path.is_symlink() or not path.resolve().is_relative_to(folder) or not path.is_file():
            return Skipped(name, "special_file", SPECIAL_FILE)
        size = path.stat().st_size
        if size > limits.image_bytes:
            return too_large(name, size, limits)
        return path.read_bytes()
    except OSError as error:
        return unreadable(name, error)


def unreadable(name: str, error: OSError) -> Skipped:
    """Says that a file or folder cannot be read, and what the system says of it."""
    return Skipped(name, UNREADABLE, phrase("It cannot be read ({why}).", why=error.strerror or error))


def too_large(name: str, size: int, limits: Limits) -> Skipped:
    """Says that a picture file has too many bytes to be read at all."""
    return Skipped(name, "image_too_large", limits.too_large(size))
