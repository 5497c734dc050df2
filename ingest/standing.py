"""What a chunk counts for, and what follows for its pictures and captions when it is withdrawn."""

from collections.abc import Sequence
from typing import Any, Literal, get_args

from sqlalchemy import Connection, Select, and_, exists, select, update

from ingest.errors import BadOption
from ingest.jobs import now
from ingest.schema import captions, chunk_captions, chunk_images, chunks, images

Standing = Literal["new", "held", "accepted", "rejected", "withdrawn"]
"""new: nothing speaks against it; held: it waits for a person's word; accepted: a person gave it;
rejected: the gate rejected its update; withdrawn: nothing of it is trained on, measured by or searched."""

STANDINGS: tuple[str, ...] = get_args(Standing)
WITHDRAWN = "withdrawn"


def set_standing(
    connection: Connection, chunk_id: str, standing: str, *, by: str, why: str, measures: bool | None = None
) -> None:
    """Changes a chunk's standing, and what its pictures and captions are good for, in one transaction.

    See `Catalog.set_standing`; `chunk_id` is the whole id.

    Raises:
        BadOption: a value cannot be used.
    """
    if standing not in STANDINGS:
        raise BadOption(f"{standing[:40]!r} is no standing of a chunk; use one of {', '.join(STANDINGS)}.")
    if not by.strip():
        raise BadOption(f"A chunk becomes {standing} by somebody's word: say whose.")
    if not why.strip() and standing != "new":
        raise BadOption(f"A chunk becomes {standing} for a reason: say which.")
    if standing == WITHDRAWN and measures:
        raise BadOption("A withdrawn chunk cannot be measuring material; accept it instead.")
    values: dict[str, Any] = {
        "standing": standing,
        "standing_by": by.strip(),
        "standing_why": why.strip(),
        "standing_since": now(),
    }
    if standing == WITHDRAWN:
        values["measures"] = False
    elif measures is not None:
        values["measures"] = measures
    connection.execute(update(chunks).where(chunks.c.id == chunk_id).values(**values))
    settle_withdrawn(connection, chunk_id)


def settle_withdrawn(connection: Connection, chunk_id: str) -> None:
    """Marks the pictures and captions of a chunk that no chunk but withdrawn ones has, and unmarks the others.

    A picture is in the gallery while a chunk that is meant for it and not withdrawn has it.
    """
    seq = select(chunks.c.seq).where(chunks.c.id == chunk_id).scalar_subquery()
    settle_captions(connection, select(chunk_captions.c.caption).where(chunk_captions.c.chunk == seq))
    settle_images(connection, select(chunk_images.c.image).where(chunk_images.c.chunk == seq))


def settle_images(connection: Connection, numbers: Sequence[int] | Select[Any]) -> None:
    """Marks pictures that no chunk but withdrawn ones has, and unmarks the others; those leave or join the gallery.

    A picture whose places are all gone stays out of the gallery.
    """
    holder = exists().where(
        chunk_images.c.image == images.c.seq,
        chunk_images.c.chunk == chunks.c.seq,
        chunks.c.standing != WITHDRAWN,
    )
    statement = update(images).where(images.c.seq.in_(numbers))
    shown = and_(~images.c.gone, holder.where(chunks.c.in_gallery))
    connection.execute(statement.values(withdrawn=~holder, in_gallery=shown))


def settle_captions(connection: Connection, numbers: Sequence[int] | Select[Any]) -> None:
    """Marks captions that no chunk but withdrawn ones has, and unmarks the others."""
    counted = exists().where(
        chunk_captions.c.caption == captions.c.seq,
        chunk_captions.c.chunk == chunks.c.seq,
        chunks.c.standing != WITHDRAWN,
    )
    connection.execute(update(captions).where(captions.c.seq.in_(numbers)).values(withdrawn=~counted))
