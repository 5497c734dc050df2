"""All formats of files that an upload may have, and what opens one by what it holds, whatever it is called.

A new format is a module here that has `FORMATS`, and its name in the import and in the list below.
"""

from pathlib import Path

from ingest.camera_raw import is_camera_raw
from ingest.errors import BadUpload
from ingest.file_kinds import VIDEO, is_video, picture_format
from ingest.limits import Limits
from ingest.readers import arrow_file, delimited, json_files, plain_text, tar_archive, xmp_files, zip_archive
from ingest.readers.arrow_file import saved_dataset
from ingest.readers.container import Container, Formats
from ingest.readers.folder import Folder
from ingest.readers.names import shown
from ingest.readers.plain_text import is_text
from ingest.readers.table_file import TableFile
from ingest.sentence import phrase

# A file given by itself is of the first format that recognises it.
FORMATS = (
    *zip_archive.FORMATS,
    *tar_archive.FORMATS,
    *arrow_file.FORMATS,
    *delimited.FORMATS,
    *json_files.FORMATS,
    *plain_text.FORMATS,
    *xmp_files.FORMATS,
)
BY_SUFFIX: Formats = {suffix: format for format in FORMATS for suffix in format.suffixes}
_UPLOADED = [format for format in FORMATS if format.recognises is not None]
_NAMES = [name for format in _UPLOADED for name in format.names]
_EXPECTED = f"Not a folder, {', '.join(_NAMES[:-1])} or {_NAMES[-1]} file"
_OTHERS = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; make it a zip"),
    (b"Rar!", "a RAR archive; make it a zip"),
    (b"\xfd7zXZ", "an xz archive; use gzip or none"),
    (b"BZh", "a bzip2 archive; use gzip or none"),
    (b"%PDF", "a PDF"),
)


def open_container(
    source: Path, limits: Limits, *, pictures_beside: bool = True, pictures: Path | None = None
) -> Container:
    """Returns the reader for a folder or file.

    `pictures_beside` says whether a bare table may name pictures in its own folder; no upload may. `pictures` is the
    folder in which they lie, where that is another one.

    Raises:
        BadUpload: missing, empty, or nothing that can be read; or `pictures` is no folder, or goes with no table.
    """
    if pictures is not None and not pictures.is_dir():
        raise BadUpload(
            "pictures_missing",
            phrase("There is no folder {folder}. Name the one with the pictures.", folder=str(pictures)),
        )
    if source.is_dir():
        _require_table(source, pictures, is_table=False)
        return saved_dataset(source, limits) or Folder(source, limits)
    if not source.is_file():
        if source.exists():
            raise BadUpload("source_special", f"{shown(str(source))!r} is neither a file nor a folder.")
        raise BadUpload("source_missing", f"There is no file or folder {shown(str(source))!r}.")
    with source.open("rb") as file:
        head = file.read(4096)
    if not head:
        raise BadUpload("file_empty", "The file is empty.")
    format = next((one for one in _UPLOADED if one.recognises and one.recognises(source, head)), None)
    if format is None:
        raise BadUpload("not_supported", f"{_EXPECTED} ({_looks_like(head)}).")
    _require_table(source, pictures, is_table=format.lines is not None)
    if format.opens is not None:
        beside = source.parent if pictures is None else pictures
        folder = beside.resolve() if pictures_beside else None
        return format.opens(source, limits, folder=folder, within=None)
    if not pictures_beside:
        raise BadUpload(
            "table_alone", "A table alone has no pictures: upload a zip with the table and its pictures."
        )
    return TableFile(source, limits, format, pictures=pictures)


def _require_table(source: Path, pictures: Path | None, *, is_table: bool) -> None:
    if pictures is not None and not is_table:
        raise BadUpload(
            "pictures_not_needed",
            phrase(
                "{source} is no table and brings its own pictures; a folder of pictures goes with a table that names "
                "them.",
                source=source.name,
            ),
        )


def _looks_like(head: bytes) -> str:
    for start, name in _OTHERS:
        if head.startswith(start):
            return phrase("looks like {language}", language=name)
    if picture_format(head) or is_camera_raw(head):
        return phrase("looks like a single picture; give the folder it is in")
    if is_video(head):
        return VIDEO
    if head.startswith(b"\x1f\x8b"):
        return "gzip, but no tar inside; unpack it first"
    return phrase("looks like text") if is_text(head) else "its content is not recognised"
