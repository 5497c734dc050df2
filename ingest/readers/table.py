"""Rows of caption tables in any format: what each column means, and which picture each line names."""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ingest.errors import BadOption, BadRow
from ingest.limits import Limits
from ingest.readers.container import Columns, EmbeddedPicture, Line, Remark, Row, Skipped, Text, Told
from ingest.readers.names import is_address, shown
from ingest.sentence import phrase

COLUMNS = ("image", "caption", "language", "domain", "split", "group", "key")
# What a column may be called when no mapping says otherwise; `file_name` and `text` are HF ImageFolder's, `jpg` and
# `txt` img2dataset's and webdataset's.
_ALIASES = {
    "image": ("image", "file_name", "jpg", "png", "webp"),
    "caption": ("caption", "captions", "text", "txt"),
    "language": ("language", "lang"),
    "key": ("key", "id"),
}
# What a line says beyond our columns is kept with the picture, within these bounds.
_MOST_FIELDS = 50
_LONGEST_FIELD = 500
_LONGEST_KEY = 200
# What img2dataset (1.47) writes of each address it was given; only of a success is there a picture.
DOWNLOADED = frozenset(("key", "status", "url"))

Locate = Callable[[Sequence[str]], str | None]
"""Finds a picture by the names that a cell may mean: relative to the table's folder, then to the top."""


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuses a mapping onto something that is no column of ours.

    Raises:
        BadOption: names the columns that exist.
    """
    for column, ours in mapping.items():
        if ours not in COLUMNS:
            raise BadOption(f"--map {column}={ours}: {ours!r} is no column; use {', '.join(COLUMNS)}.")


def read_rows(
    name: str, text: Text, *, mapping: Mapping[str, str], limits: Limits, locate: Locate
) -> Iterator[Row | Skipped | Remark]:
    """Yields each line of a table as rows, or why it is skipped.

    Pictures are looked up relative to the table's folder, addresses as they are; `mapping` leads from the file's
    columns to ours.

    Raises:
        BadRow: the table has no column that names pictures, one of ours twice, or a mapped column is missing.
        BadUpload: the file is damaged.
    """
    lines: Iterator[Line] = text.format.lines(name, text, limits) if text.format.lines else iter(())
    columns = Columns(())
    used: dict[str, str] = {}
    silent = _Silent(text.split, "")
    for line in lines:
        if isinstance(line, Columns):
            columns = line
            # Beside pictures, or tars of them, img2dataset's table only tells what could not be had.
            if not columns.downloads or columns.embedded or "image" in mapping.values():
                used = _ours(columns, mapping, name)
                # A table of pictures alone, or of what is known of them, leaves their captions to others.
                needs_caption = not columns.embedded and "caption" in used.values()
                silent = _Silent(text.split, "" if needs_caption else None)
        elif isinstance(line, Skipped | Remark):
            yield line
        else:
            where, record = line
            failed = not_downloaded(where, record) if columns.downloads else None
            if failed is not None:
                yield failed
            elif used:
                fields = _fields(record, used)
                told = _told(record, fields, used)
                yield from _rows(where, fields, name, locate, silent, told)


def _fields(record: Mapping[str, Any], used: Mapping[str, str]) -> dict[str, Any]:
    """Returns what a line says by our columns; one that the first line left out counts by its own name."""
    fields = {column: record[column] for column in COLUMNS if column in record and column not in used}
    return fields | {ours: record[column] for column, ours in used.items() if column in record}


@dataclass(frozen=True, slots=True)
class _Silent:
    """What holds of a line that says nothing else."""

    split: str | None
    caption: str | None


def _told(record: Mapping[str, Any], fields: Mapping[str, Any], used: Mapping[str, str]) -> Told:
    """Returns the id that a line gives its picture, and what it says in columns that are none of ours."""
    own: dict[str, str | int | float] = {}
    for name, value in record.items():
        if name in used or name in COLUMNS or isinstance(value, EmbeddedPicture) or len(own) == _MOST_FIELDS:
            continue
        if isinstance(value, str):
            value = value.strip()[:_LONGEST_FIELD]
        if isinstance(value, float) and not isfinite(value):  # it says nothing, and JSON has no such number
            continue
        if isinstance(value, str | int | float) and value != "":
            own[name.strip()[:_LONGEST_KEY]] = value
    return Told((_text_or_none(fields.get("key")) or "")[:_LONGEST_KEY], own)


def _rows(
    where: str,
    fields: Mapping[str, Any],
    table_name: str,
    locate: Locate,
    silent: _Silent,
    told: Told,
) -> Iterator[Row | Skipped]:
    try:
        cell = fields.get("image")
        if not isinstance(cell, str) or not cell.strip():
            raise BadRow("image_not_named", "The line names no picture.")
        candidates = [cell] if isinstance(cell, EmbeddedPicture) else _inside_names(cell, table_name)
        found = locate(candidates)
        if found is None and is_address(candidates[0]):
            sentence = phrase(
                "{address} is an address; with --fetch such pictures are fetched.", address=shown(cell)
            )
            raise BadRow("image_outside", sentence)
        if found is None:
            missing = f"The picture {shown(cell)!r} is not in the upload."
            yield Skipped(where, "image_missing", missing, shown(cell))
            return
        yield from _captioned(where, found, fields, silent, told)
    except BadRow as error:
        yield Skipped(where, error.code, error.sentence)


def _captioned(
    where: str, picture: str, fields: Mapping[str, Any], silent: _Silent, told: Told
) -> Iterator[Row]:
    captions = fields.get("caption")
    stated = {
        column: _text_or_none(fields.get(column)) for column in ("language", "domain", "split", "group")
    }
    stated["split"] = stated["split"] or silent.split
    for text in (captions if isinstance(captions, list) else [captions]) or [None]:
        if text is not None and not isinstance(text, str):
            raise BadRow("caption_not_text", "The caption is not a text.")
        yield Row(where, picture, silent.caption if text is None else text, **stated, told=told)


def rows_of_record(where: str, record: Mapping[str, Any], picture: str) -> Iterator[Row]:
    """Yields what a record without a column of pictures says of one; nothing when it holds no caption.

    Raises:
        BadRow: the caption is not a text.
    """
    used = _aliased(list(record))
    fields = {ours: record[column] for column, ours in used.items()}
    told = _told(record, fields, used)
    if fields.get("caption") is not None:
        yield from _captioned(where, picture, fields, _Silent(None, ""), told)
    elif told != Told():  # it describes the file, and another one may have its caption
        yield Row(where, picture, None, told=told)


def _inside_names(cell: str, table_name: str) -> list[str]:
    """Returns the names a table cell may mean: relative to the table's folder, then to the top.

    Raises:
        BadRow: an absolute path, another scheme than the web's, or a path that leaves the upload.
    """
    if is_address(cell.strip()):
        return [cell.strip()]
    written = cell.strip().replace("\\", "/")
    outside = BadRow("image_outside", f"{shown(cell)!r} must name a file inside the upload.")
    if "\0" in written or written.startswith(("/", "~")) or re.match(r"^[A-Za-z][A-Za-z0-9+.-]*:", written):
        raise outside
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(table_name), written))
    top = posixpath.normpath(written)
    names = [
        name
        for name in dict.fromkeys((beside, top))
        if not name.startswith("../") and name not in ("..", ".")
    ]
    if not names:
        raise outside
    return names


def not_downloaded(where: str, record: Mapping[str, Any]) -> Skipped | None:
    """Says why img2dataset has no picture for an address; None when it has."""
    status = record.get("status")
    if not isinstance(status, str) or status == "success":
        return None
    why = record.get("error_message")
    said = f"{status}: {why}" if isinstance(why, str) and why else status
    return Skipped(where, "not_downloaded", f"img2dataset could not get this picture ({shown(said)}).")


def _text_or_none(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def _aliased(found: list[str], used: Mapping[str, str] | None = None) -> dict[str, str]:
    """Returns our column for each of the file's that we use, by its name or an alias; those `used` are settled."""
    used = dict(used or {})
    by_folded = {column.strip().casefold(): column for column in reversed(found)}
    for ours in COLUMNS:
        if ours in used.values():
            continue
        actual = next((by_folded[a] for a in _ALIASES.get(ours, (ours,)) if a in by_folded), None)
        if actual is not None and actual not in used:
            used[actual] = ours
    return used


