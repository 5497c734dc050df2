"""How a chunk's rows get into the catalog's tables, and its record out of them; see `Catalog` for what is counted."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, Table, case, delete, func, insert, select, update

from ingest.aside import TAKEN_OUT, decide, put_aside, put_in_place, taken_out
from ingest.dialect import at_least_none, upsert
from ingest.engines import index_words, writing
from ingest.errors import BadOption, NoValidPair, UnknownChunk
from ingest.grouping import cluster_of
from ingest.jobs import now, teaching_job
from ingest.pair import ImageId, Split
from ingest.records import ChunkRecord, NewAside, NewChunk, Recorded
from ingest.report import withheld_note
from ingest.schema import captions, chunk_captions, chunk_images, chunks, images
from ingest.sentence import phrase
from ingest.sources import record_sources
from ingest.standing import WITHDRAWN, set_standing, settle_captions, settle_withdrawn
from ingest.tables import TableQueries, grouped
from ingest.withheld import brought_again, withheld_among


class ChunkRecording(TableQueries):
    """The part of `Catalog` that writes chunks, each in one transaction."""

    def record_chunk(
        self, chunk: NewChunk, report_of: Callable[[Recorded], dict[str, Any]] | None = None
    ) -> Recorded:
        """Records a chunk's images and captions; its blobs must be stored already.

        An image that is known keeps its domain and split, whatever `chunk` says, unless only withdrawn chunks have it.
        A chunk that is known keeps its first report; one that was withdrawn becomes new again and gets this one. What a
        person took out of a known chunk stays out of it. `report_of` makes the report to keep from what is new; it is
        called inside the transaction.

        Raises:
            CatalogFull: the disk has no room; nothing was recorded.
        """
        with writing(self._engine) as connection:
            return _record_chunk(connection, chunk, report_of)

    def brings_new(self, chunk: NewChunk) -> bool:
        """Returns whether a part of a known chunk has a picture or caption that does not count and nobody took out."""
        with self._engine.connect() as connection:
            seq = connection.execute(select(chunks.c.seq).where(chunks.c.id == chunk.id)).scalar_one()
            out = withheld_among(connection, [image.id for image in chunk.images])
            wanted = {image.id for image in chunk.images} - out
            said = {one for one in chunk.captions if one[0] in wanted} - taken_out(connection, seq)
            for group in grouped(sorted(wanted)):
                query = select(images.c.id).where(images.c.id.in_(group), ~images.c.withdrawn)
                wanted -= set(connection.execute(query).scalars())
                pairs = select(images.c.id, captions.c.language, captions.c.text).join(
                    images, captions.c.image == images.c.seq
                )
                query = pairs.where(images.c.id.in_(group), ~captions.c.withdrawn)
                said -= {tuple(row) for row in connection.execute(query)}
            return bool(wanted or said)

    def trained_but_withdrawn(self, learned: Collection[str]) -> frozenset[ImageId]:
        """Returns the withdrawn pictures that are in training and belong to one of these chunks."""
        query = (
            select(images.c.id)
            .join(chunk_images, chunk_images.c.image == images.c.seq)
            .join(chunks, chunk_images.c.chunk == chunks.c.seq)
            .where(images.c.withdrawn, images.c.split == Split.TRAIN.value, chunks.c.id.in_(list(learned)))
        )
        return frozenset(self._column(query))

    def accept_aside(self, chunk: NewChunk, ids: Collection[int], *, by: str, why: str) -> Recorded:
        """Adds held pairs that a person accepts to the chunk of their upload, and keeps who did.

        `chunk` has the id of the known chunk, with the images and captions to add; its blobs must be stored already.

        Raises:
            BadOption: the chunk was withdrawn meanwhile.
        """
        with writing(self._engine) as connection:
            query = select(chunks.c.standing).where(chunks.c.id == chunk.id)
            if connection.execute(query).scalar_one() == WITHDRAWN:
                raise BadOption(f"Chunk {chunk.id} is withdrawn; take it in again first.")
            _require_no_teaching(connection, chunk.id)
            recorded = _record_chunk(connection, chunk, None, accepted=ids)
            if recorded.withheld:
                raise BadOption(
                    phrase("A picture of these pairs was taken out by a person; put it back first.")
                )
            counted = {
                "new_pairs": chunks.c.new_pairs + recorded.new_pairs,
                "new_images": chunks.c.new_images + recorded.new_images,
            }
            connection.execute(update(chunks).where(chunks.c.id == chunk.id).values(**counted))
            decide(connection, ids, "accepted", by=by, why=why)
            return recorded

    def take_out(self, chunk: str, numbers: Collection[int], *, by: str, why: str) -> list[int]:
        """Puts pairs of a chunk aside as left out; returns their numbers there. Pictures stay.

        `numbers` are those of `Catalog.pair_numbers`.

        Raises:
            UnknownChunk: none or several match.
            BadOption: the chunk has no such pair, or would have none left.
        """
        chunk_id = self._chunk_id(chunk)
        with writing(self._engine) as connection:
            seq, standing = connection.execute(
                select(chunks.c.seq, chunks.c.standing).where(chunks.c.id == chunk_id)
            ).one()
            if standing == WITHDRAWN:
                raise BadOption(f"Chunk {chunk_id} is withdrawn: nothing of it counts.")
            _require_no_teaching(connection, chunk_id)
            found = _named_pairs(connection, chunk_id, seq, numbers)
            pairs = [
                NewAside("", "held", "taken_out", TAKEN_OUT, row.id, row.language, row.text, row.domain)
                for row in found
            ]
            ids = put_in_place(connection, seq, pairs)
            decide(connection, ids, "left_out", by=by, why=why, is_final=True)
            gone = [row.seq for row in found]
            connection.execute(
                delete(chunk_captions).where(
                    chunk_captions.c.chunk == seq, chunk_captions.c.caption.in_(gone)
                )
            )
            _, pairs_before = _counts(connection)
            settle_captions(connection, gone)
            _, pairs_after = _counts(connection)
            fewer = chunks.c.new_pairs + pairs_after - pairs_before
            connection.execute(
                update(chunks).where(chunks.c.seq == seq).values(new_pairs=at_least_none(fewer))
            )
            return ids

    def _chunk_id(self, said: str) -> str:
        """Returns the id of the one chunk that has this id or name, or an id that begins so."""
        with self._engine.connect() as connection:
            known = connection.execute(select(chunks.c.id, chunks.c.name).order_by(chunks.c.seq)).all()
        asked = said.strip()
        matching: list[str] = [one.id for one in known if one.id == asked.lower()] or [
            one.id for one in known if asked and (one.name == asked or one.id.startswith(asked.lower()))
        ]
        if len(matching) == 1:
            return matching[0]
        shown = ", ".join(f"{one.id} ({one.name})" for one in known[-10:]) or "none yet"
        what = "Several chunks have the name or beginning" if matching else "There is no chunk"
        raise UnknownChunk(f"{what} {said[:40]!r}. Known chunks: {shown}.")


def _record_chunk(
    connection: Connection,
    chunk: NewChunk,
    report_of: Callable[[Recorded], dict[str, Any]] | None,
    accepted: Collection[int] = (),
) -> Recorded:
    chunk, out_already = _without_withheld(connection, chunk)
    found = connection.execute(select(chunks.c.seq, chunks.c.standing).where(chunks.c.id == chunk.id))
    present = found.one_or_none()
    returned = present is not None and present.standing == WITHDRAWN
    images_before, pairs_before = _counts(connection)
    seq = int(present.seq) if present is not None else _insert_chunk(connection, chunk)
    brought_again(connection, out_already, seq)
    seqs = _record_images(connection, chunk, seq)
    out = taken_out(connection, seq, but=accepted) if present is not None else set()
    _record_captions(connection, chunk, seq, seqs, out)
    if returned:  # after its images: while they are withdrawn they are settled anew
        set_standing(connection, chunk.id, "new", by="intake", why="taken in again")
    else:
        settle_withdrawn(connection, chunk.id)
    if chunk.held_by and (present is None or returned):
        set_standing(connection, chunk.id, "held", by=chunk.held_by, why=chunk.held_why)
    _show(connection, chunk)
    put_aside(connection, seq, chunk.aside)
    record_sources(connection, chunk.sources)
    images_after, pairs_after = _counts(connection)
    recorded = Recorded(
        images_after - images_before,
        pairs_after - pairs_before,
        known_chunk=present is not None and not returned and not chunk.goes_on,
        returned=returned,
        withheld=len(out_already),
    )
    if chunk.goes_on:
        more: dict[str, Any] = {
            "new_pairs": chunks.c.new_pairs + recorded.new_pairs,
            "new_images": chunks.c.new_images + recorded.new_images,
            "report": report_of(recorded) if report_of is not None else {},
        }
        connection.execute(update(chunks).where(chunks.c.seq == seq).values(**more))
    elif not recorded.known_chunk:
        values: dict[str, Any] = {"new_pairs": recorded.new_pairs, "new_images": recorded.new_images}
        values |= {"name": chunk.name, "in_gallery": chunk.in_gallery}
        values |= {"report": report_of(recorded) if report_of is not None else {}}
        connection.execute(update(chunks).where(chunks.c.seq == seq).values(**values))
    return recorded


def _without_withheld(connection: Connection, chunk: NewChunk) -> tuple[NewChunk, set[ImageId]]:
    """Returns a chunk without the pictures that a person took out, and which these are."""
    out = withheld_among(connection, [image.id for image in chunk.images])
    if not out:
        return chunk, out
    kept = [image for image in chunk.images if image.id not in out]
    if not kept:
        note = withheld_note(len(out))
        raise NoValidPair(
            "withheld", phrase("Nothing else is in this upload, and nothing was taken in: {note}.", note=note)
        )
    said = [caption for caption in chunk.captions if caption[0] not in out]
    seen = [source for source in chunk.sources if source.image_id not in out]
    return replace(chunk, images=kept, captions=said, sources=seen), out


def _named_pairs(connection: Connection, chunk_id: str, seq: int, numbers: Collection[int]) -> Sequence[Any]:
    """Returns number, language, text, picture and domain of some of a chunk's pairs, of which others must be left."""
    of_chunk = select(chunk_captions.c.caption).where(chunk_captions.c.chunk == seq)
    query = (
        select(captions.c.seq, captions.c.language, captions.c.text, images.c.id, images.c.domain)
        .join(images, captions.c.image == images.c.seq)
        .where(captions.c.seq.in_(list(numbers)), captions.c.seq.in_(of_chunk))
    )
    found = connection.execute(query.order_by(captions.c.seq)).all()
    strange = sorted(set(numbers) - {row.seq for row in found})
    if strange:
        raise BadOption(
            phrase(
                "Chunk {chunk} has no pair of number {pairs}.",
                chunk=chunk_id,
                pairs=", ".join(map(str, strange[:10])),
            )
        )
    if len(found) == connection.execute(select(func.count()).select_from(of_chunk.subquery())).scalar_one():
        raise BadOption(
            phrase("No pair would be left in chunk {chunk}; withdraw it instead.", chunk=chunk_id)
        )
    return found


