"""zip and tar archives: streamed member by member, never extracted.

No member's name ever becomes a path on this machine, so traversal, links and long-path tricks have nothing to
act on (`tarfile`'s own filter does not stop all of them). Sizes are checked as declared before reading, and
counted as read.
"""

from __future__ import annotations

import gzip
import io
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.container import (
    ARCHIVE_SUFFIXES,
    NESTED_ARCHIVE,
    PICTURE_SUFFIXES,
    SIDECAR_SUFFIXES,
    SPECIAL_FILE,
    TEXT_SUFFIXES,
    Listing,
    NameIndex,
    Problem,
    is_system_file,
    label_of,
    suffix_of,
)
from ingest.readers.table_file import too_large

_MEGABYTE = 1024**2
_DIRECTORY_ENTRY_BYTES = 512  # more than a central directory entry with a sensible name needs
_TAR_DAMAGE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, struct.error, ValueError)


class _Sorter:
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
        self._members += 1
        self._declared += size
        if self._members > self._limits.items:
            raise too_many_items(self._members, self._limits)
        if self._declared > self._limits.unpacked_bytes:
            raise _too_much(self._limits)

    def label(self, raw_name: str) -> str:
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
        self.listing.problems.append(Problem(name, code, sentence))

    def finish(self) -> tuple[Listing, NameIndex]:
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


class ZipArchive:
    """A zip file: stored and deflated members."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.name
        self._path = path
        self._limits = limits
        self._index = NameIndex(())

    def scan(self) -> Listing:
        """Checks the directory for bombs, lists the pictures and reads the texts."""
        sorter = _Sorter(self._limits)
        _check_directory(self._path, self._limits)
        with self._opened() as archive:
            members = archive.infolist()
            files = [member for member in members if not member.is_dir()]
            for member in files:
                sorter.count(member.file_size)
            _check_ratio(files, self._limits)
            _check_overlap(members, archive.start_dir)
            for member in files:
                name = sorter.label(member.filename)
                problem = _zip_problem(name, member)
                if problem is not None:
                    sorter.listing.problems.append(problem)
                elif sorter.wants_text(name, member.file_size):
                    data = _zip_bytes(archive, member, name)
                    if isinstance(data, Problem):
                        sorter.listing.problems.append(data)
                    else:
                        sorter.text(name, data)
        listing, self._index = sorter.finish()
        return listing

    def locate(self, name: str) -> str | None:
        """Finds a member by its relative name."""
        return self._index.find(name)

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Problem]]:
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
            raise _damaged("zip") from None
        with archive:
            yield archive


def _zip_problem(name: str, member: zipfile.ZipInfo) -> Problem | None:
    mode = member.external_attr >> 16
    if mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return Problem(name, "special_file", SPECIAL_FILE)
    if member.flag_bits & 0x1:
        return Problem(name, "encrypted", "The file is password-protected; make the zip without a password.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return Problem(
            name, "compression", "The file is packed with an unusual method; use the normal one (deflate)."
        )
    return None


def _zip_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> bytes | Problem:
    # ZipExtFile stops at the declared size and then compares the checksum, so a lying size is found here.
    try:
        with archive.open(member) as file:
            return file.read()
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, struct.error, ValueError):
        return Problem(
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
        raise _damaged("zip")
    entries, directory_bytes = struct.unpack_from("<HI", tail, position + 10)
    far = tail.rfind(b"PK\x06\x06")  # zip64
    if far >= 0 and len(tail) >= far + 48:
        entries, directory_bytes = struct.unpack_from("<QQ", tail, far + 32)
    if entries > 2 * limits.items or directory_bytes > 2 * limits.items * _DIRECTORY_ENTRY_BYTES:
        raise too_many_items(entries, limits)


def _check_ratio(members: list[zipfile.ZipInfo], limits: Limits) -> None:
    for member in members:
        if member.file_size > _MEGABYTE and member.file_size > limits.ratio * max(1, member.compress_size):
            raise _bomb(limits)


def _check_overlap(members: list[zipfile.ZipInfo], directory_start: int) -> None:
    # Python before 3.11.8 opens overlapping entries: 60 KB that become 10 GB.
    ordered = sorted(members, key=lambda info: info.header_offset)
    ends = [info.header_offset for info in ordered[1:]] + [directory_start]
    for member, end in zip(ordered, ends, strict=False):  # an empty archive has an end but no member
        if member.header_offset + 30 + member.compress_size > end:
            raise BadUpload(
                "archive_overlap", "The zip's entries overlap: it is damaged or built to mislead."
            )


class _Counted(io.RawIOBase):
    """Counts what comes out of a (compressed) tar, keeps the last block, and stops at the budget."""

    def __init__(self, plain: IO[bytes], packed: IO[bytes] | None, limits: Limits) -> None:
        self._plain = plain
        self._packed = packed
        self._limits = limits
        self.total = 0
        self.tail = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._plain.read(size)
        self.total += len(data)
        self.tail = (self.tail + data)[-512:]
        if self._packed is not None:
            packed = self._packed.tell()
            if self.total > 8 * _MEGABYTE and self.total > self._limits.ratio * max(1, packed):
                raise _bomb(self._limits)
        # Headers and padding come on top of the members' own bytes.
        if self.total > self._limits.unpacked_bytes + self._limits.items * 2048:
            raise _too_much(self._limits)
        return data


class TarArchive:
    """A tar file, plain or gzip, read from front to back in two passes."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.name
        self._path = path
        self._limits = limits
        self._index = NameIndex(())

    def scan(self) -> Listing:
        """First pass: lists the pictures and reads the texts."""
        sorter = _Sorter(self._limits)
        early = self._walk(sorter)
        if early:
            sorter.listing.notes.append(early)
        listing, self._index = sorter.finish()
        return listing

    def locate(self, name: str) -> str | None:
        """Finds a member by its relative name."""
        return self._index.find(name)

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Problem]]:
        """Second pass: yields the bytes of the wanted members in archive order."""
        with self._opened() as (archive, _):
            for member in _members(archive):
                name, _ = label_of(member.name)
                if not _is_plain(member) or name not in wanted:
                    continue
                if member.size > self._limits.image_bytes:
                    yield name, too_large(name, member.size, self._limits)
                    continue
                data = _tar_bytes(archive, member)
                if data is None:
                    sentence = "The archive ends in the middle of this file."
                    yield name, Problem(name, "member_damaged", sentence)
                    return
                yield name, data

    def _walk(self, sorter: _Sorter) -> str | None:
        found = 0
        with self._opened() as (archive, counted):
            for member in _members(archive):
                if member.isdir():
                    continue
                sorter.count(member.size if _is_plain(member) else 0)
                found += 1
                name = sorter.label(member.name)
                if not _is_plain(member):
                    sorter.problem(name, "special_file", SPECIAL_FILE)
                elif sorter.wants_text(name, member.size):
                    data = _tar_bytes(archive, member)
                    if data is None:
                        break
                    sorter.text(name, data)
            complete = counted.tail == bytes(512)
        if not found:
            raise _damaged("tar")
        return (
            None
            if complete
            else f"the archive ended early: {found} members were found before its end; upload it again"
        )

    @contextmanager
    def _opened(self) -> Iterator[tuple[tarfile.TarFile, _Counted]]:
        with self._path.open("rb") as packed:
            is_gzip = packed.read(2) == b"\x1f\x8b"
            packed.seek(0)
            plain = cast(IO[bytes], gzip.GzipFile(fileobj=packed)) if is_gzip else packed
            counted = _Counted(plain, packed if is_gzip else None, self._limits)
            try:
                archive = tarfile.open(  # noqa: SIM115 - entered below, once opening has succeeded
                    fileobj=counted, mode="r|", errors="replace"
                )
            except _TAR_DAMAGE:
                raise _damaged("tar") from None
            with archive:
                yield archive, counted


