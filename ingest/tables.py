"""What the parts of the catalog share: tables made of records, an engine, and reading rows through it."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem

from ingest.dialect import WHOLE
from ingest.long_texts import Long, by_hash
from ingest.sentence import Sentence, from_stored, to_stored

metadata = sa.MetaData()
T = TypeVar("T")

LEFT, COMING = 1_000_000, 1_000_001
"""Numbers of the schema of a catalog that was carried to another place, and of one that is being carried here.

A program of any age takes them for those of a newer one, and refuses what it would read.
"""
_MARK = "\x1e"  # a record separator: no text of people or of the program begins with one
_GROUP = 10_000  # values per IN (...) list; SQLite's limit is 32,766
_TYPES: dict[Any, Any] = {int: WHOLE, float: sa.Float, bool: sa.Boolean}


class Said(sa.TypeDecorator[str]):
    """A text that may be a sentence, which is kept with its template and its values."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        """Returns what is written."""
        if value is None or not (isinstance(value, Sentence) or value.startswith(_MARK)):
            return value
        return _MARK + as_json(value)

    def process_result_value(self, value: str | None, dialect: object) -> str | None:
        """Returns what was written; texts of older homes are plain."""
        return str(of_json(value[1:])) if value and value.startswith(_MARK) else value


def as_json(document: Any) -> str:
    """Returns JSON in which sentences keep template and values."""
    return json.dumps(to_stored(document))


def of_json(document: str) -> Any:
    """Returns what `as_json` was given."""
    return from_stored(json.loads(document))


def record_table(
    name: str,
    record: type[Any],
    *others: SchemaItem,
    keys: Collection[str] = (),
    said: Collection[str] = (),
    long: Collection[str] = (),
    **options: Any,
) -> sa.Table:
    """Returns a table with a column for each field of a record, in place of which `others` may have one.

    The field `id` is the row's number, `seq`; a default is also the table's; `said` are texts that may be sentences,
    and `long` those in keys that may have any length.
    """
    given = {one.name for one in others if isinstance(one, sa.Column)}
    kinds = get_type_hints(record)
    columns: list[SchemaItem] = []
    for one in fields(record):
        if one.name == "id":
            columns.append(sa.Column("seq", WHOLE, primary_key=True))
        elif one.name not in given:
            kind = (
                Long
                if one.name in long
                else Said
                if one.name in said
                else _TYPES.get(kinds[one.name], sa.Text)
            )
            default = None if one.default is MISSING else sa.literal(one.default, kind)
            key = one.name in keys
            columns.append(sa.Column(one.name, kind, primary_key=key, nullable=False, server_default=default))
    return by_hash(sa.Table(name, metadata, *columns, *others, **options))


class TableQueries:
    """A part of the catalog; every call is a short transaction of its own."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine

    def _rows(self, query: sa.Select[Any]) -> Sequence[Any]:
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def _column(self, query: sa.Select[Any]) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.scalars(query))


def columns_of(table: sa.Table, record: type[Any]) -> list[sa.ColumnElement[Any]]:
    """Returns the columns that a record's fields are named after, in their order; its `id` is the row's number."""
    return [table.c["seq" if field.name == "id" else field.name] for field in fields(record)]


def grouped(values: Iterable[T]) -> Iterator[list[T]]:
    """Yields the values in lists short enough for one statement."""
    ordered = list(values)
    for start in range(0, len(ordered), _GROUP):
        yield ordered[start : start + _GROUP]
