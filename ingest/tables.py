"""What the parts of the catalog share: an engine, and reading rows through it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import ColumnElement, Engine, Select, Table


class TableQueries:
    """A part of the catalog; every call is a short transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def _column(self, query: Select[Any]) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.scalars(query))


def columns_of(table: Table, record: type[Any]) -> list[ColumnElement[Any]]:
    """Returns the columns that a record's fields are named after, in their order; its `id` is the row's number."""
    return [table.c["seq" if field.name == "id" else field.name] for field in fields(record)]