def is_tar_file(path: Path) -> bool:
    """Returns whether a file begins as a tar does, plain or gzip, whatever it is called."""
    with path.open("rb") as file:
        head = file.read(512)
    if head.startswith(b"\x1f\x8b"):
        try:
            with gzip.open(path) as unpacked:
                head = unpacked.read(512)
        except (OSError, EOFError, zlib.error):
            return False
    if len(head) < 512:
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError):
        return False
    return True


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yields members until the end, or until the archive breaks off."""
    while True:
        try:
            member = archive.next()
        except _TAR_DAMAGE:
            return
        if member is None:
            return
        yield member


def _is_plain(member: tarfile.TarInfo) -> bool:
    return member.isreg() and not member.issparse()


def _tar_bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes | None:
    try:
        file = archive.extractfile(member)
        data = b"" if file is None else file.read()
    except _TAR_DAMAGE:
        return None
    return data if len(data) == member.size else None


def too_many_items(found: int, limits: Limits) -> BadUpload:
    """Refuses an archive with too many members."""
    return BadUpload(
        "too_many_items",
        f"The archive has {found:,} items or more; the limit is {limits.items:,}. "
        "Split it, or unpack it and ingest the folder.",
    )


def _too_much(limits: Limits) -> BadUpload:
    return BadUpload(
        "too_large_unpacked",
        f"Unpacked, the archive has more than {limits.unpacked_bytes / 1024**3:.0f} GB. "
        "Split it, or unpack it and ingest the folder.",
    )


def _bomb(limits: Limits) -> BadUpload:
    return BadUpload("archive_bomb", f"The archive expands more than {limits.ratio}:1; pictures never do.")


def _damaged(kind: str) -> BadUpload:
    return BadUpload("archive_damaged", f"The {kind} is damaged or incomplete; make or upload it again.")
