"""What the catalog knows of a bucket: where each picture lies in it, and which folders were published there.

A pack is an object of many pictures, one after another; its row names it, and a row for each picture says where in it
that lies. A published folder's manifest is a row, written when all its files are in the bucket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from ingest.dialect import WHOLE, upsert
from ingest.engines import writing
from ingest.tables import TableQueries, grouped, metadata

packs = sa.Table(
    "packs",
    metadata,
    sa.Column("seq", WHOLE, primary_key=True),
    sa.Column("name", sa.String(64), nullable=False, unique=True),
)
packed = sa.Table(
    "packed",
    metadata,
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("pack", WHOLE, sa.ForeignKey("packs.seq"), nullable=False),
    sa.Column("begins", WHOLE, nullable=False),
    sa.Column("length", WHOLE, nullable=False),
    sa.Index("packed_by_pack", "pack"),
    sqlite_with_rowid=False,
)
published = sa.Table(
    "published",
    metadata,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column("manifest", sa.LargeBinary, nullable=False),
    sa.Column("since", sa.String(32), nullable=False),  # ISO 8601, UTC
    # What says that a release was pruned; NULL: it was not.
    sa.Column("pruned", sa.LargeBinary),
)


@dataclass(frozen=True, slots=True)
class Packed:
    """Where a record lies."""

    pack: str  # name of the object
    begins: int  # in bytes
    length: int  # in bytes


class PackRows(TableQueries):
    """Where records lie in packs."""

    def places(self, keys: Sequence[bytes]) -> dict[bytes, Packed]:
        """Returns where those records lie that are in a pack."""
        query = sa.select(packed.c.key, packs.c.name, packed.c.begins, packed.c.length).join(packs)
        found: dict[bytes, Packed] = {}
        for some in grouped(keys):
            rows = self._rows(query.where(packed.c.key.in_(some)))
            found |= {bytes(key): Packed(*rest) for key, *rest in rows}
        return found

    def keys(self, prefix: bytes, after: bytes, limit: int) -> list[bytes]:
        """Returns at most so many keys that begin so and come after another, in their order."""
        query = sa.select(packed.c.key).where(packed.c.key > after, packed.c.key >= prefix)
        if end := _beyond(prefix):
            query = query.where(packed.c.key < end)
        return [bytes(key) for key in self._column(query.order_by(packed.c.key).limit(limit))]

    def of_pack(self, name: str) -> dict[bytes, Packed]:
        """Returns which records lie in a pack, and where."""
        query = sa.select(packed.c.key, packs.c.name, packed.c.begins, packed.c.length).join(packs)
        return {bytes(key): Packed(*rest) for key, *rest in self._rows(query.where(packs.c.name == name))}

    def enter(self, name: str, places: Mapping[bytes, tuple[int, int]], *, anew: bool = False) -> None:
        """Writes which records lie in a new pack: where each begins, and its length.

        One that is known to be elsewhere stays there, or goes over where that is lost.
        """
        with writing(self._engine) as connection:
            pack = _made(connection, name)
            rows = [
                {"key": key, "pack": pack, "begins": begins, "length": length}
                for key, (begins, length) in places.items()
            ]
            statement = upsert(packed)
            moved = {one: statement.excluded[one] for one in ("pack", "begins", "length")}
            connection.execute(
                statement.on_conflict_do_update(index_elements=["key"], set_=moved)
                if anew
                else statement.on_conflict_do_nothing(),
                rows,
            )

    def rewrite(
        self, old: str, new: str, places: Mapping[bytes, tuple[int, int]], gone: Sequence[bytes]
    ) -> int:
        """Writes that the rest of a pack lies in a new one, and forgets what is gone; returns how much that was."""
        with writing(self._engine) as connection:
            was = connection.scalar(sa.select(packs.c.seq).where(packs.c.name == old))
            of_old = packed.c.pack == was
            if places:
                statement = sa.update(packed).where(of_old, packed.c.key == sa.bindparam("its"))
                moved = statement.values(
                    pack=_made(connection, new), begins=sa.bindparam("at"), length=sa.bindparam("long")
                )
                rows = [{"its": key, "at": at, "long": long} for key, (at, long) in places.items()]
                connection.execute(moved, rows)
            count = 0
            for some in grouped(gone):
                count += connection.execute(sa.delete(packed).where(of_old, packed.c.key.in_(some))).rowcount
        return count

    def empty(self) -> list[str]:
        """Returns the names of the packs of which nothing is wanted any more."""
        return self._column(sa.select(packs.c.name).where(~sa.exists().where(packed.c.pack == packs.c.seq)))

    def drop(self, names: Sequence[str]) -> None:
        """Forgets packs that were empty, and were removed."""
        with writing(self._engine) as connection:
            for some in grouped(names):
                connection.execute(sa.delete(packs).where(packs.c.name.in_(some)))

    def clear(self) -> None:
        """Forgets all that lies in a bucket, published folders as well."""
        with writing(self._engine) as connection:
            for table in (packed, packs, published):
                connection.execute(sa.delete(table))

    def names(self) -> list[str]:
        """Returns the names of all packs."""
        return self._column(sa.select(packs.c.name))


class PublishedRows(TableQueries):
    """Which folders were published: versions (`v…`), generations (`g…`) and releases (`r…`)."""

    def ids(self, letter: str) -> list[str]:
        """Returns the ids of one kind."""
        return self._column(sa.select(published.c.id).where(published.c.id.like(f"{letter}%")))

    def manifest(self, published_id: str) -> bytes | None:
        """Returns a folder's manifest; None of one that was not published."""
        query = sa.select(published.c.manifest).where(published.c.id == published_id)
        return next(map(bytes, self._column(query)), None)

    def manifests(self) -> dict[str, bytes]:
        """Returns the manifests of all folders, by id."""
        rows = self._rows(sa.select(published.c.id, published.c.manifest))
        return {published_id: bytes(manifest) for published_id, manifest in rows}

    def since(self, published_id: str) -> datetime | None:
        """Returns when a folder was published; None of one that was not."""
        query = sa.select(published.c.since).where(published.c.id == published_id)
        return next(map(datetime.fromisoformat, self._column(query)), None)

    def enter(self, published_id: str, manifest: bytes) -> None:
        """Publishes a folder; one that is published is wanted anew from now on."""
        facts = {"id": published_id, "manifest": manifest, "since": datetime.now(UTC).isoformat()}
        statement = upsert(published).values(facts)
        again = statement.on_conflict_do_update(index_elements=["id"], set_={"since": facts["since"]})
        with writing(self._engine) as connection:
            connection.execute(again)

    def leave(self, published_id: str) -> None:
        """Takes a folder back."""
        with writing(self._engine) as connection:
            connection.execute(sa.delete(published).where(published.c.id == published_id))

    def pruned(self, published_id: str) -> bytes | None:
        """Returns what says of a release that it was pruned; None of one that was not."""
        query = sa.select(published.c.pruned).where(published.c.id == published_id)
        return next((bytes(mark) for mark in self._column(query) if mark is not None), None)

    def mark_pruned(self, published_id: str, mark: bytes) -> None:
        """Marks a release as pruned."""
        with writing(self._engine) as connection:
            connection.execute(sa.update(published).where(published.c.id == published_id).values(pruned=mark))


def _made(connection: sa.Connection, name: str) -> int:
    return int(connection.execute(packs.insert().values(name=name).returning(packs.c.seq)).scalar_one())


def _beyond(prefix: bytes) -> bytes:
    """Returns the first key after all that begin so; none where there is no such."""
    cut = prefix.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else b""
