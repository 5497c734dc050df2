"""Pictures that a person takes out of the home by themselves, and puts back.

A withheld picture belongs to no chunk: nothing shows it, trains on it or measures by it, and an upload that brings it
again leaves it out. What it belonged to is kept, and which uploads had it since, so that putting it back makes all of
it as it was; meanwhile its split and group still hold for its near-copies. An update that has read its pairs already
goes on with them: to hide a picture waits for nobody.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import JSON, Column, Connection, Select, delete, func, insert, select, update

from ingest.dialect import at_least_none, upsert
from ingest.engines import writing
from ingest.errors import BadOption, UnknownImage
from ingest.jobs import now
from ingest.pair import ImageId
from ingest.schema import captions, chunk_captions, chunk_images, chunks, images
from ingest.sentence import phrase
from ingest.standing import settle_captions, settle_images
from ingest.tables import TableQueries, columns_of, record_table

MOST_AT_ONCE = 500
_NO_LINKS: dict[str, list[Any]] = {"chunks": [], "captions": [], "new": []}


@dataclass(frozen=True)
class Withheld:
    """A picture that was taken out: when (ISO 8601, UTC), by whom, and why."""

    image_id: ImageId
    since: str
    by: str
    why: str


# With the chunks and pairs to which each belongs once it is put back.
withheld = record_table("withheld", Withheld, Column("links", JSON, nullable=False), keys=["image_id"])


class WithheldTable(TableQueries):
    """The part of `Catalog` that is about pictures taken out by themselves."""

    def all(self) -> list[Withheld]:
        """Returns all that are out, the latest first."""
        query = select(*columns_of(withheld, Withheld)).order_by(withheld.c.since.desc(), withheld.c.image_id)
        return [Withheld(*row) for row in self._rows(query)]

    def ids(self) -> frozenset[ImageId]:
        """Returns the ids of all that are out."""
        return frozenset(self._column(select(withheld.c.image_id)))

    def take_out(self, ids: Collection[ImageId], *, by: str, why: str) -> list[ImageId]:
        """Takes pictures out of every chunk in one transaction; returns those that were not out before.

        `by` and `why` may not be empty.

        Raises:
            UnknownImage: the home shows no such picture; nothing changed.
            BadOption: too many, or nobody or no reason is named.
        """
        if not by.strip() or not why.strip():
            raise BadOption(
                "A picture is taken out by somebody's word and for a reason: say whose, and which."
            )
        _require_few(ids)
        with writing(self._engine) as connection:
            out = withheld_among(connection, ids)
            wanted = [one for one in dict.fromkeys(ids) if one not in out]
            for image_id, seq in _numbers(connection, wanted).items():
                _take_out(connection, image_id, seq, by=by.strip(), why=why.strip())
        return wanted

    def keep_out(self, ids: Collection[ImageId], *, by: str, why: str) -> None:
        """Leaves pictures that no chunk has out of every upload that will bring them."""
        rows = [{"image_id": one, "since": now(), "by": by, "why": why, "links": _NO_LINKS} for one in ids]
        if rows:
            with writing(self._engine) as connection:
                connection.execute(upsert(withheld).on_conflict_do_nothing(), rows)

    def put_back(self, ids: Collection[ImageId]) -> list[ImageId]:
        """Puts pictures back into the chunks they were taken out of, in one transaction; returns them.

        Raises:
            UnknownImage: one of them is not out; nothing changed.
            BadOption: too many.
        """
        _require_few(ids)
        wanted = list(dict.fromkeys(ids))
        with writing(self._engine) as connection:
            out = withheld_among(connection, wanted)
            for image_id in wanted:
                if image_id not in out:
                    raise UnknownImage(
                        phrase("Picture {id} is not one that somebody took out.", id=image_id[:24])
                    )
                _put_back(connection, image_id)
        return wanted


def forget_pictures(connection: Connection, ids: Sequence[ImageId]) -> None:
    """Takes pictures out of every chunk and removes their captions and what is known of each."""
    out = withheld_among(connection, ids)
    numbers = dict(connection.execute(select(images.c.id, images.c.seq).where(images.c.id.in_(ids))).all())
    for image_id, seq in numbers.items():
        if image_id not in out:
            _take_out(connection, image_id, seq, by="", why="")
    connection.execute(delete(withheld).where(withheld.c.image_id.in_(ids)))
    connection.execute(delete(captions).where(captions.c.image.in_(numbers.values())))
    nothing: dict[str, Any] = {"taken": "", "camera": "", "latitude": None, "longitude": None}
    nothing |= {"sketch": None, "group": None, "cluster": None}
    connection.execute(update(images).where(images.c.id.in_(ids)).values(**nothing))


def withheld_among(connection: Connection, ids: Iterable[ImageId]) -> set[ImageId]:
    """Returns which of these pictures a person has taken out."""
    wanted = set(ids)
    return wanted & set(connection.execute(select(withheld.c.image_id)).scalars())


def brought_again(connection: Connection, ids: Iterable[ImageId], chunk: int) -> None:
    """Keeps that a chunk, by its number, has pictures that are out: put back, they are of that one, too."""
    rows = connection.execute(
        select(withheld.c.image_id, withheld.c.links).where(withheld.c.image_id.in_(list(ids)))
    )
    for image_id, links in rows.all():
        more = links | {"chunks": sorted({*links["chunks"], chunk})}
        connection.execute(update(withheld).where(withheld.c.image_id == image_id).values(links=more))


def _require_few(ids: Collection[ImageId]) -> None:
    if not ids:
        raise BadOption("No picture is named.")
    if len(ids) > MOST_AT_ONCE:
        raise BadOption(f"{len(ids)} pictures are named; name at most {MOST_AT_ONCE} at once.")


def _numbers(connection: Connection, ids: Collection[ImageId]) -> dict[ImageId, int]:
    """Returns the row number of each picture that the home shows."""
    query = select(images.c.id, images.c.seq).where(images.c.id.in_(list(ids)), ~images.c.withdrawn)
    found = {image_id: int(seq) for image_id, seq in connection.execute(query)}
    strange = [one for one in ids if one not in found]
    if strange:
        raise UnknownImage(f"There is no picture {strange[0][:64]!r}.")
    return found


def _take_out(connection: Connection, image_id: ImageId, seq: int, *, by: str, why: str) -> None:
    own = select(captions.c.seq).where(captions.c.image == seq)
    of_chunks = connection.execute(select(chunk_images.c.chunk).where(chunk_images.c.image == seq)).scalars()
    said = select(chunk_captions.c.chunk, chunk_captions.c.caption).where(chunk_captions.c.caption.in_(own))
    links: dict[str, Any] = {
        "chunks": sorted(of_chunks),
        "captions": [list(row) for row in connection.execute(said)],
        "new": _counted_as_new(connection, seq, own),
    }
    connection.execute(insert(withheld).values(image_id=image_id, since=now(), by=by, why=why, links=links))
    connection.execute(delete(chunk_images).where(chunk_images.c.image == seq))
    connection.execute(delete(chunk_captions).where(chunk_captions.c.caption.in_(own)))
    _count(connection, links["new"], -1)
    _settle(connection, seq)


def _put_back(connection: Connection, image_id: ImageId) -> None:
    links = connection.execute(select(withheld.c.links).where(withheld.c.image_id == image_id)).scalar_one()
    connection.execute(delete(withheld).where(withheld.c.image_id == image_id))
    seq = connection.execute(select(images.c.seq).where(images.c.id == image_id)).scalar_one_or_none()
    if seq is None:  # it was only kept out
        return
    pictures = [{"chunk": chunk, "image": seq} for chunk in links["chunks"]]
    texts = [{"chunk": chunk, "caption": caption} for chunk, caption in links["captions"]]
    for table, rows in ((chunk_images, pictures), (chunk_captions, texts)):
        if rows:
            connection.execute(upsert(table).on_conflict_do_nothing(), rows)
    _count(connection, links["new"], 1)
    _settle(connection, seq)


def _counted_as_new(connection: Connection, seq: int, own: Select[Any]) -> list[list[int]]:
    """Returns by chunk how many pictures and pairs it counts as new because of a picture.

    A picture is new with the chunk that its record names, a caption with the first chunk that has it.
    """
    (brought,) = connection.execute(select(images.c.chunk).where(images.c.seq == seq)).one()
    firsts = select(func.min(chunk_captions.c.chunk)).where(chunk_captions.c.caption.in_(own))
    pairs = Counter(map(int, connection.execute(firsts.group_by(chunk_captions.c.caption)).scalars()))
    return [[chunk, int(chunk == brought), pairs[chunk]] for chunk in sorted({int(brought), *pairs})]


def _count(connection: Connection, new: Iterable[Sequence[int]], sign: int) -> None:
    """Adds to what chunks count as new, or takes it off."""
    for chunk, pictures, pairs in new:
        more = {
            "new_images": at_least_none(chunks.c.new_images + sign * pictures),
            "new_pairs": at_least_none(chunks.c.new_pairs + sign * pairs),
        }
        connection.execute(update(chunks).where(chunks.c.seq == chunk).values(**more))


def _settle(connection: Connection, seq: int) -> None:
    settle_images(connection, [seq])
    settle_captions(connection, select(captions.c.seq).where(captions.c.image == seq))
