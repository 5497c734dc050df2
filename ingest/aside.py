"""Pairs put aside: rows of an upload that were held or rejected, kept so that a person can look and decide.

A held pair joins its chunk when a person accepts it, and stays out when a person leaves it out; both are kept with name
and time. A rejected one is there to be looked at. How much is kept of one upload is bounded.
"""

from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Column, Connection, ForeignKey, Index, delete, func, insert, select, update

from ingest.dialect import WHOLE
from ingest.engines import writing
from ingest.errors import BadOption
from ingest.jobs import now
from ingest.pair import ImageId
from ingest.records import AsidePair, NewAside
from ingest.schema import chunks
from ingest.sentence import phrase
from ingest.tables import TableQueries, record_table

MOST_HELD = 500
MOST_REJECTED = 100
MOST_BYTES = 32 * 1024**2
"""Of one upload: rows, and bytes of held pictures that no accepted pair has. The report lists all rows."""
TAKEN_OUT = phrase("A person took it out of its chunk.")
DECISIONS = ("accepted", "left_out")
_TEXTS = ("outcome", "code", "sentence", "image_id", "language", "text", "domain", "split", "group")

aside = record_table(
    "aside",
    AsidePair,
    Column("chunk", WHOLE, ForeignKey("chunks.seq"), nullable=False),
    Index("aside_by_chunk", "chunk"),
    Index("aside_by_image", "image_id"),
    said=["sentence"],
    # A number is never another pair's: its picture may be kept by a browser, and its note may name it.
    sqlite_autoincrement=True,
)


