"""Caption tables: csv, tsv and JSON Lines, and a table by itself as a container."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ingest.errors import BadOption, BadRow, BadUpload
from ingest.limits import Limits
from ingest.readers.container import SPECIAL_FILE, Listing, Problem, Row, inside_name, shown

COLUMNS = ("image", "caption", "language", "domain", "split", "group")
# What a column may be called when no mapping says otherwise; `file_name` and `text` are HF ImageFolder's.
_ALIASES = {"image": ("image", "file_name"), "caption": ("caption", "text")}
_DELIMITERS = (",", "\t", ";", "|")

Locate = Callable[[str], str | None]


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Refuses a mapping onto something that is no column of ours.

    Raises:
        BadOption: names the columns that exist.
    """
    for column, ours in mapping.items():
        if ours not in COLUMNS:
            raise BadOption(f"--map {column}={ours}: {ours!r} is no column; use {', '.join(COLUMNS)}.")


def read_rows(
    name: str, data: bytes, *, mapping: Mapping[str, str], limits: Limits, locate: Locate, notes: list[str]
) -> Iterator[Row | Problem]:
    """Yields each line of a table as rows, or why it is skipped.

    Args:
        name: the table's name in its container; pictures are looked up relative to its folder.
        data: the file's bytes.
        mapping: the file's column name to ours.
        limits: line length and JSON depth.
        locate: finds a picture by its normalised name.
        notes: remarks for the whole table are appended here.

    Raises:
        BadRow: the table has no column that names pictures, or a mapped column is missing.
    """
    lines = _json_lines if _is_json(name, data) else _delimited_lines
    for where, fields in lines(name, data, mapping, limits, notes):
        if isinstance(fields, Problem):
            yield fields
            continue
        try:
            yield from _rows(where, fields, name, locate)
        except BadRow as error:
            yield Problem(where, error.code, error.sentence)


def _rows(where: str, fields: Mapping[str, Any], table_name: str, locate: Locate) -> Iterator[Row]:
    cell = fields.get("image")
    if not isinstance(cell, str) or not cell.strip():
        raise BadRow("image_not_named", "The line names no picture.")
    candidates = inside_name(cell, table_name)
    found = next((place for place in map(locate, candidates) if place is not None), None)
    if found is None:
        raise BadRow("image_missing", f"The picture {shown(cell)!r} is not in the upload.")
    captions = fields.get("caption")
    texts = captions if isinstance(captions, list) else [captions]
    for text in texts or [None]:
        if text is not None and not isinstance(text, str):
            raise BadRow("caption_not_text", "The caption is not a text.")
        stated = {column: _text_or_none(fields.get(column)) for column in COLUMNS[2:]}
        yield Row(where, found, text, **stated)


def _text_or_none(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value).strip() or None


def _is_json(name: str, data: bytes) -> bool:
    if name.lower().endswith((".jsonl", ".ndjson")):
        return True
    return data[:64].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")


def _columns(found: list[str], mapping: Mapping[str, str], name: str) -> dict[str, str]:
    """Returns our column for each column of the file that we use."""
    by_folded = {column.strip().casefold(): column for column in reversed(found)}
    listed = ", ".join(shown(column) for column in found[:20]) or "none"
    used: dict[str, str] = {}
    for column, ours in mapping.items():
        actual = by_folded.get(column.strip().casefold())
        if actual is None:
            raise BadRow(
                "column_missing", f"{shown(name)} has no column {column!r} to map; its columns: {listed}."
            )
        used[actual] = ours
    for ours in COLUMNS:
        if ours in used.values():
            continue
        actual = next((by_folded[a] for a in _ALIASES.get(ours, (ours,)) if a in by_folded), None)
        if actual is not None and actual not in used:
            used[actual] = ours
    if "image" not in used.values():
        raise BadRow(
            "column_missing",
            f"{shown(name)} has no column 'image'; its columns: {listed}. "
            "Name yours with --map COLUMN=image.",
        )
    return used


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "surrogateescape" if len(data) % 2 == 0 else "replace")
    # Invalid bytes become lone surrogates, so only the captions that hold them are refused.
    return data.decode("utf-8-sig", "surrogateescape")


def decode_text(data: bytes) -> str:
    """Returns a text file's content; bytes that are neither UTF-8 nor marked UTF-16 become surrogates."""
    try:
        return _decoded(data)
    except UnicodeDecodeError:
        return data.decode("utf-8-sig", "surrogateescape")


