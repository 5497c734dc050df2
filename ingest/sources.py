"""Where each picture was seen: files, members of archives, addresses, rows of tables and uploads; one may have many.

A source is kept by picture and place, and stays when the same picture is seen elsewhere, too. One that is not found
any more is marked as gone; a picture whose sources are all gone leaves the answers, and comes back with one of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from sqlalchemy import JSON, Column, Connection, Index, bindparam, delete, exists, select, update

from ingest.dialect import upsert
from ingest.engines import writing
from ingest.long_texts import beginning_of, begins_between, is_among
from ingest.pair import ImageId
from ingest.readers.container import Origin, Told
from ingest.readers.names import text_of
from ingest.schema import images
from ingest.standing import settle_images
from ingest.tables import TableQueries, columns_of, grouped, record_table

Kind = Literal["file", "member", "row", "url", "upload"]


@dataclass(frozen=True, slots=True)
class PictureSource:
    """One place at which a picture was seen."""

    image_id: ImageId
    kind: Kind
    place: str  # absolute path of the file, archive or table; address; what the upload was called
    name: str = ""  # inside the place; empty where the place is the picture itself
    size: int = 0  # in bytes, of the file at the place; 0 where there is none
    modified: int = 0  # when that file was changed last, in nanoseconds since 1970
    key: str = ""  # the id that its owner gives it
    gone: str = ""  # when it was found to be no longer there, ISO 8601 in UTC; empty while it is
    fields: Mapping[str, str | int | float] = field(default_factory=dict)  # what its owner says of it

    @property
    def path(self) -> str:
        """The place with the name in it: of a file, where it lies."""
        return f"{self.place}!{self.name}" if self.name else self.place

    @property
    def modified_at(self) -> str:
        """When its file was changed last, ISO 8601 in UTC; empty where that is not known."""
        return (
            datetime.fromtimestamp(self.modified / 1e9, UTC).isoformat("T", "seconds")
            if self.modified
            else ""
        )


sources = record_table(
    "sources",
    PictureSource,
    Column("fields", JSON, nullable=False, server_default="{}"),
    Index("sources_by_place", "place").ddl_if("sqlite"),
    Index("sources_by_key", "key").ddl_if("sqlite"),
    keys=["image_id", "place", "name"],
    long=["place", "name"],
)
Index("sources_by_beginning", beginning_of(sources.c.place)).ddl_if("postgresql")


class SourceTable(TableQueries):
    """The part of `Catalog` that is about the places of pictures."""

    def of(self, ids: Iterable[ImageId]) -> dict[ImageId, tuple[PictureSource, ...]]:
        """Returns the sources of each picture that has any: those that are there first, then by place."""
        found: dict[ImageId, list[PictureSource]] = defaultdict(list)
        query = select(*columns_of(sources, PictureSource))
        query = query.order_by(sources.c.gone != "", sources.c.place, sources.c.name)
        for group in grouped(ids):
            for row in self._rows(query.where(sources.c.image_id.in_(group))):
                found[row.image_id].append(PictureSource(*row))
        return {image_id: tuple(every) for image_id, every in found.items()}

    def below(self, folder: Path) -> list[PictureSource]:
        """Returns the sources that lie in a folder or below; of the same place, one that is there comes last."""
        beginning = text_of(str(folder).rstrip("/") + "/")
        query = select(*columns_of(sources, PictureSource)).where(
            sources.c.kind.in_(("file", "member", "row")),
            begins_between(sources.c.place, beginning, beginning[:-1] + chr(ord("/") + 1)),
        )
        rows = self._rows(query.order_by(sources.c.gone == "", sources.c.modified))
        return [PictureSource(*row) for row in rows]

    def fetched(self, addresses: Iterable[str]) -> dict[str, PictureSource]:
        """Returns the source of each address from which a picture was fetched, by the address as it was asked for."""
        by_place = {text_of(address): address for address in addresses}
        query = select(*columns_of(sources, PictureSource)).where(sources.c.kind == "url")
        groups = (self._rows(query.where(is_among(sources.c.place, group))) for group in grouped(by_place))
        return {by_place[row.place]: PictureSource(*row) for rows in groups for row in rows}

    def gone_from(self, folder: Path) -> list[ImageId]:
        """Returns the pictures that were seen in a folder or below, and are at no place any more."""
        ids = {one.image_id for one in self.below(folder) if one.gone}
        found: list[ImageId] = []
        for group in grouped(ids):
            found += self._column(select(images.c.id).where(images.c.id.in_(group), images.c.gone))
        return found

    def set_gone(self, gone: Collection[PictureSource]) -> list[ImageId]:
        """Marks sources as gone; returns the pictures that left the gallery, since none of theirs is left."""
        if not gone:
            return []
        with writing(self._engine) as connection:
            mark_gone(connection, gone)
            left = select(images.c.id).where(images.c.gone, images.c.id.in_({one.image_id for one in gone}))
            return list(connection.execute(left).scalars())


def record_sources(connection: Connection, found: Sequence[PictureSource]) -> None:
    """Records sources; what is known of a place is replaced, and a picture that was gone is back.

    The same place with another picture than before no longer has the one before.
    """
    if not found:
        return
    statement = upsert(sources)
    new = {name: statement.excluded[name] for name in ("kind", "size", "modified", "key", "gone", "fields")}
    connection.execute(
        statement.on_conflict_do_update(index_elements=list(sources.primary_key), set_=new),
        [asdict(one) for one in found],
    )
    _forget_replaced(connection, [one for one in found if one.kind == "file"])
    _settle(connection, {one.image_id for one in found})


def mark_gone(connection: Connection, gone: Collection[PictureSource]) -> None:
    """Marks sources as gone, and takes pictures that have no other out of the gallery."""
    since = datetime.now(UTC).isoformat(timespec="seconds")
    keys = [
        {"of_image": one.image_id, "of_place": one.place, "of_name": one.name, "since": since} for one in gone
    ]
    statement = update(sources).where(
        sources.c.image_id == bindparam("of_image"),
        sources.c.place == bindparam("of_place"),
        sources.c.name == bindparam("of_name"),
    )
    connection.execute(statement.values(gone=bindparam("since")), keys)
    _settle(connection, {one.image_id for one in gone})


def _forget_replaced(connection: Connection, files: Sequence[PictureSource]) -> None:
    """Removes the sources of other pictures that lay at the same places."""
    by_place = {one.place: one.image_id for one in files}
    others: set[ImageId] = set()
    for group in grouped(by_place):
        query = select(sources.c.image_id, sources.c.place).where(
            sources.c.kind == "file", is_among(sources.c.place, group)
        )
        old = [row for row in connection.execute(query) if row.image_id != by_place[row.place]]
        for row in old:
            connection.execute(
                delete(sources).where(sources.c.image_id == row.image_id, sources.c.place == row.place)
            )
            others.add(row.image_id)
    _settle(connection, others)


def _settle(connection: Connection, ids: Iterable[ImageId]) -> None:
    """Marks pictures none of whose places is left, unmarks the others; those leave or join the gallery."""
    there = exists().where(sources.c.image_id == images.c.id, sources.c.gone == "")
    for group in grouped(ids):
        some = images.c.id.in_(group)
        changed = list(connection.execute(select(images.c.seq).where(some, images.c.gone == there)).scalars())
        connection.execute(update(images).where(images.c.seq.in_(changed)).values(gone=~images.c.gone))
        settle_images(connection, changed)


def source_of(
    image_id: ImageId, name: str, origin: Origin, *, uploaded: str | None, told: Told
) -> PictureSource:
    """Returns the source of a picture that a container calls `name`.

    `uploaded` is what an upload was called, whose own places are of no use to anybody; None for what lies on this
    machine. `told` is what a table says of the picture.
    """
    key, own = told.key, told.fields
    if origin.url:
        return PictureSource(image_id, "url", text_of(origin.url), key=key, fields=own)
    if uploaded is not None:
        return PictureSource(image_id, "upload", text_of(uploaded), text_of(name), key=key, fields=own)
    kind: Kind = "file" if not origin.within else "row" if origin.is_row else "member"
    return PictureSource(
        image_id,
        kind,
        text_of(str(origin.path)),
        text_of(origin.within),
        origin.size,
        origin.modified,
        key=key,
        fields=own,
    )
