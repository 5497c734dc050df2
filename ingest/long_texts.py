"""Texts of any length in keys and indexes: of PostgreSQL's these take 2,704 bytes, and SQLite's take all.

There a key holds their hashes, and an index their beginnings.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ingest.dialect import values_of

_INDEXED = 600  # characters of a long text that an index has: up to 2,400 bytes


class Long(sa.Text):
    """A text of any length in a key."""


def by_hash(table: sa.Table) -> sa.Table:
    """Returns a table after having PostgreSQL keep those of its keys that have long texts by their hashes."""
    for key in [
        one for one in table.constraints if isinstance(one, sa.PrimaryKeyConstraint | sa.UniqueConstraint)
    ]:
        if any(isinstance(one.type, Long) for one in key.columns):
            key.ddl_if("sqlite")
            sa.Index(f"{table.name}_once", *hashed(key.columns), unique=True).ddl_if("postgresql")
    return table


def hashed(columns: Iterable[Any]) -> list[Any]:
    """Returns columns as such an index has them."""
    return [sa.func.md5(one) if isinstance(getattr(one, "type", None), Long) else one for one in columns]


def beginning_of(column: Any) -> sa.ColumnElement[str]:
    """Returns what PostgreSQL's index of a long text has of it."""
    return sa.func.left(column, sa.literal_column(str(_INDEXED)))


class _ForIndex(FunctionElement[bool]):
    """A condition that follows from another, by which PostgreSQL finds rows in its index; SQLite needs none."""

    inherit_cache = True
    type = sa.Boolean()


@compiles(_ForIndex)
def _for_no_index(element: _ForIndex, compiler: Any, **how: Any) -> str:
    return "1"


@compiles(_ForIndex, "postgresql")
def _for_index(element: _ForIndex, compiler: Any, **how: Any) -> str:
    return f"({compiler.process(element.clauses, **how)})"


def is_among(column: Any, values: Iterable[str]) -> sa.ColumnElement[bool]:
    """Whether a long text is one of those given, however many."""
    given = values_of(values)
    beginnings = sa.select(beginning_of(given.subquery().c.value))
    return sa.and_(column.in_(given), _ForIndex(beginning_of(column).in_(beginnings)))


def begins_between(column: Any, first: str, end: str) -> sa.ColumnElement[bool]:
    """Whether a long text comes at or behind one, and before another."""
    begun = beginning_of(column)
    inside = sa.and_(begun >= beginning_of(sa.literal(first)), begun <= beginning_of(sa.literal(end)))
    return sa.and_(column >= first, column < end, _ForIndex(inside))
