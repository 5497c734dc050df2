"""What the catalog asks of its database in words that differ: SQLite's and PostgreSQL's.

Whoever builds a query uses these and `upsert`, which both understand, and never asks which database it is for.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

__all__ = [
    "AnyCase",
    "Likely",
    "WHOLE",
    "WordsFound",
    "at_least_none",
    "entries_of",
    "escaped",
    "upsert",
    "values_of",
]

TOKENIZER = "unicode61 remove_diacritics 2"
"""How SQLite reads the words of captions."""
_WILD = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
_LONGEST = 500  # characters of a word that are compared; PostgreSQL takes 2,046 bytes
WHOLE = sa.Integer().with_variant(sa.BigInteger, "postgresql")
"""Numbers of rows and sizes of files, which outgrow 32 bits; SQLite's integers have 64."""

_NUMBER = r"^[ \t\n\r\f\v]*-?[0-9]+(\.[0-9]+)?[ \t\n\r\f\v]*$"
"""What a text that is a number looks like, to both, whose other classes of characters differ."""


def at_least_none(number: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    """Returns a count that does not fall below 0."""
    return sa.case((number > 0, number), else_=0)


class WordsFound(FunctionElement[Any]):
    """The captions that words are found in: the number of each, and BM25 below zero, so that the best comes first.

    It is FTS5's in both, with its constants and its order of adding up, so that they give the same number
    (Robertson and Zaragoza, 2009; https://www.sqlite.org/fts5.html).
    """

    inherit_cache = True

    @classmethod
    def of(cls, words: Sequence[str], *, is_any: bool) -> Any:
        """Returns them as a table: those with any of the words, or with all, of which the last may be a beginning."""
        return cls(sa.literal((words, is_any), _Words())).table_valued("caption", "rank")


class _Words(sa.TypeDecorator[tuple[Sequence[str], bool]]):
    """Words, and whether any of them will do, as FTS5 is asked for them, and as JSON for PostgreSQL."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: tuple[Sequence[str], bool] | None, dialect: sa.Dialect) -> str:
        """Returns what is sent."""
        words, is_any = value or ((), False)
        if dialect.name != "sqlite":
            phrases = _phrases(words, is_any=is_any)
            asked = (" | " if is_any else " & ").join(f"({one['query']})" for one in phrases)
            return json.dumps({"query": asked, "phrases": phrases})
        quoted = ['"' + word.replace('"', '""') + '"' for word in words]
        return " OR ".join(quoted) if is_any else " ".join(quoted) + "*"


@compiles(WordsFound)
def _found_by_sqlite(element: WordsFound, compiler: Any, **how: Any) -> str:
    asked = compiler.process(element.clauses, **how)
    return f"(SELECT rowid AS caption, rank FROM captions_text WHERE captions_text MATCH {asked})"


@compiles(WordsFound, "postgresql")
def _found_by_postgresql(element: WordsFound, compiler: Any, **how: Any) -> str:
    asked = f"CAST({compiler.process(element.clauses, **how)} AS json)"
    # Each part is worked out once: whoever joins the captions would have the ranks computed row by row again.
    return f"""(
        WITH total AS MATERIALIZED (SELECT captions::float8 AS captions, words_all / captions::float8 AS average
            FROM caption_totals LIMIT 1
        ), phrase AS MATERIALIZED (
            SELECT said, cardinality(said) AS size, is_beginning, place AS turn, average,
                greatest(ln((captions - n + 0.5) / (n + 0.5)), 1e-6) AS idf
            FROM json_to_recordset({asked} -> 'phrases')
                    AS one (query tsquery, said text[], is_beginning boolean, place int),
                LATERAL (SELECT count(*)::float8 AS n FROM caption_words WHERE vector @@ query) AS hits, total
        ), found AS MATERIALIZED (
            SELECT caption, words FROM caption_words WHERE vector @@ CAST({asked} ->> 'query' AS tsquery)
        ), counted AS (
            SELECT caption, cardinality(words) AS length, average, idf, turn, CASE
                WHEN size = 1 AND NOT is_beginning THEN cardinality(array_positions(words, said[1]))
                ELSE (
                    SELECT count(*) FROM generate_series(1, cardinality(words) - size + 1) AS place
                    WHERE words[place : place + size - 2] = said[1 : size - 1] AND (words[place + size - 1] = said[size]
                        OR is_beginning AND starts_with(words[place + size - 1], said[size]))
                ) END::float8 AS n
            FROM found, phrase
        ), ranked AS MATERIALIZED (
            SELECT caption, -sum(idf * ((n * 2.2) / (n + 1.2 * (0.25 + 0.75 * length / average))) ORDER BY turn) AS rank
            FROM counted GROUP BY caption
        )
        SELECT caption, rank FROM ranked)"""


def words_of(texts: Sequence[str]) -> list[list[str]]:
    """Returns the words of each text as SQLite's index of words has them: it is asked."""
    found: list[list[str]] = [[] for _ in texts]
    with closing(sqlite3.connect(":memory:")) as asked:
        asked.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{TOKENIZER}')")
        asked.execute("CREATE VIRTUAL TABLE words USING fts5vocab(texts, instance)")
        asked.executemany("INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts))
        for number, word in asked.execute("SELECT doc, term FROM words ORDER BY doc, offset"):
            found[number].append(word[:_LONGEST])
    return found


def vector_of(words: Sequence[str]) -> str:
    """Returns words and where they stand, as PostgreSQL writes a `tsvector`."""
    return " ".join(f"{_quoted(word)}:{min(place, 16_383)}" for place, word in enumerate(words, 1))


def _phrases(words: Sequence[str], *, is_any: bool) -> list[dict[str, Any]]:
    """Returns each part of what to look for: as PostgreSQL writes a `tsquery`, and in words."""
    read = words_of(words)
    phrases: list[dict[str, Any]] = [
        {"query": " <-> ".join(map(_quoted, one)), "said": one, "is_beginning": False, "place": place}
        for place, one in enumerate(read)
        if one
    ]
    if read and read[-1] and not is_any:
        phrases[-1] |= {"query": f"{phrases[-1]['query']}:*", "is_beginning": True}
    return phrases


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


class AnyCase(FunctionElement[bool]):
    """Whether a text is like a pattern of LIKE's, whatever the case of its ASCII letters."""

    inherit_cache = True
    type = sa.Boolean()


@compiles(AnyCase)
def _any_case_by_sqlite(element: AnyCase, compiler: Any, **how: Any) -> str:
    text, pattern = (compiler.process(one, **how) for one in element.clauses)
    return rf"{text} LIKE {pattern} ESCAPE '\'"


@compiles(AnyCase, "postgresql")
def _any_case_by_postgresql(element: AnyCase, compiler: Any, **how: Any) -> str:
    text, pattern = (compiler.process(one, **how) for one in element.clauses)
    return rf"{text} ILIKE {pattern} ESCAPE '\'"


def escaped(text: str) -> str:
    """Returns a text as it stands for itself in a pattern."""
    return text.translate(_WILD)


class Likely(FunctionElement[bool]):
    """A condition that most rows fulfil: SQLite, which counts nothing, would take its index first."""

    inherit_cache = True
    type = sa.Boolean()


@compiles(Likely)
def _likely_by_sqlite(element: Likely, compiler: Any, **how: Any) -> str:
    return f"likely({compiler.process(element.clauses, **how)})"


@compiles(Likely, "postgresql")
def _likely_by_postgresql(element: Likely, compiler: Any, **how: Any) -> str:
    return f"({compiler.process(element.clauses, **how)})"


class _EachValue(FunctionElement[Any]):
    """The values of a list that is given as JSON."""

    inherit_cache = True


class _EachEntry(FunctionElement[Any]):
    """The fields of an object that a column has as JSON, each with its name, as text, and as a number if it is one."""

    inherit_cache = True


@compiles(_EachValue)
def _values_by_sqlite(element: FunctionElement[Any], compiler: Any, **how: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **how)})"


