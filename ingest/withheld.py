"""Pictures that a person takes out of the home by themselves, and puts back.

A withheld picture belongs to no chunk: nothing shows it, trains on it or measures by it, and an upload that brings it
again leaves it out. What it belonged to is kept, so that putting it back makes all of it as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from ingest.errors import BadOption, UnknownImage
from ingest.jobs import now, teaching_job
from ingest.pair import ImageId
from ingest.schema import captions, chunk_captions, chunk_images, chunks, images, withheld, writing
from ingest.standing import settle_captions, settle_images

MOST_AT_ONCE = 500


@dataclass(frozen=True)
class Withheld:
    """A picture that was taken out: when (ISO 8601, UTC), by whom, and why."""

    image_id: ImageId
    since: str
    by: str
    why: str


class WithheldTable:
    """The part of `Catalog` that is about pictures taken out by themselves."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def all(self) -> list[Withheld]:
        """Returns all that are out, the latest first."""
        columns = (withheld.c.image_id, withheld.c.since, withheld.c.by, withheld.c.why)
        query = select(*columns).order_by(withheld.c.since.desc(), withheld.c.image_id)
        with self._engine.connect() as connection:
            return [Withheld(*row) for row in connection.execute(query)]

    def ids(self) -> frozenset[ImageId]:
        """Returns the ids of all that are out."""
        with self._engine.connect() as connection:
            return frozenset(connection.execute(select(withheld.c.image_id)).scalars())

    def take_out(self, ids: Collection[ImageId], *, by: str, why: str) -> list[ImageId]:
        """Takes pictures out of every chunk in one transaction; returns those that were not out before.

        Args:
            ids: of pictures; at most 500.
            by: who says so; not empty.
            why: the reason; not empty.

        Raises:
            UnknownImage: the home shows no such picture; nothing changed.
            BadOption: too many, nobody or no reason is named, or an update is learning from one of their chunks.
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

    def put_back(self, ids: Collection[ImageId]) -> list[ImageId]:
        """Puts pictures back into the chunks they were taken out of, in one transaction; returns them.

        Raises:
            UnknownImage: one of them is not out; nothing changed.
            BadOption: too many, or an update is learning from one of their chunks.
        """
        _require_few(ids)
        wanted = list(dict.fromkeys(ids))
        with writing(self._engine) as connection:
            out = withheld_among(connection, wanted)
            for image_id in wanted:
                if image_id not in out:
                    raise UnknownImage(f"Picture {image_id[:24]} is not one that somebody took out.")
                _put_back(connection, image_id)
        return wanted


def withheld_among(connection: Connection, ids: Iterable[ImageId]) -> set[ImageId]:
    """Returns which of these pictures a person has taken out."""
    wanted = set(ids)
    return wanted & set(connection.execute(select(withheld.c.image_id)).scalars())


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
    of_chunks = select(chunks.c.seq, chunks.c.id).join(chunk_images, chunk_images.c.chunk == chunks.c.seq)
    numbers = dict(tuple(row) for row in connection.execute(of_chunks.where(chunk_images.c.image == seq)))
    _require_no_teaching(connection, numbers.values())
    own = select(captions.c.seq).where(captions.c.image == seq)
    said = select(chunk_captions.c.chunk, chunk_captions.c.caption).where(chunk_captions.c.caption.in_(own))
    links: dict[str, Any] = {
        "chunks": sorted(numbers),
        "captions": [list(row) for row in connection.execute(said)],
    }
    links["fewer"] = _fewer(connection, seq)
    values = {"image_id": image_id, "since": now(), "by": by, "why": why, "links": links}
    connection.execute(insert(withheld).values(**values))
    connection.execute(delete(chunk_images).where(chunk_images.c.image == seq))
    connection.execute(delete(chunk_captions).where(chunk_captions.c.caption.in_(own)))
    _settle(connection, seq)


def _put_back(connection: Connection, image_id: ImageId) -> None:
    links = connection.execute(select(withheld.c.links).where(withheld.c.image_id == image_id)).scalar_one()
    seq = int(connection.execute(select(images.c.seq).where(images.c.id == image_id)).scalar_one())
    of_chunks = select(chunks.c.id).where(chunks.c.seq.in_(links["chunks"]))
    _require_no_teaching(connection, connection.execute(of_chunks).scalars())
    pictures = [{"chunk": chunk, "image": seq} for chunk in links["chunks"]]
    texts = [{"chunk": chunk, "caption": caption} for chunk, caption in links["captions"]]
    for table, rows in ((chunk_images, pictures), (chunk_captions, texts)):
        if rows:
            connection.execute(upsert(table).on_conflict_do_nothing(), rows)
    connection.execute(delete(withheld).where(withheld.c.image_id == image_id))
    chunk, pictures_more, pairs_more = links["fewer"]
    _count(connection, chunk, pictures_more, pairs_more)
    _settle(connection, seq)


def _fewer(connection: Connection, seq: int) -> list[int]:
    """Takes a picture off what the chunk that brought it first counts as new; returns chunk, pictures and pairs."""
    of_image = select(chunks.c.seq, chunks.c.new_images, chunks.c.new_pairs).join(
        images, images.c.chunk == chunks.c.seq
    )
    chunk, pictures, pairs = connection.execute(of_image.where(images.c.seq == seq)).one()
    counted = select(func.count()).where(captions.c.image == seq, ~captions.c.withdrawn)
    own = connection.execute(counted).scalar_one()
    _count(connection, chunk, -min(pictures, 1), -min(pairs, own))
    return [chunk, min(pictures, 1), min(pairs, own)]


def _count(connection: Connection, chunk: int, pictures: int, pairs: int) -> None:
    more = {"new_images": chunks.c.new_images + pictures, "new_pairs": chunks.c.new_pairs + pairs}
    connection.execute(update(chunks).where(chunks.c.seq == chunk).values(**more))


def _settle(connection: Connection, seq: int) -> None:
    settle_images(connection, [seq])
    settle_captions(connection, select(captions.c.seq).where(captions.c.image == seq))


def _require_no_teaching(connection: Connection, chunk_ids: Iterable[str]) -> None:
    for chunk_id in chunk_ids:
        job = teaching_job(connection, chunk_id)
        if job is not None:
            raise BadOption(
                f"Job {job} is learning from chunk {chunk_id}, which has this picture. Try again when it has ended."
            )
