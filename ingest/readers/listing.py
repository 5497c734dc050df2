"""What a scan finds in a container, file after file."""

from __future__ import annotations

from ingest.errors import BadUpload
from ingest.file_kinds import VIDEO
from ingest.limits import Limits
from ingest.readers.container import NESTED_ARCHIVE, Format, Formats, Remark, Skipped, Text
from ingest.readers.names import (
    FOREIGN_ARCHIVES,
    PICTURE_SUFFIXES,
    VIDEO_SUFFIXES,
    NameIndex,
    is_system_file,
    label_of,
    suffix_of,
)
from ingest.sentence import phrase


class Listing:
    """Sorts the files of a container."""

    def __init__(self, limits: Limits, formats: Formats, *, within: str | None = None) -> None:
        self.pictures: list[str] = []  # names in container order; a name may repeat
        self.texts: dict[str, Text] = {}  # tables and caption files by name
        # names of files that are neither; a table may still name one of them as its picture
        self.others: list[str] = []
        self.problems: list[Skipped] = []  # what is skipped, and why
        self.notes: list[str] = []  # remarks for the report
        self._limits = limits
        self._formats = formats
        self._within = within
        self._text_bytes = 0
        self._renamed = 0
        self._hidden = 0

    def label(self, raw_name: str) -> str:
        """Returns the name by which a member is known, whatever folders it names."""
        name, changed = label_of(raw_name, self._within)
        self._renamed += changed
        return name

    def text_format(self, name: str, size: int) -> Format | None:
        """Sorts a regular file in; returns its format when it is a text to be read, which `add_text` then takes."""
        suffix = suffix_of(name)
        format = self._formats.get(suffix)
        if self.is_left_out(name):
            return None
        if suffix in PICTURE_SUFFIXES:
            self.pictures.append(name)
        elif suffix in VIDEO_SUFFIXES:  # not read at all: it may be very large
            self.problem(name, "image_video", VIDEO)
        elif format is None and suffix not in FOREIGN_ARCHIVES:
            self.others.append(name)
        elif format is None or not (format.lines or format.captions):
            self.problem(name, "nested_archive", NESTED_ARCHIVE)
        else:
            limit = self._limits.sidecar_bytes if format.captions else self._limits.text_bytes
            if size <= limit:
                return format
            if format.may_be_other:
                self.others.append(name)
            else:
                self.problem(name, "text_too_large", f"The text has more than {limit / 1024:,.0f} KB.")
        return None

    def add_text(self, name: str, text: Text) -> None:
        """Keeps a table or caption file; refuses too many bytes of them, unless they stay on the disk."""
        self._text_bytes += len(text.data) if isinstance(text.data, bytes) else 0
        if self._text_bytes > self._limits.text_bytes:
            raise BadUpload(
                "text_too_large",
                f"Tables and captions have more than {self._limits.text_bytes >> 20} MB. Split the upload.",
            )
        if name in self.texts:
            self.notes.append(Remark(f"{name!r} is in the archive more than once; the last one counts"))
        self.texts[name] = text

    def is_left_out(self, name: str) -> bool:
        """Returns whether nobody meant a file or folder to be taken in: an operating system's, or a hidden one."""
        if is_system_file(name):
            return True
        is_hidden = any(part.startswith(".") for part in name.split("/"))
        self._hidden += is_hidden
        return is_hidden

    def problem(self, name: str, code: str, sentence: str) -> None:
        """Notes why a file is not taken."""
        self.problems.append(Skipped(name, code, sentence))

    def index(self) -> NameIndex:
        """Returns where each name is found; notes names that are odd."""
        repeated = len(self.pictures) - len(set(self.pictures))
        if repeated:
            self.notes.append(
                f"{repeated} picture names stand twice in the archive; each picture was judged by itself"
            )
        if self._hidden:
            self.notes.append(phrase("{count} hidden files or folders were ignored", count=self._hidden))
        if self._renamed:
            self.notes.append(
                f"the folders in {self._renamed} unusual member names (.., drive or root) were ignored"
            )
        return NameIndex((*self.pictures, *self.others), self._within)

    def add_shard(self, name: str, shard: Listing) -> None:
        """Adds what a container in this one holds."""
        self.pictures += shard.pictures
        self.texts |= shard.texts
        self.others += shard.others
        self.problems += shard.problems
        self.notes += [Remark(f"{name}: {note}") for note in shard.notes]