@compiles(_EachEntry)
def _entries_by_sqlite(element: FunctionElement[Any], compiler: Any, **how: Any) -> str:
    # A number is a text as it was written: of 0.1 + 0.2 SQLite would say 0.3, which is another.
    fields = compiler.process(element.clauses, **how)
    return f"""(
        SELECT key, CASE WHEN typeof(value) = 'real' THEN coalesce({fields} -> fullkey, CAST(value AS TEXT))
                ELSE CAST(value AS TEXT) END AS value,
            CASE WHEN typeof(value) <> 'text' OR type = 'text' AND value REGEXP '{_NUMBER}'
                THEN CAST(value AS REAL) END AS number
        FROM json_each({fields}))"""


@compiles(_EachValue, "postgresql")
def _values_by_postgresql(element: FunctionElement[Any], compiler: Any, **how: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **how)} AS JSON))"


@compiles(_EachEntry, "postgresql")
def _entries_by_postgresql(element: FunctionElement[Any], compiler: Any, **how: Any) -> str:
    # As SQLite has it: true is 1, no spaces in what is nested, letters alike by ASCII, and no number is too large.
    return rf"""(
        SELECT key COLLATE "C" AS key, text COLLATE "C" AS value, CASE
            WHEN kind NOT IN ('number', 'boolean') AND (kind <> 'string' OR text !~ '{_NUMBER}') THEN NULL
            WHEN abs(text::numeric) > 1.7976931348623157e308 THEN sign(text::numeric)::float8 * 'Infinity'::float8
            WHEN abs(text::numeric) < 5e-324 THEN 0
            ELSE text::float8 END AS number
        FROM (
            SELECT key, json_typeof(value) AS kind, CASE
                WHEN json_typeof(value) = 'boolean' THEN CAST(CAST(value::text AS boolean)::int AS text)
                WHEN json_typeof(value) IN ('object', 'array')
                    THEN regexp_replace(value::text, '("([^"\\]|\\.)*")|[ \n]+', '\1', 'g')
                ELSE value #>> '{{}}' END AS text
            FROM json_each({compiler.process(element.clauses, **how)})) AS field)"""


class _List(sa.TypeDecorator[Sequence[str]]):
    """A list of texts, as JSON."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[str] | None, dialect: sa.Dialect) -> str:
        """Returns what is sent; PostgreSQL keeps no NUL (`ingest.postgres_connection.plain`)."""
        sent = json.dumps(value)
        return sent if dialect.name == "sqlite" else sent.replace("\\u0000", "\\ufffd")


def values_of(values: Iterable[str]) -> sa.Select[Any]:
    """Returns a select of texts that are given, however many: they are one value of the statement."""
    some = _EachValue(sa.literal(list(values), _List())).table_valued("value")
    return sa.select(some.c.value)


def entries_of(column: sa.ColumnElement[Any]) -> Any:
    """Returns a table of the fields in a JSON column: `key`, `value` as text, and `number`, NULL where it is none."""
    return _EachEntry(column).table_valued(
        sa.column("key", sa.Text), sa.column("value", sa.Text), sa.column("number", sa.Float)
    )
