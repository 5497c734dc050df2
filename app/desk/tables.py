"""Tables that other programs read: which there are, and how they are written."""

from __future__ import annotations

from typing import Literal

from app.desk.operation import SentFile

TableKind = Literal["vectors", "captions", "measurements"]
TableForm = Literal["parquet", "csv", "jsonl"]
"""How a table is written; the names of such files end so."""
MEDIA: dict[TableForm, str] = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
}


class WrittenTable(SentFile):
    """A table as a file."""
