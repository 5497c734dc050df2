"""zip archives: streamed member by member, never extracted (see `ingest.readers.listing`)."""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Format, Formats, Skipped, Text
from ingest.readers.listing import MEGABYTE, Archive, Listing, bomb, damaged, too_many_items
from ingest.readers.names import label_of
from ingest.readers.table_file import too_large

_DIRECTORY_ENTRY_BYTES = 512  # more than a central directory entry with a sensible name needs


class ZipArchive(Archive):
    """A zip file: stored and deflated members."""

    def scan(self, formats: Formats) -> Listing:
        """Checks the directory for bombs, lists the pictures and reads the texts."""
        listing = Listing(self._limits, formats)
        _check_directory(self._path, self._limits)
        with self._opened() as archive:
            members = archive.infolist()
            files = [member for member in members if not member.is_dir()]
            for member in files:
                listing.count(member.file_size)
            _check_ratio(files, self._limits)
            _check_overlap(members, archive.start_dir)
            for member in files:
                name = listing.label(member.filename)
                problem = _zip_problem(name, member)
                if problem is not None:
                    listing.problems.append(problem)
                elif format := listing.text_format(name, member.file_size):
                    data = _zip_bytes(archive, member, name)
                    if isinstance(data, Skipped):
                        listing.problems.append(data)
                    else:
                        listing.add_text(name, Text(format, data))
        self._index = listing.index()
        return listing

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of the wanted members in the order they lie in the file."""
        with self._opened() as archive:
            for member in sorted(archive.infolist(), key=lambda info: info.header_offset):
                name, _ = label_of(member.filename)
                if member.is_dir() or name not in wanted or _zip_problem(name, member) is not None:
                    continue
                if member.file_size > self._limits.image_bytes:
                    yield name, too_large(name, member.file_size, self._limits)
                else:
                    yield name, _zip_bytes(archive, member, name)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            archive = zipfile.ZipFile(self._path)
        except (zipfile.BadZipFile, struct.error, ValueError, EOFError, NotImplementedError):
            raise damaged("zip") from None
        with archive:
            yield archive


def _zip_problem(name: str, member: zipfile.ZipInfo) -> Skipped | None:
    mode = member.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Skipped(name, "special_file", SPECIAL_FILE)
    if member.flag_bits & 0x1:
        return Skipped(name, "encrypted", "The file is password-protected; make the zip without a password.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Skipped(
            name, "compression", "The file is packed with an unusual method; use the normal one (deflate)."
        )
    return None


def _zip_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes | Skipped:
    # ZipExtFile stops at the declared size and then compares the checksum, so a lying size is found here.
    try:
        with archive.open(member) as file:
            return file.read()
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error, ValueError):
        return Skipped(
            name, "member_damaged", "The file is damaged inside the zip: its size or checksum does not match."
        )


def _check_directory(path: Path, limits: Limits) -> None:
    """Refuses a directory too large to list: 200,000 empty entries alone would take 500 MB of memory."""
    with path.open("rb") as file:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - 65_557))
        tail = file.read()
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or len(tail) < position + 22:
        raise damaged("zip")
    entries, directory_bytes = struct.unpack_from("<HI", tail, position + 10)
    far = tail.rfind(b"PK\x06\x06")  # zip64
    if far >= 0 and len(tail) >= far + 48:
        entries, directory_bytes = struct.unpack_from("<QQ", tail, far + 32)
    if entries > 2 * limits.items or directory_bytes > 2 * limits.items * _DIRECTORY_ENTRY_BYTES:
        raise too_many_items(entries, limits)


def _check_ratio(members: list[zipfile.ZipInfo], limits: Limits) -> None:
    for member in members:
        if member.file_size > MEGABYTE and member.file_size > limits.ratio * max(1, member.compress_size):
            raise bomb(limits)


def _check_overlap(members: list[zipfile.ZipInfo], directory_start: int) -> None:
    # Python before 3.11.8 opens overlapping entries: 60 KB that become 10 GB.
    ordered = sorted(members, key=lambda info: info.header_offset)
    ends = [info.header_offset for info in ordered[1:]] + [directory_start]
    for member, end in zip(ordered, ends, strict=False):  # an empty archive has an end but no member
        if member.header_offset + 30 + member.compress_size > end:
            raise BadUpload(
                "archive_overlap", "The zip's entries overlap: it is damaged or built to mislead."
            )


def _is_zip(path: Path, head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"))


FORMATS = (Format(names=("zip",), suffixes=(".zip",), recognises=_is_zip, opens=ZipArchive),)