def _ours(columns: Columns, mapping: Mapping[str, str], name: str) -> dict[str, str]:
    """Returns our column for each of the file's that we use; pictures are in the only column that holds any."""
    found = list(columns.names)
    by_folded = {column.strip().casefold(): column for column in reversed(found)}
    listed = ", ".join(shown(column) for column in found[:20]) or "none"
    mapped: dict[str, str] = {}
    for column, ours in mapping.items():
        actual = by_folded.get(column.strip().casefold())
        if actual is None:
            raise BadRow(
                "column_missing", f"{shown(name)} has no column {column!r} to map; its columns: {listed}."
            )
        mapped[actual] = ours
    used = _aliased(found, mapped)
    if "image" not in used.values() and len(columns.embedded) == 1:
        used[next(iter(columns.embedded))] = "image"
    if "image" not in used.values():
        raise BadRow(
            "column_missing",
            f"{shown(name)} has no column 'image'; its columns: {listed}. "
            "Name yours with --map COLUMN=image.",
        )
    if twice := [column for column in used if found.count(column) > 1]:
        raise BadRow(
            "column_twice",
            f"{shown(name)} has {found.count(twice[0])} columns {shown(twice[0])}, of which one alone would be read; "
            f"its columns: {listed}. Name each otherwise.",
        )
    return used
