"""JSON Lines, a table with an object a line; and the .json of the same name beside a picture."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingest.errors import BadRow
from ingest.limits import Limits
from ingest.readers.container import Columns, Format, Line, Remark, Row, Skipped, Text
from ingest.readers.names import shown, suffix_of
from ingest.readers.plain_text import is_text
from ingest.readers.table import DOWNLOADED, not_downloaded, rows_of_record

_SUFFIXES = (".jsonl", ".ndjson")
_BOM = b"\xef\xbb\xbf"


def lines(name: str, text: Text, limits: Limits) -> Iterator[Line]:
    """Yields the lines of a table; its columns are those of the first line that can be read."""
    repeated: set[str] = set()
    is_first = True
    start, number = 0, 0
    data = text.read().removeprefix(_BOM)
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        line, start, number = data[start:end].strip(), end + 1, number + 1
        where = f"{shown(name)} line {number}"
        if not line:
            continue
        try:
            record = _parsed(line, limits, repeated)
        except BadRow as error:
            yield Skipped(where, error.code, error.sentence)
            continue
        if is_first:
            yield Columns(list(record))
            is_first = False
        yield where, record
    if repeated:
        keys = shown(", ".join(sorted(repeated)))
        yield Remark(f"{shown(name)}: a key stands twice in a line, the last value counts: {keys}")


def _captions(name: str, data: bytes, picture: str, limits: Limits) -> Iterator[Row | Skipped]:
    try:
        record = _parsed(data, limits, set())
        failed = not_downloaded(name, record) if set(record) >= DOWNLOADED else None
        if failed is not None:
            yield failed
        else:
            yield from rows_of_record(name, record, picture)
    except BadRow as error:
        yield Skipped(name, error.code, error.sentence.replace("The line", "The file"))


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


def starts_as_object(head: bytes) -> bool:
    """Returns whether the first thing in a file is a JSON object."""
    return head[:64].removeprefix(_BOM).lstrip().startswith(b"{")


def _is_json_lines(path: Path, head: bytes) -> bool:
    if not is_text(head):
        return False
    return suffix_of(path.name) in _SUFFIXES or head.removeprefix(_BOM).lstrip().startswith(b"{")


FORMATS = (
    Format(names=("JSONL",), suffixes=_SUFFIXES, recognises=_is_json_lines, lines=lines),
    Format(names=("json",), suffixes=(".json",), captions=_captions, may_be_other=True),
)
