"""Caption tables with a character between their columns: csv, tsv and the like."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ingest.errors import BadRow
from ingest.limits import Limits
from ingest.readers import json_files
from ingest.readers.container import Columns, Format, Line, Skipped, Text
from ingest.readers.names import shown, suffix_of
from ingest.readers.plain_text import decode_text, is_text

_SUFFIXES = (".csv", ".tsv")
_NAMED = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "vertical bars"}


def _lines(name: str, text: Text, limits: Limits) -> Iterator[Line]:
    data = text.read()
    if json_files.starts_as_object(data):  # whatever it is called
        yield from json_files.lines(name, replace(text, data=data), limits)
        return
    content = decode_text(data)
    header_line = content[:65536].lstrip().split("\n", 1)[0]
    delimiter = "\t" if suffix_of(name) == ".tsv" else max(_NAMED, key=header_line.count)
    # Strict: else a quote that is never closed swallows all lines after it, without a word.
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    while True:
        where = f"{shown(name)} line {reader.line_num + 1}"
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            yield Skipped(where, "line_unreadable", _unreadable(error))
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = cells
            yield Columns(header)
        elif sum(map(len, cells)) > limits.line_bytes:
            sentence = f"The line is longer than {limits.line_bytes:,} characters."
            yield Skipped(where, "line_too_long", sentence)
        elif any(
            cell.strip() for cell in cells[len(header) :]
        ):  # else a caption would lose what follows a comma
            sentence = (
                f"It has {len(cells)} cells for {len(header)} columns. Put captions that contain {_NAMED[delimiter]} "
                "in quotes."
            )
            yield Skipped(where, "line_too_many_cells", sentence)
        else:
            yield where, dict(zip(header, cells, strict=False))
    if header is None:
        raise BadRow(
            "column_missing", f"{shown(name)} has no line that names its columns, such as image,caption."
        )


def _unreadable(error: csv.Error) -> str:
    if "unexpected end of data" in str(error):
        return "A quote that opens here is never closed, so no line after it could be read. Close it, or double it."
    return f"The line cannot be read as a table ({error})."


def _is_delimited(path: Path, head: bytes) -> bool:
    if not is_text(head):
        return False
    header = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0].lower()
    named = header.replace(b'"', b"").replace(b"\t", b",").replace(b";", b",").replace(b"|", b",").split(b",")
    names_pictures = len(named) > 1 and any(cell.strip() in (b"image", b"file_name") for cell in named)
    return names_pictures or suffix_of(path.name) in _SUFFIXES


FORMATS = (Format(names=("csv", "tsv"), suffixes=_SUFFIXES, recognises=_is_delimited, lines=_lines),)
