"""An upload as one file: a zip with pictures and a table of their captions."""

import csv
import io
import zipfile
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

_FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same content makes the same bytes


def write_upload(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]], pictures: Iterable[tuple[str, bytes]]
) -> None:
    """Writes `captions.csv` and the pictures, names and bytes; an existing file is replaced."""
    table = io.StringIO(newline="")
    csv.writer(table, lineterminator="\n").writerows([columns, *rows])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in chain([("captions.csv", table.getvalue().encode())], pictures):
            entry = zipfile.ZipInfo(name, _FIXED_TIME)
            is_packed = name.endswith(".csv")  # pictures are compressed already
            entry.compress_type = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