class AsideTable(TableQueries):
    """The pairs put aside in the catalog's database."""

    def pairs(
        self,
        *,
        chunk: str | None = None,
        outcome: str | None = None,
        is_waiting: bool | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[AsidePair]:
        """Returns those that all given conditions hold for, of the newest chunk first, in the order of the upload.

        `chunk` is a whole id; pairs of withdrawn chunks are left out unless it names one. `is_waiting` asks for those
        that nobody has decided, or for the others.
        """
        query = _query().order_by(chunks.c.seq.desc(), aside.c.seq).limit(limit).offset(offset)
        query = query.where(chunks.c.id == chunk if chunk else chunks.c.standing != "withdrawn")
        if outcome is not None:
            query = query.where(aside.c.outcome == outcome)
        if is_waiting is not None:
            query = query.where((aside.c.decided == "") if is_waiting else (aside.c.decided != ""))
        return self._records(query)

    def counts(self, chunk: str) -> dict[str, int]:
        """Returns how many pairs of a chunk wait, are accepted, left out or rejected, under these names."""
        query = (
            select(aside.c.outcome, aside.c.decided, func.count())
            .join(chunks, aside.c.chunk == chunks.c.seq)
            .where(chunks.c.id == chunk)
            .group_by(aside.c.outcome, aside.c.decided)
        )
        found = dict.fromkeys(("waiting", "accepted", "left_out", "rejected"), 0)
        for outcome, decided, count in self._rows(query):
            found["rejected" if outcome == "rejected" else decided or "waiting"] += count
        return found

    def named(self, ids: Collection[int]) -> list[AsidePair]:
        """Returns those of these numbers that there are, in the order of their numbers."""
        return self._records(_query().where(aside.c.seq.in_(list(ids))).order_by(aside.c.seq))

    def pictures(self, among: Collection[ImageId]) -> set[ImageId]:
        """Returns which of these pictures a pair of a chunk that is not withdrawn still needs."""
        query = (
            select(aside.c.image_id)
            .join(chunks, aside.c.chunk == chunks.c.seq)
            .where(aside.c.image_id.in_(list(among)), chunks.c.standing != "withdrawn")
        )
        return set(self._column(query))

    def decide(self, ids: Collection[int], decision: str, *, by: str, why: str) -> None:
        """Keeps a person's decision on held pairs, in place of an earlier one."""
        with writing(self._engine) as connection:
            decide(connection, ids, decision, by=by, why=why)

    def clear(self, chunk: str) -> set[ImageId]:
        """Forgets the pairs of a chunk that nobody decided; returns pictures of the chunk that no pair needs now."""
        with writing(self._engine) as connection:
            seq = connection.execute(select(chunks.c.seq).where(chunks.c.id == chunk)).scalar_one()
            of_chunk = select(aside.c.image_id).where(aside.c.chunk == seq)
            had = {str(image_id) for (image_id,) in connection.execute(of_chunk)}
            connection.execute(delete(aside).where(aside.c.chunk == seq, aside.c.decided == ""))
        return had - self.pictures(had)

    def _records(self, query: Any) -> list[AsidePair]:
        return [AsidePair(**row._mapping) for row in self._rows(query)]


def put_aside(connection: Connection, chunk_seq: int, pairs: Sequence[NewAside]) -> None:
    """Writes the pairs of an upload that are not there yet; inside a write transaction."""
    known = select(aside.c.place, *(aside.c[name] for name in _TEXTS)).where(aside.c.chunk == chunk_seq)
    there = {tuple(row) for row in connection.execute(known)}
    rows = [{name: getattr(pair, name) for name in ("place", *_TEXTS)} for pair in pairs]
    new = [row | {"chunk": chunk_seq} for row in rows if tuple(row.values()) not in there]
    if new:
        connection.execute(insert(aside), new)


def put_in_place(connection: Connection, chunk_seq: int, pairs: Sequence[NewAside]) -> list[int]:
    """Writes pairs that leave a chunk, in place of how they came into it; returns their numbers."""
    ids = []
    for pair in pairs:
        same = (
            aside.c.chunk == chunk_seq,
            aside.c.image_id == pair.image_id,
            aside.c.text == pair.text,
            aside.c.decided == "accepted",
        )
        known = connection.execute(select(aside.c.seq).where(*same)).scalars().first()
        if known is None:
            values = {name: getattr(pair, name) for name in ("place", *_TEXTS)}
            statement = insert(aside).values(chunk=chunk_seq, **values).returning(aside.c.seq)
            known = connection.execute(statement).scalar_one()
        ids.append(int(known))
    return ids


def taken_out(
    connection: Connection, chunk_seq: int, *, but: Collection[int] = ()
) -> set[tuple[ImageId, str, str]]:
    """Returns (picture, language, text) of the pairs that a person left out of a chunk, save those numbered `but`."""
    query = select(aside.c.image_id, aside.c.language, aside.c.text).where(
        aside.c.chunk == chunk_seq, aside.c.decided == "left_out", aside.c.seq.not_in(list(but))
    )
    return {(str(image_id), language, text) for image_id, language, text in connection.execute(query)}


def decide(
    connection: Connection, ids: Collection[int], decision: str, *, by: str, why: str, is_final: bool = False
) -> None:
    """Writes a decision; inside a write transaction.

    With `is_final` pairs that were accepted change too, because they leave their chunk with it.

    Raises:
        BadOption: it is no decision, or nobody's.
    """
    if decision not in DECISIONS:
        raise BadOption(f"{decision[:40]!r} is no decision on a pair; use one of {', '.join(DECISIONS)}.")
    if not by.strip():
        raise BadOption("A pair is decided by somebody's word: say whose.")
    values = {"decided": decision, "decided_by": by.strip(), "decided_why": why.strip(), "decided_at": now()}
    statement = update(aside).where(aside.c.seq.in_(list(ids)))
    if decision != "accepted" and not is_final:  # what another person accepted meanwhile belongs to its chunk
        statement = statement.where(aside.c.decided != "accepted")
    connection.execute(statement.values(**values))


def _query() -> Any:
    names = [field.name for field in fields(AsidePair) if field.name not in ("id", "chunk")]
    columns = [aside.c.seq.label("id"), chunks.c.id.label("chunk"), *(aside.c[name] for name in names)]
    return select(*columns).join(chunks, aside.c.chunk == chunks.c.seq)
