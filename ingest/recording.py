"""How a chunk's rows get into the catalog's tables, and its record out of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from ingest.jobs import now
from ingest.pair import ImageId
from ingest.records import ChunkRecord, NewChunk
from ingest.schema import captions, chunk_captions, chunk_images, chunks, images

T = TypeVar("T")

_GROUP = 10_000  # values per IN (...) list; SQLite's limit is 32,766


def grouped(values: Iterable[T]) -> Iterator[list[T]]:
    """Yields the values in lists short enough for one statement."""
    ordered = list(values)
    for start in range(0, len(ordered), _GROUP):
        yield ordered[start : start + _GROUP]


def insert_chunk(connection: Connection, chunk: NewChunk) -> int:
    """Inserts a chunk's own row, counts and report still empty, and returns its row number."""
    values = {"id": chunk.id, "name": chunk.name, "created": now(), "in_gallery": chunk.in_gallery}
    statement = insert(chunks).values(new_pairs=0, new_images=0, report={}, **values).returning(chunks.c.seq)
    return int(connection.execute(statement).scalar_one())


def record_images(connection: Connection, chunk: NewChunk, seq: int) -> tuple[int, dict[ImageId, int]]:
    """Inserts the chunk's unknown images; returns how many are new, and every image's row number."""
    before = connection.execute(select(func.count()).select_from(images)).scalar_one()
    rows = [
        {
            "id": image.id,
            "domain": image.domain,
            "split": image.split.value,
            "width": image.width,
            "height": image.height,
            "format": image.format,
            "in_gallery": chunk.in_gallery,
            "chunk": seq,
        }
        for image in chunk.images
    ]
    if rows:
        connection.execute(upsert(images).on_conflict_do_nothing(), rows)
    after = connection.execute(select(func.count()).select_from(images)).scalar_one()
    seqs: dict[ImageId, int] = {}
    for group in grouped(image.id for image in chunk.images):
        query = select(images.c.id, images.c.seq).where(images.c.id.in_(group))
        seqs.update({image_id: number for image_id, number in connection.execute(query)})
        if chunk.in_gallery:
            connection.execute(update(images).where(images.c.id.in_(group)).values(in_gallery=True))
    if seqs:
        links = [{"chunk": seq, "image": number} for number in seqs.values()]
        connection.execute(upsert(chunk_images).on_conflict_do_nothing(), links)
    return after - before, seqs


def record_captions(connection: Connection, chunk: NewChunk, seq: int, image_seqs: dict[ImageId, int]) -> int:
    """Inserts the chunk's unknown captions and returns how many are new."""
    if not chunk.captions:
        return 0
    before = connection.execute(select(func.count()).select_from(captions)).scalar_one()
    rows = [
        {"image": image_seqs[image_id], "language": language, "text": text}
        for image_id, language, text in chunk.captions
    ]
    connection.execute(upsert(captions).on_conflict_do_nothing(), rows)
    after = connection.execute(select(func.count()).select_from(captions)).scalar_one()
    wanted = {(row["image"], row["language"], row["text"]) for row in rows}
    links = []
    for group in grouped({row["image"] for row in rows}):
        query = select(captions.c.seq, captions.c.image, captions.c.language, captions.c.text)
        for number, image, language, text in connection.execute(query.where(captions.c.image.in_(group))):
            if (image, language, text) in wanted:
                links.append({"chunk": seq, "caption": number})
    connection.execute(upsert(chunk_captions).on_conflict_do_nothing(), links)
    return after - before


def chunk_record(connection: Connection, values: dict[str, Any]) -> ChunkRecord:
    """Builds a chunk's record from its row and counts."""
    seq = values["seq"]
    by_language = (
        select(captions.c.language, func.count())
        .join(chunk_captions, chunk_captions.c.caption == captions.c.seq)
        .where(chunk_captions.c.chunk == seq)
        .group_by(captions.c.language)
    )
    by_domain = (
        select(images.c.domain, func.count())
        .join(chunk_images, chunk_images.c.image == images.c.seq)
        .where(chunk_images.c.chunk == seq)
        .group_by(images.c.domain)
    )
    languages = {language: count for language, count in connection.execute(by_language)}
    domains = {domain: count for domain, count in connection.execute(by_domain)}
    return ChunkRecord(
        id=values["id"],
        name=values["name"],
        created=values["created"],
        in_gallery=values["in_gallery"],
        pairs=sum(languages.values()),
        images=sum(domains.values()),
        new_pairs=values["new_pairs"],
        new_images=values["new_images"],
        languages=dict(sorted(languages.items())),
        domains=dict(sorted(domains.items())),
        report=values["report"],
    )
