"""Caption tables: csv, tsv, JSON Lines, and those of a typed file; and the JSON beside a picture."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ingest.errors import BadOption, BadRow
from ingest.limits import Limits
from ingest.readers.container import Embedded, Problem, Row, Table, inside_name, shown

COLUMNS = ("image", "caption", "language", "domain", "split", "group")
# What a column may be called when no mapping says otherwise; `file_name` and `text` are HF ImageFolder's, `jpg` and
# `txt` img2dataset's and webdataset's.
_ALIASES = {
    "image": ("image", "file_name", "jpg", "png", "webp"),
    "caption": ("caption", "captions", "text", "txt"),
    "language": ("language", "lang"),
}
# What img2dataset (1.47) writes of each address it was given; only of a success is there a picture.
_DOWNLOADED = frozenset(("key", "status", "url"))
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
    name: str,
    data: bytes | Table,
    *,
    mapping: Mapping[str, str],
    limits: Limits,
    locate: Locate,
    notes: list[str],
) -> Iterator[Row | Problem]:
    """Yields each line of a table as rows, or why it is skipped.

    Args:
        name: the table's name in its container; pictures are looked up relative to its folder.
        data: the file's bytes, or a table that needs no parsing.
        mapping: the file's column name to ours.
        limits: line length and JSON depth.
        locate: finds a picture by its normalised name.
        notes: remarks for the whole table are appended here.

    Raises:
        BadRow: the table has no column that names pictures, or a mapped column is missing.
    """
    if isinstance(data, Table):
        lines = _typed_lines(name, data, mapping)
    elif _is_json(name, data):
        lines = _json_lines(name, data, mapping, limits, notes)
    else:
        lines = _delimited_lines(name, data, mapping, limits)
    for where, fields in lines:
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
    candidates = [cell] if isinstance(cell, Embedded) else inside_name(cell, table_name)
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


def _columns(
    found: list[str], mapping: Mapping[str, str], name: str, embedded: Sequence[str] = ()
) -> dict[str, str]:
    """Returns our column for each column of the file that we use; pictures are in the only column that holds any."""
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
    if "image" not in used.values() and len(embedded) == 1:
        used[embedded[0]] = "image"
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


def _typed_lines(name: str, table: Table, mapping: Mapping[str, str]) -> _Lines:
    is_download = set(table.columns) >= _DOWNLOADED
    # Beside pictures, or tars of them, that table only tells what could not be had.
    tells_failures = is_download and not table.embedded and "image" not in mapping.values()
    used = {} if tells_failures else _columns(list(table.columns), mapping, name, sorted(table.embedded))
    for number, record in enumerate(table.lines(), start=1):
        where = f"{shown(name)} row {number}"
        failed = not_downloaded(where, record) if is_download else None
        if failed is not None:
            yield where, failed
        elif not tells_failures:
            fields = {ours: record[column] for column, ours in used.items() if column in record}
            yield where, fields if fields.get("split") else {**fields, "split": table.split}


def not_downloaded(where: str, record: Mapping[str, Any]) -> Problem | None:
    """Says why img2dataset has no picture for an address; None when it has."""
    status = record.get("status")
    if not isinstance(status, str) or status == "success":
        return None
    why = record.get("error_message")
    said = f"{status}: {why}" if isinstance(why, str) and why else status
    return Problem(where, "not_downloaded", f"img2dataset could not get this picture ({shown(said)}).")


def sidecar_rows(name: str, data: bytes, picture: str, limits: Limits) -> Iterator[Row | Problem]:
    """Yields what the .json beside a picture says of it."""
    try:
        record = _parsed(data, limits, set())
    except BadRow as error:
        yield Problem(name, error.code, error.sentence.replace("The line", "The file"))
        return
    failed = not_downloaded(name, record) if set(record) >= _DOWNLOADED else None
    if failed is not None:
        yield failed
        return
    by_folded = {key.strip().casefold(): value for key, value in reversed(record.items())}
    fields = {
        ours: next((by_folded[alias] for alias in _ALIASES.get(ours, (ours,)) if alias in by_folded), None)
        for ours in COLUMNS
    }
    if fields["caption"] is None:
        return  # it describes the file, and another one may have its caption
    try:
        yield from _rows(name, {**fields, "image": Embedded(picture)}, name, lambda found: found)
    except BadRow as error:
        yield Problem(name, error.code, error.sentence.replace("The line", "The file"))


def _delimited_lines(name: str, data: bytes, mapping: Mapping[str, str], limits: Limits) -> _Lines:
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
