"""tar archives, plain or gzip: streamed member by member, never extracted (see `ingest.readers.archive`)."""

import gzip
import io
import struct
import tarfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, cast

from ingest.errors import BadRow
from ingest.limits import Limits
from ingest.readers.archive import MEGABYTE, SPECIAL, Archive, Member, bomb, damaged, too_much
from ingest.readers.container import Format

_TAR_DAMAGE = (
    tarfile.TarError,
    EOFError,
    zlib.error,
    gzip.BadGzipFile,
    struct.error,
    ValueError,
    RecursionError,  # headers of headers of headers
)
_LONGEST_HEADER = 64 * 1024  # bytes of a name, or of what else a header says; tarfile reads it whole
_EMPTY_READS = 3  # in a row; an end that is not padded to whole blocks costs one or two


class _Header(tarfile.TarInfo):
    """A header whose own text is short: the longest that a tar may have fill the memory."""

    def _proc_member(self, tarfile_: tarfile.TarFile) -> tarfile.TarInfo:
        says_more = self.type in (
            tarfile.GNUTYPE_LONGNAME,
            tarfile.GNUTYPE_LONGLINK,
            tarfile.XHDTYPE,
            tarfile.XGLTYPE,
            tarfile.SOLARIS_XHDTYPE,
        )
        if says_more and self.size > _LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return cast(tarfile.TarInfo, super()._proc_member(tarfile_))  # type: ignore[misc]


class _Counted(io.RawIOBase):
    """Counts what comes out of a (compressed) tar, keeps the last block, and stops at the budget."""

    def __init__(self, plain: IO[bytes], packed: IO[bytes] | None, limits: Limits) -> None:
        self._plain = plain
        self._packed = packed
        self._limits = limits
        self.total = 0
        self.tail = b""
        self._empty = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._plain.read(size)
        self.total += len(data)
        self.tail = (self.tail + data)[-512:]
        self._empty = 0 if data else self._empty + 1
        if self._empty >= _EMPTY_READS:
            # A header may claim any size, and tarfile would go on reading as far as that.
            raise EOFError
        if self._packed is not None:
            packed = self._packed.tell()
            if self.total > 8 * MEGABYTE and self.total > self._limits.ratio * max(1, packed):
                raise bomb(self._limits)
        # Headers and padding come on top of the members' own bytes.
        if self.total > self._limits.unpacked_bytes + self._limits.items * 2048:
            raise too_much(self._limits)
        return data


class TarArchive(Archive):
    """A tar file, plain or gzip, read from front to back in two passes: for names and texts, then for pictures."""

    def _members(self, notes: list[str]) -> Iterator[Member]:
        with self._path.open("rb") as packed:
            is_gzip = packed.read(2) == b"\x1f\x8b"
            packed.seek(0)
            plain = cast(IO[bytes], gzip.GzipFile(fileobj=packed)) if is_gzip else packed
            counted = _Counted(plain, packed if is_gzip else None, self._limits)
            try:
                archive = tarfile.open(  # noqa: SIM115 - entered below, once opening has succeeded
                    fileobj=counted, mode="r|", errors="replace", tarinfo=_Header
                )
            except _TAR_DAMAGE:
                raise damaged("tar") from None
            found = 0
            with archive:
                for entry in _entries(archive):
                    found += 1
                    is_plain = entry.isreg() and not entry.issparse()
                    size, problem = (entry.size, None) if is_plain else (0, SPECIAL)
                    yield Member(entry.name, size, problem, partial(_read, archive, entry))
            if not found:
                raise damaged("tar")
            if counted.tail != bytes(512):
                notes.append(
                    f"the archive ended early: {found} members were found before its end; upload it again"
                )


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


def _entries(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yields all but folders until the end, or until the archive breaks off."""
    while True:
        try:
            entry = archive.next()
        except _TAR_DAMAGE:
            return
        if entry is None:
            return
        if not entry.isdir():
            yield entry


def _read(archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    try:
        file = archive.extractfile(entry)
        data = b"" if file is None else file.read()
    except _TAR_DAMAGE:
        data = b""
    if len(data) < entry.size:
        raise BadRow("member_damaged", "The archive ends in the middle of this file.")
    return data


FORMATS = (
    Format(
        names=("tar",), suffixes=(".tar", ".gz", ".tgz"), recognises=_is_tar, opens=TarArchive, is_shard=True
    ),
)