def _require_no_teaching(connection: Connection, chunk_id: str) -> None:
    """Refuses to change the pairs of a chunk that an update is to learn or is learning."""
    job = teaching_job(connection, chunk_id)
    if job is not None:
        raise BadOption(
            phrase(
                "Job {job} is learning from chunk {chunk}. Decide when it has ended.", job=job, chunk=chunk_id
            )
        )


def _counts(connection: Connection) -> tuple[int, int]:
    """Returns how many images and captions count, withdrawn ones left out."""
    pictures, texts = (
        connection.execute(select(func.count()).select_from(table).where(~table.c.withdrawn)).scalar_one()
        for table in (images, captions)
    )
    return pictures, texts


def _insert_chunk(connection: Connection, chunk: NewChunk) -> int:
    values = {"id": chunk.id, "name": chunk.name, "created": now(), "in_gallery": chunk.in_gallery}
    statement = insert(chunks).values(new_pairs=0, new_images=0, report={}, **values).returning(chunks.c.seq)
    return int(connection.execute(statement).scalar_one())


def _record_images(connection: Connection, chunk: NewChunk, seq: int) -> dict[ImageId, int]:
    """Inserts the chunk's unknown images and settles withdrawn ones anew; returns every image's row number."""
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
            "group": image.group,
            "cluster": image.cluster or (cluster_of(image.group) if image.group else None),
            "sketch": image.sketch,
            "taken": image.taken,
            "camera": image.camera,
            "latitude": image.latitude,
            "longitude": image.longitude,
        }
        for image in chunk.images
    ]
    if rows:
        statement = upsert(images)
        brought, old = statement.excluded, images.c
        settled = {name: _unless_withdrawn(name, brought) for name in ("domain", "split", "chunk")}
        # What was not known of a picture is added; what was stated before stays, unless it was withdrawn.
        for name in ("group", "cluster"):
            added = func.coalesce(old[name], brought[name])
            settled[name] = case((old.withdrawn, brought[name]), else_=added)
        for name in ("taken", "camera"):
            settled[name] = case((brought[name] != "", brought[name]), else_=old[name])
        for name in ("latitude", "longitude"):
            settled[name] = func.coalesce(brought[name], old[name])
        settled["sketch"] = func.coalesce(old.sketch, brought.sketch)
        connection.execute(statement.on_conflict_do_update(index_elements=["id"], set_=settled), rows)
    seqs: dict[ImageId, int] = {}
    for group in grouped(image.id for image in chunk.images):
        query = select(images.c.id, images.c.seq).where(images.c.id.in_(group))
        seqs.update({image_id: number for image_id, number in connection.execute(query)})
    if seqs:
        links = [{"chunk": seq, "image": number} for number in seqs.values()]
        connection.execute(upsert(chunk_images).on_conflict_do_nothing(), links)
    return seqs


