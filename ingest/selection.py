"""Conditions and queries that select rows of the catalog by chunk, language, domain, split, date and caption."""

from collections.abc import Collection
from datetime import date
from typing import Any, TypedDict

from sqlalchemy import ColumnElement, Select, and_, false, select

from ingest.caption_search import images_captioned
from ingest.pair import Split
from ingest.schema import captions, chunk_captions, chunk_images, chunks, images


class Conditions(TypedDict, total=False):
    """What pictures can be asked for; what is left out may be anything."""

    languages: Collection[str]  # of captions
    domains: Collection[str]
    chunks: Collection[str]  # ids
    since: date  # the first day (UTC) on which they were taken in
    until: date  # the last one
    caption: str  # found as by `Catalog.find_captions`
    where: str  # a filter (`ingest.where`)


JOINED = captions.join(images, captions.c.image == images.c.seq)


def pairs_counted(chunk_ids: Collection[str] | None) -> ColumnElement[bool]:
    """Returns the condition that one of these chunks has a caption; None: any chunk that is not withdrawn.

    Ids that no chunk has match nothing. A withdrawn chunk that is named is asked for, and counts.
    """
    if chunk_ids is None:
        return ~captions.c.withdrawn
    of_chunks = select(chunk_captions.c.caption).join(chunks, chunk_captions.c.chunk == chunks.c.seq)
    return captions.c.seq.in_(of_chunks.where(chunks.c.id.in_(list(chunk_ids))))


def images_counted(chunk_ids: Collection[str] | None) -> ColumnElement[bool]:
    """Returns the condition that one of these chunks has an image, as `pairs_counted` has it for captions."""
    if chunk_ids is None:
        return ~images.c.withdrawn
    of_chunks = select(chunk_images.c.image).join(chunks, chunk_images.c.chunk == chunks.c.seq)
    return images.c.seq.in_(of_chunks.where(chunks.c.id.in_(list(chunk_ids))))


def held_out(domain: str) -> ColumnElement[bool]:
    """Returns the condition that an image is a held-out one of a domain."""
    return and_(images.c.domain == domain, images.c.split == Split.TEST.value)


def images_where(given: Conditions) -> Select[Any]:
    """Returns the query for the ids of images that all conditions hold for.

    Raises:
        BadOption: the filter cannot be read.
    """
    chunk_ids = given.get("chunks")
    query = select(images.c.id).where(images_counted(chunk_ids))
    if "languages" in given:
        captioned = select(captions.c.image).where(captions.c.language.in_(list(given["languages"])))
        query = query.where(images.c.seq.in_(captioned.where(pairs_counted(chunk_ids))))
    if "domains" in given:
        query = query.where(images.c.domain.in_(list(given["domains"])))
    if "since" in given or "until" in given:
        query = query.where(images.c.chunk.in_(_chunks_of(given.get("since"), given.get("until"))))
    if "where" in given:
        from ingest.where import images_that  # its conditions need the tables of all parts

        query = query.where(images_that(given["where"]))
    if "caption" in given:
        captioned_so = images_captioned(given["caption"])
        query = query.where(false() if captioned_so is None else images.c.seq.in_(captioned_so))
    return query


def _chunks_of(since: date | None, until: date | None) -> Select[Any]:
    """Returns the query for the numbers of chunks that came on these days; times are kept as ISO 8601 in UTC."""
    query = select(chunks.c.seq)
    if since is not None:
        query = query.where(chunks.c.created >= since.isoformat())
    if until is not None:
        # A time of a day begins with it, and "~" sorts behind all that may follow.
        query = query.where(chunks.c.created <= f"{until.isoformat()}~")
    return query


def pairs_where(
    *, language: str | None, domain: str | None, split: Split | None, chunk_ids: Collection[str] | None
) -> Select[Any]:
    """Returns the query for `(image id, text, language, domain, split)` of pairs, in the order they came."""
    query = (
        select(images.c.id, captions.c.text, captions.c.language, images.c.domain, images.c.split)
        .select_from(JOINED)
        .where(pairs_counted(chunk_ids))
        .order_by(captions.c.seq)
    )
    if language is not None:
        query = query.where(captions.c.language == language)
    if domain is not None:
        query = query.where(images.c.domain == domain)
    if split is not None:
        query = query.where(images.c.split == split.value)
    return query
