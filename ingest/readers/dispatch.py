"""Chooses the reader by what a file holds, whatever it is called."""

from __future__ import annotations

from pathlib import Path

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.readers.arrow_file import ArrowTables, saved_dataset
from ingest.readers.container import TABLE_SUFFIXES, Container, shown
from ingest.readers.folder import Folder
from ingest.readers.table_file import TableFile
from ingest.readers.tar_archive import TarArchive, is_tar_file
from ingest.readers.zip_archive import ZipArchive

_EXPECTED = "Not a folder, zip, tar, csv, tsv, JSONL, Parquet or Arrow file"
_ARROW = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")  # Parquet, Arrow's file and stream formats
_OTHERS = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; make it a zip"),
    (b"Rar!", "a RAR archive; make it a zip"),
    (b"\xfd7zXZ", "an xz archive; use gzip or none"),
    (b"BZh", "a bzip2 archive; use gzip or none"),
    (b"\xff\xd8\xff", "a single picture; give the folder it is in"),
    (b"\x89PNG", "a single picture; give the folder it is in"),
    (b"GIF8", "a single picture; give the folder it is in"),
    (b"%PDF", "a PDF"),
)


def open_container(source: Path, limits: Limits, *, pictures_beside: bool = True) -> Container:
    """Returns the reader for a folder or file.

    Args:
        source: what the user named.
        limits: bounds that the reader keeps.
        pictures_beside: whether a bare table may name pictures in its own folder; False for uploads.

    Raises:
        BadUpload: missing, empty, or nothing that can be read.
    """
    if source.is_dir():
        return saved_dataset(source, limits) or Folder(source, limits)
    if not source.is_file():
        if source.exists():
            raise BadUpload("source_special", f"{shown(str(source))!r} is neither a file nor a folder.")
        raise BadUpload("source_missing", f"There is no file or folder {shown(str(source))!r}.")
    with source.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise BadUpload("file_empty", "The file is empty.")
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")):
        return ZipArchive(source, limits)
    if is_tar_file(source):
        return TarArchive(source, limits)
    if head.startswith(_ARROW):
        folder = source.resolve().parent if pictures_beside else None
        return ArrowTables(source.name, {source.name: source}, limits, folder=folder)
    if _is_table(source, head):
        if not pictures_beside:
            raise BadUpload(
                "table_alone", "A table alone has no pictures: upload a zip with the table and its pictures."
            )
        return TableFile(source, limits)
    raise BadUpload("not_supported", f"{_EXPECTED} ({_looks_like(head)}).")


def _is_table(source: Path, head: bytes) -> bool:
    if not _is_text(head):
        return False
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if source.suffix.lower() in TABLE_SUFFIXES or start.startswith(b"{"):
        return True
    header = start.split(b"\n", 1)[0].lower()
    named = header.replace(b'"', b"").replace(b"\t", b",").replace(b";", b",").replace(b"|", b",").split(b",")
    return len(named) > 1 and any(cell.strip() in (b"image", b"file_name") for cell in named)


def _is_text(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    control = sum(byte < 32 and byte not in (9, 10, 12, 13) for byte in head)
    return control <= len(head) // 100


def _looks_like(head: bytes) -> str:
    for start, name in _OTHERS:
        if head.startswith(start):
            return f"looks like {name}"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "looks like a single picture; give the folder it is in"
    if head.startswith(b"\x1f\x8b"):
        return "gzip, but no tar inside; unpack it first"
    return "looks like text" if _is_text(head) else "its content is not recognised"
