"""Reads Parquet and Arrow files in a process of its own, with bounded memory; run by path, imports nothing of ours.

The sizes in a Parquet file's metadata may lie: a file of two kilobytes can unpack to gigabytes, and nothing that reads
it can know beforehand. So the limit is on this process, and whoever started it lives on.

Usage: `arrow_child.py schema|rows|pictures FILE [COLUMN]`. Answers go to standard output: JSON lines for `schema` and
`rows`, frames of `_FRAME` and that many bytes for `pictures`. A refusal is one JSON line on standard error, status 3.
"""

import datetime
import json
import math
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MEMORY_BYTES = 2 << 30
ROWS_AT_ONCE, PICTURES_AT_ONCE = 2_000, 32
REFUSED = 3
_FRAME = struct.Struct("<qq")  # row number, bytes; -1 bytes for a row without a picture
_STREAM = b"\xff\xff\xff\xff"


def main() -> None:
    """Does what the arguments say; what cannot be read ends in a sentence."""
    verb, path, *rest = sys.argv[1:]
    verbs: dict[str, Callable[..., None]] = {"schema": _schema, "rows": _rows, "pictures": _pictures}
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        verbs[verb](Path(path), *rest)
    except (MemoryError, _arrow().ArrowMemoryError):
        gigabytes = MEMORY_BYTES >> 30
        _refuse("too_large_unpacked", f"needs more memory than allowed ({gigabytes} GB)")
    except (_arrow().ArrowException, OSError, ValueError, RuntimeError, OverflowError) as error:
        words = str(error).split("\n")[0][:200]
        lacks_memory = "malloc" in words
        _refuse("damaged", "needs more memory than allowed" if lacks_memory else f"cannot be read ({words})")


def _refuse(code: str, words: str) -> None:
    sys.stderr.write(json.dumps({"code": code, "words": words}) + "\n")
    sys.exit(REFUSED)


def _arrow() -> Any:
    import pyarrow

    return pyarrow


def _open(path: Path) -> tuple[Any, Any]:
    """Returns a file's schema and a function of columns and batch size that yields its batches."""
    import pyarrow.ipc
    import pyarrow.parquet

    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(b"PAR1"):
        parquet = pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        return parquet.schema_arrow, lambda columns, size: parquet.iter_batches(
            batch_size=size, columns=columns, use_threads=False
        )
    source = pyarrow.OSFile(str(path))
    reader = pyarrow.ipc.open_stream(source) if head.startswith(_STREAM) else pyarrow.ipc.open_file(source)
    return reader.schema, lambda columns, size: _parts(reader, columns, size)


def _parts(reader: Any, columns: list[str], size: int) -> Iterator[Any]:
    counted = getattr(reader, "num_record_batches", None)
    batches = iter(reader) if counted is None else (reader.get_batch(n) for n in range(counted))
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield batch.slice(start, size).select(columns)


def _embedded(schema: Any) -> list[str]:
    """Returns the columns that hold files: bytes, or a struct with bytes as Hugging Face's Image feature has it."""
    types = _arrow().types

    def is_bytes(kind: Any) -> bool:
        return bool(types.is_binary(kind) or types.is_large_binary(kind))

    def holds(kind: Any) -> bool:
        if types.is_dictionary(kind):  # values that repeat, each written once
            return holds(kind.value_type)
        if types.is_struct(kind):
            return any(part.name == "bytes" and is_bytes(part.type) for part in kind)
        return is_bytes(kind)

    return [field.name for field in schema if holds(field.type)]


def _schema(path: Path) -> None:
    schema, _ = _open(path)
    # By name is how columns are read, so of two with one name there is only the first.
    answer = {"columns": list(dict.fromkeys(schema.names)), "embedded": _embedded(schema)}
    sys.stdout.write(json.dumps(answer) + "\n")


def _rows(path: Path) -> None:
    schema, batches = _open(path)
    embedded = set(_embedded(schema))
    columns = [name for name in dict.fromkeys(schema.names) if name not in embedded]
    if not columns:  # rows of pictures alone
        for batch in batches(sorted(embedded)[:1], PICTURES_AT_ONCE):
            sys.stdout.write("{}\n" * batch.num_rows)
        return
    for batch in batches(columns, ROWS_AT_ONCE):
        for record in batch.to_pylist():
            sys.stdout.write(json.dumps(_plain(record)) + "\n")


def _plain(value: Any) -> Any:
    """Returns a value as JSON has it; what JSON has no word for is left out."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime.date):
        return value.isoformat()
    return value if isinstance(value, str | int | bool) else None


def _pictures(path: Path, column: str) -> None:
    _, batches = _open(path)
    out, row = sys.stdout.buffer, 0
    for batch in batches([column], PICTURES_AT_ONCE):
        for value in batch.column(0):
            cell = value.as_py()
            data = cell.get("bytes") if isinstance(cell, dict) else cell
            out.write(_FRAME.pack(row, -1 if data is None else len(data)))
            out.write(data or b"")
            row += 1
    out.flush()


if __name__ == "__main__":
    main()