def _unless_withdrawn(name: str, brought: Any) -> Any:
    return case((images.c.withdrawn, brought[name]), else_=images.c[name])


def _show(connection: Connection, chunk: NewChunk) -> None:
    """Puts the chunk's images into the gallery when it is meant for it."""
    if chunk.in_gallery:
        for group in grouped(image.id for image in chunk.images):
            connection.execute(update(images).where(images.c.id.in_(group)).values(in_gallery=True))


def _record_captions(
    connection: Connection,
    chunk: NewChunk,
    seq: int,
    image_seqs: dict[ImageId, int],
    out: Collection[tuple[ImageId, str, str]],
) -> None:
    rows = [
        {"image": image_seqs[image_id], "language": language, "text": text}
        for image_id, language, text in chunk.captions
        if (image_id, language, text) not in out
    ]
    if not rows:
        return
    connection.execute(upsert(captions).on_conflict_do_nothing(), rows)
    index_words(connection)
    wanted = {(row["image"], row["language"], row["text"]) for row in rows}
    links = []
    for group in grouped({row["image"] for row in rows}):
        query = select(captions.c.seq, captions.c.image, captions.c.language, captions.c.text)
        for number, image, language, text in connection.execute(query.where(captions.c.image.in_(group))):
            if (image, language, text) in wanted:
                links.append({"chunk": seq, "caption": number})
    connection.execute(upsert(chunk_captions).on_conflict_do_nothing(), links)


