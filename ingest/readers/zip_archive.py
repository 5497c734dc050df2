"""zip archives: streamed member by member, never extracted (see `ingest.readers.archive`)."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ingest.errors import BadRow, BadUpload
from ingest.limits import Limits
from ingest.readers.archive import MEGABYTE, SPECIAL, Archive, Member, bomb, damaged, too_many_items
from ingest.readers.container import Format

_DIRECTORY_ENTRY_BYTES = 512  # more than a central directory entry with a sensible name needs
_ZIP64_BYTES = 76  # of the record and of what locates it, before the end record


class ZipArchive(Archive):
    """A zip file: stored and deflated members."""

    def _members(self, notes: list[str]) -> Iterator[Member]:
        """Checks the directory for bombs, then yields the files."""
        _check_directory(self._path, self._limits)
        try:
            archive = zipfile.ZipFile(self._path)
        except (zipfile.BadZipFile, struct.error, ValueError, EOFError, NotImplementedError):
            raise damaged("zip") from None
        with archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            files = [entry for entry in entries if not entry.is_dir()]
            _check_ratio(files, self._limits)
            _check_overlap(entries, archive.start_dir)
            for entry in files:
                yield Member(entry.filename, entry.file_size, _problem(entry), partial(_read, archive, entry))


def _problem(entry: zipfile.ZipInfo) -> BadRow | None:
    mode = entry.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return SPECIAL
    if entry.flag_bits & 0x1:
        return BadRow("encrypted", "The file is password-protected; make the zip without a password.")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return BadRow(
            "compression", "The file is packed with an unusual method; use the normal one (deflate)."
        )
    return None


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    # ZipExtFile stops at the declared size and then compares the checksum, so a lying size is found here.
    try:
        return archive.read(entry)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error, ValueError):
        raise BadRow(
            "member_damaged", "The file is damaged inside the zip: its size or checksum does not match."
        ) from None


def _check_directory(path: Path, limits: Limits) -> None:
    """Refuses a directory too large to list: 200,000 empty entries alone would take 500 MB of memory."""
    with path.open("rb") as file:
        file.seek(0, io.SEEK_END)
        file.seek(max(0, file.tell() - 65_557 - _ZIP64_BYTES))
        tail = file.read()
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or len(tail) < position + 22:
        raise damaged("zip")
    entries, directory_bytes = struct.unpack_from("<HI", tail, position + 10)
    far = position - _ZIP64_BYTES  # where zipfile looks for the record of zip64, and nowhere else
    if far >= 0 and tail.startswith(b"PK\x06\x07", position - 20) and tail.startswith(b"PK\x06\x06", far):
        entries, directory_bytes = struct.unpack_from("<QQ", tail, far + 32)
    if entries > 2 * limits.items or directory_bytes > 2 * limits.items * _DIRECTORY_ENTRY_BYTES:
        raise too_many_items(entries, limits)


def _check_ratio(members: list[zipfile.ZipInfo], limits: Limits) -> None:
    for member in members:
        if member.file_size > MEGABYTE and member.file_size > limits.ratio * max(1, member.compress_size):
            raise bomb(limits)


def _check_overlap(members: list[zipfile.ZipInfo], directory_start: int) -> None:
    # Python before 3.11.8 opens overlapping entries: 60 KB that become 10 GB. These are in the order of their offsets.
    ends = [info.header_offset for info in members[1:]] + [directory_start]
    for member, end in zip(members, ends, strict=False):  # an empty archive has an end but no member
        if member.header_offset + 30 + member.compress_size > end:
            raise BadUpload(
                "archive_overlap", "The zip's entries overlap: it is damaged or built to mislead."
            )


def _is_zip(path: Path, head: bytes) -> bool:
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"))


FORMATS = (Format(names=("zip",), suffixes=(".zip",), recognises=_is_zip, opens=ZipArchive),)