def _unreadable(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "A quote that opens here is never closed, so no line after it could be read. Close it, or double it."
    return f"The line cannot be read as a table ({error})."


_Lines = Iterator[tuple[str, Mapping[str, Any] | Problem]]


def _delimited_lines(
    name: str, data: bytes, mapping: Mapping[str, str], limits: Limits, _: list[str]
) -> _Lines:
    text = decode_text(data)
    header_line = text[:65536].lstrip().split("\n", 1)[0]
    delimiter = "\t" if name.lower().endswith(".tsv") else max(_DELIMITERS, key=header_line.count)
    # Strict: else a quote that is never closed swallows all lines after it, without a word.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    used: dict[int, str] | None = None
    while True:
        where = f"{shown(name)} line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            yield where, Problem(where, "line_unreadable", _unreadable(error))
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if used is None:
            columns = _columns(cells, mapping, name)
            used = {position: columns[cell] for position, cell in enumerate(cells) if cell in columns}
        elif sum(map(len, cells)) > limits.line_bytes:
            yield (
                where,
                Problem(where, "line_too_long", f"The line is longer than {limits.line_bytes:,} characters."),
            )
        else:
            yield where, {ours: cells[position] for position, ours in used.items() if position < len(cells)}
    if used is None:
        raise BadRow(
            "column_missing", f"{shown(name)} has no line that names its columns, such as image,caption."
        )


def _json_lines(
    name: str, data: bytes, mapping: Mapping[str, str], limits: Limits, notes: list[str]
) -> _Lines:
    repeated: set[str] = set()
    used: dict[str, str] | None = None
    start, number = 0, 0
    data = data.removeprefix(b"\xef\xbb\xbf")
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line, start, number = data[start:end].strip(), end + 1, number + 1
        where = f"{shown(name)} line {number}"
        if not line:
            continue
        try:
            record = _parsed(line, limits, repeated)
            if used is None:
                used = _columns(list(record), mapping, name)
        except BadRow as error:
            if error.code == "column_missing":
                raise
            yield where, Problem(where, error.code, error.sentence)
            continue
        # A later line may carry a column that the first one left out.
        columns = used if set(record) <= set(used) else {**used, **_further(record, used)}
        yield where, {ours: record[column] for column, ours in columns.items() if column in record}
    if repeated:
        keys = shown(", ".join(sorted(repeated)))
        notes.append(f"{shown(name)}: a key stands twice in a line, the last value counts: {keys}")


def _further(record: Mapping[str, Any], used: Mapping[str, str]) -> dict[str, str]:
    taken = set(used.values())
    return {
        column: column
        for column in record
        if column in COLUMNS and column not in taken and column not in used
    }


def _parsed(line: bytes, limits: Limits, repeated: set[str]) -> dict[str, Any]:
    if len(line) > limits.line_bytes:
        raise BadRow("line_too_long", f"The line is longer than {limits.line_bytes:,} bytes.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            repeated.update(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return record

    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=unique)
    except UnicodeDecodeError:
        raise BadRow("line_not_text", "The line is not valid UTF-8.") from None
    except RecursionError:
        raise BadRow("line_too_deep", f"The line is nested deeper than {limits.json_depth} levels.") from None
    except json.JSONDecodeError as error:
        raise BadRow(
            "line_unreadable", f"The line is not JSON ({error.msg} at column {error.colno})."
        ) from None
    except ValueError as error:
        raise BadRow("line_unreadable", f"The line holds a number that is too long ({error}).") from None
    if not isinstance(record, dict):
        raise BadRow(
            "line_unreadable", 'The line is JSON, but not an object such as {"image": …, "caption": …}.'
        )
    if _depth_exceeds(record, limits.json_depth):
        raise BadRow("line_too_deep", f"The line is nested deeper than {limits.json_depth} levels.")
    return record


def _refuse_constant(name: str) -> None:
    raise BadRow("line_not_a_number", f"{name} is not allowed in JSON.")


def _depth_exceeds(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        deeper: list[object] = []
        for item in level:
            if isinstance(item, dict):
                deeper.extend(item.values())
            elif isinstance(item, list):
                deeper.extend(item)
        if not deeper:
            return False
        level = deeper
    return any(isinstance(item, dict | list) for item in level)


class TableFile:
    """A table given by itself; its pictures lie in its own folder."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.name = path.name
        self._path = path
        self._folder = path.resolve().parent
        self._limits = limits

    def scan(self) -> Listing:
        """Reads the table; pictures that it does not name are none of its business."""
        size = self._path.stat().st_size
        if size > self._limits.text_bytes:
            raise BadUpload(
                "table_too_large",
                f"The table has {size >> 20} MB; the limit is {self._limits.text_bytes >> 20} MB. Split it.",
            )
        return Listing(texts={self.name: self._path.read_bytes()})

    def locate(self, name: str) -> str | None:
        """Returns the name if it is a file in the table's folder or below."""
        try:
            return name if (self._folder / name).is_file() else None
        except (OSError, ValueError):
            return None

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Problem]]:
        """Yields the bytes of the wanted files in alphabetical order."""
        for name in sorted(wanted):
            yield name, read_file(self._folder, name, self._limits)


def read_file(folder: Path, name: str, limits: Limits) -> bytes | Problem:
    """Reads a file that must really lie inside `folder`."""
    path = folder / name
    try:
        if path.is_symlink() or not path.resolve().is_relative_to(folder) or not path.is_file():
            return Problem(name, "special_file", SPECIAL_FILE)
        size = path.stat().st_size
        if size > limits.image_bytes:
            return too_large(name, size, limits)
        return path.read_bytes()
    except OSError as error:
        return Problem(name, "file_unreadable", f"The file cannot be read ({error.strerror}).")


def too_large(name: str, size: int, limits: Limits) -> Problem:
    """Says that a picture file has too many bytes to be read at all."""
    sentence = f"The file has {size / 1024**2:.1f} MB; the limit is {limits.image_bytes / 1024**2:.0f} MB."
    return Problem(name, "image_too_large", sentence)