def chunk_records(connection: Connection, query: Select[Any]) -> list[ChunkRecord]:
    """Returns the records of the chunks whose rows a query finds, with counts of what they hold.

    All are counted by two statements, however many chunks there are.
    """
    found = [row._asdict() for row in connection.execute(query)]
    languages = _counted(
        connection, found, chunk_captions.c.chunk, captions.c.language, captions, chunk_captions
    )
    domains = _counted(connection, found, chunk_images.c.chunk, images.c.domain, images, chunk_images)
    return [
        ChunkRecord(
            **{"report": {}, **stated},
            pairs=sum(languages[seq].values()),
            images=sum(domains[seq].values()),
            languages=languages[seq],
            domains=domains[seq],
        )
        for stated in found
        for seq in [stated.pop("seq")]
    ]


def _counted(
    connection: Connection,
    found: Sequence[dict[str, Any]],
    chunk: ColumnElement[int],
    name: ColumnElement[str],
    things: Table,
    links: Table,
) -> dict[int, dict[str, int]]:
    """Returns by a chunk's number how many of its linked things have each name, in the order of the names."""
    counted: dict[int, dict[str, int]] = {row["seq"]: {} for row in found}
    query = select(chunk, name, func.count()).select_from(things.join(links)).group_by(chunk, name)
    if len(found) == 1:
        query = query.where(chunk == found[0]["seq"])
    for seq, named, count in sorted(connection.execute(query).all()):
        if seq in counted:
            counted[seq][str(named)] = int(count)
    return counted
