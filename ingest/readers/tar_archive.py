"""tar archives, plain or gzip: streamed member by member, never extracted (see `ingest.readers.listing`)."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Format, Formats, Skipped, Text
from ingest.readers.listing import MEGABYTE, Archive, Listing, bomb, damaged, too_much
from ingest.readers.names import label_of
from ingest.readers.table_file import too_large

_TAR_DAMAGE = (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, struct.error, ValueError)


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
            if self.total > 8 * MEGABYTE and self.total > self._limits.ratio * max(1, packed):
                raise bomb(self._limits)
        # Headers and padding come on top of the members' own bytes.
        if self.total > self._limits.unpacked_bytes + self._limits.items * 2048:
            raise too_much(self._limits)
        return data


class TarArchive(Archive):
    """A tar file, plain or gzip, read from front to back in two passes."""

    def scan(self, formats: Formats) -> Listing:
        """First pass: lists the pictures and reads the texts."""
        listing = Listing(self._limits, formats, within=self._within)
        found = 0
        with self._opened() as (archive, counted):
            for member in _members(archive):
                if member.isdir():
                    continue
                listing.count(member.size if _is_plain(member) else 0)
                found += 1
                name = listing.label(member.name)
                if not _is_plain(member):
                    listing.problem(name, "special_file", SPECIAL_FILE)
                elif format := listing.text_format(name, member.size):
                    data = _tar_bytes(archive, member)
                    if data is None:
                        break
                    listing.add_text(name, Text(format, data))
            is_complete = counted.tail == bytes(512)
        if not found:
            raise damaged("tar")
        if not is_complete:
            listing.notes.append(
                f"the archive ended early: {found} members were found before its end; upload it again"
            )
        self._index = listing.index()
        return listing

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Second pass: yields the bytes of the wanted members in archive order."""
        with self._opened() as (archive, _):
            for member in _members(archive):
                name, _ = label_of(member.name, self._within)
                if not _is_plain(member) or name not in wanted:
                    continue
                if member.size > self._limits.image_bytes:
                    yield name, too_large(name, member.size, self._limits)
                    continue
                data = _tar_bytes(archive, member)
                if data is None:
                    sentence = "The archive ends in the middle of this file."
                    yield name, Skipped(name, "member_damaged", sentence)
                    return
                yield name, data

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
                raise damaged("tar") from None
            with archive:
                yield archive, counted


def _is_tar(path: Path, head: bytes) -> bool:
    """Returns whether a file begins as a tar does, plain or gzip, whatever it is called."""
    head = head[:512]
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


FORMATS = (
    Format(
        names=("tar",),
        suffixes=(".tar", ".gz", ".tgz"),
        recognises=_is_tar,
        opens=TarArchive,
        is_shard=True,
    ),
)
