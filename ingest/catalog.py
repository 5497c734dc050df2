"""The catalog: images, captions, chunks, jobs and pins in one SQLite file.

Every call is one short transaction of its own, so threads and processes may share a catalog. A chunk's rows
are written in a single transaction after its blobs are stored: a crash in between leaves blobs without rows,
which are harmless and are reused when the chunk comes again.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Engine,
    Select,
    and_,
    column,
    distinct,
    func,
    literal_column,
    select,
    table,
    update,
)
from sqlalchemy.dialects.sqlite import insert as upsert

from ingest.errors import UnknownChunk
from ingest.jobs import JobTable
from ingest.pair import Caption, ImageId, Pair, SliceKey, Split
from ingest.recording import chunk_record, grouped, insert_chunk, record_captions, record_images
from ingest.records import ChunkRecord, ImageRecord, JobRecord, NewChunk, Pin, Recorded
from ingest.schema import captions, chunk_captions, chunks, images, open_engine, pins, writing

_JOINED = captions.join(images, captions.c.image == images.c.seq)
# Scripts written without spaces between words: the full-text index would see a sentence as one word.
_UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "BOPOMOFO",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
    "YI",
)


class Catalog:
    """An open catalog; get one with `Catalog.open`."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self.path = path
        self._engine = engine
        self._jobs = JobTable(engine)

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> Catalog:
        """Opens the catalog file, making it unless `read_only`.

        Raises:
            CatalogMissing: `read_only` and there is none.
            CatalogTooNew: written by a newer release.
            CatalogError: the file is no catalog.
        """
        return cls(open_engine(path, read_only=read_only), path)

    def close(self) -> None:
        """Closes all pooled connections."""
        self._engine.dispose()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Images

    def gallery_ids(self) -> list[ImageId]:
        """Returns the ids of all gallery images in the order they came."""
        return self._column(select(images.c.id).where(images.c.in_gallery).order_by(images.c.seq))

    def image(self, image_id: ImageId) -> ImageRecord | None:
        """Returns what is known of an image, or None."""
        return self.images([image_id]).get(image_id)

    def images(self, ids: Iterable[ImageId]) -> dict[ImageId, ImageRecord]:
        """Returns the records of those ids that are known."""
        query = select(
            images.c.id,
            images.c.domain,
            images.c.split,
            images.c.width,
            images.c.height,
            images.c.format,
            chunks.c.id,
            images.c.in_gallery,
        ).join(chunks, images.c.chunk == chunks.c.seq)
        found: dict[ImageId, ImageRecord] = {}
        with self._engine.connect() as connection:
            for group in grouped(ids):
                for row in connection.execute(query.where(images.c.id.in_(group))):
                    image_id, domain, split, *rest = row
                    found[image_id] = ImageRecord(image_id, domain, Split(split), *rest)
        return found

    def ids_where(
        self, *, languages: Collection[str] | None = None, domains: Collection[str] | None = None
    ) -> set[ImageId]:
        """Returns the images captioned in one of `languages` and of one of `domains`; None means any."""
        query = select(images.c.id)
        if languages is not None:
            captioned = select(captions.c.image).where(captions.c.language.in_(list(languages)))
            query = query.where(images.c.seq.in_(captioned))
        if domains is not None:
            query = query.where(images.c.domain.in_(list(domains)))
        return set(self._column(query))

    def test_images(self, domain: str) -> list[ImageId]:
        """Returns all held-out images of a domain in the order they came: what recall is measured on."""
        held_out = and_(images.c.domain == domain, images.c.split == Split.TEST.value)
        return self._column(select(images.c.id).where(held_out).order_by(images.c.seq))

    # Captions and pairs

    def captions_of(self, image_id: ImageId) -> list[Caption]:
        """Returns all captions of an image, by language and then in the order they came."""
        query = (
            select(images.c.id, captions.c.language, captions.c.text)
            .select_from(_JOINED)
            .where(images.c.id == image_id)
            .order_by(captions.c.language, captions.c.seq)
        )
        return [Caption(*row) for row in self._rows(query)]

    def find_captions(self, text: str, *, limit: int = 50) -> list[Caption]:
        """Returns captions that contain all words of `text`; the last word may be a beginning.

        Any text is safe: nothing in it is query syntax. Scripts without spaces are matched as substrings.
        """
        text = (
            unicodedata.normalize("NFC", text.replace("\0", " ")).encode("utf-8", "ignore").decode().strip()
        )
        query = select(images.c.id, captions.c.language, captions.c.text).select_from(_JOINED).limit(limit)
        if not text:
            return []
        if _needs_substring(text):
            query = query.where(captions.c.text.contains(text, autoescape=True)).order_by(captions.c.seq)
        else:
            words = " ".join('"' + word.replace('"', '""') + '"' for word in text.split())
            matching: ColumnElement[Any] = literal_column("captions_text")
            query = (
                query.join(_full_text(), literal_column("captions_text.rowid") == captions.c.seq)
                .where(matching.op("MATCH")(words + "*"))
                .order_by(literal_column("captions_text.rank"), captions.c.seq)
            )
        return [Caption(*row) for row in self._rows(query)]

    def pairs(
        self,
        *,
        chunk: str | None = None,
        language: str | None = None,
        domain: str | None = None,
        split: Split | None = None,
    ) -> list[Pair]:
        """Returns the pairs that match all given conditions, in the order they came.

        Raises:
            UnknownChunk: `chunk` is neither an id nor a unique prefix.
        """
        query = (
            select(images.c.id, captions.c.text, captions.c.language, images.c.domain, images.c.split)
            .select_from(_JOINED)
            .order_by(captions.c.seq)
        )
        if chunk is not None:
            query = query.join(chunk_captions, chunk_captions.c.caption == captions.c.seq).where(
                chunk_captions.c.chunk == self._chunk_seq(chunk)
            )
        if language is not None:
            query = query.where(captions.c.language == language)
        if domain is not None:
            query = query.where(images.c.domain == domain)
        if split is not None:
            query = query.where(images.c.split == split.value)
        splits = {member.value: member for member in Split}
        return [
            Pair(i, text, spoken, place, splits[part]) for i, text, spoken, place, part in self._rows(query)
        ]

    def captions_in(self, language: str, ids: Collection[ImageId]) -> dict[ImageId, list[str]]:
        """Returns the captions in one language of those ids that have any, in the order they came."""
        query = (
            select(images.c.id, captions.c.text)
            .select_from(_JOINED)
            .where(captions.c.language == language)
            .order_by(captions.c.seq)
        )
        found: dict[ImageId, list[str]] = {}
        with self._engine.connect() as connection:
            for group in grouped(ids):
                for image_id, text in connection.execute(query.where(images.c.id.in_(group))):
                    found.setdefault(image_id, []).append(text)
        return found

    def slices(self, *, minimum_images: int = 1) -> list[SliceKey]:
        """Returns every language-and-domain that has at least so many held-out captioned images, sorted."""
        query = (
            select(captions.c.language, images.c.domain)
            .select_from(_JOINED)
            .where(images.c.split == Split.TEST.value)
            .group_by(captions.c.language, images.c.domain)
            .having(func.count(distinct(captions.c.image)) >= minimum_images)
        )
        return sorted(SliceKey(*row) for row in self._rows(query))

    def languages(self) -> dict[str, int]:
        """Returns the number of pairs by language."""
        query = (
            select(captions.c.language, func.count())
            .group_by(captions.c.language)
            .order_by(captions.c.language)
        )
        return {language: count for language, count in self._rows(query)}

    def domains(self) -> dict[str, int]:
        """Returns the number of images by domain."""
        query = select(images.c.domain, func.count()).group_by(images.c.domain).order_by(images.c.domain)
        return {domain: count for domain, count in self._rows(query)}

    # Chunks

    def chunks(self) -> list[ChunkRecord]:
        """Returns all chunks in the order they came."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(chunks).order_by(chunks.c.seq)).all()
            return [chunk_record(connection, row._asdict()) for row in rows]

    def chunk(self, id_or_prefix: str) -> ChunkRecord:
        """Returns one chunk by its id or a unique beginning of it.

        Raises:
            UnknownChunk: none or several match; the sentence names the known ones.
        """
        seq = self._chunk_seq(id_or_prefix)
        with self._engine.connect() as connection:
            row = connection.execute(select(chunks).where(chunks.c.seq == seq)).one()
            return chunk_record(connection, row._asdict())

    def record_chunk(
        self, chunk: NewChunk, report_of: Callable[[Recorded], dict[str, Any]] | None = None
    ) -> Recorded:
        """Records a chunk's images and captions in one transaction; its blobs must be stored already.

        An image that is known keeps its domain and split, whatever `chunk` says. A chunk that is known keeps
        its first report.

        Args:
            chunk: what to record.
            report_of: makes the report to keep, from what is new; called inside the transaction.

        Raises:
            CatalogFull: the disk has no room; nothing was recorded.
        """
        with writing(self._engine) as connection:
            present = connection.execute(
                select(chunks.c.seq).where(chunks.c.id == chunk.id)
            ).scalar_one_or_none()
            seq = int(present) if present is not None else insert_chunk(connection, chunk)
            new_images, image_seqs = record_images(connection, chunk, seq)
            new_pairs = record_captions(connection, chunk, seq, image_seqs)
            recorded = Recorded(new_images, new_pairs, known_chunk=present is not None)
            if present is None:
                report = report_of(recorded) if report_of is not None else {}
                counts = {"new_pairs": new_pairs, "new_images": new_images}
                connection.execute(update(chunks).where(chunks.c.seq == seq).values(report=report, **counts))
        return recorded

    # Jobs and pins

    def add_job(self, kind: str, arguments: dict[str, Any] | None = None) -> JobRecord:
        """Queues a job."""
        return self._jobs.add(kind, arguments or {})

    def job(self, job_id: str) -> JobRecord:
        """Returns one job.

        Raises:
            UnknownJob: there is none with this id.
        """
        return self._jobs.get(job_id)

    def jobs(self, *, state: str | None = None, limit: int | None = None) -> list[JobRecord]:
        """Returns jobs, newest first."""
        return self._jobs.all(state=state, limit=limit)

    def update_job(self, job_id: str, *, only_from: str | None = None, **fields: Any) -> bool:
        """Changes fields of a job and returns whether it changed.

        With `only_from` the change happens only if the job is in that state now: of several workers that try
        to take a queued job, one succeeds. `started` and `finished` follow from the state.

        Raises:
            UnknownJob: there is none with this id.
            BadOption: a field or state that does not exist.
        """
        return self._jobs.update(job_id, fields, only_from=only_from)

    def set_pin(self, query: str, language: str, image_id: ImageId) -> None:
        """Pins the expected first answer of a query, replacing an earlier pin of the same query."""
        statement = upsert(pins).values(query=query, language=language, image_id=image_id)
        with writing(self._engine) as connection:
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=["query", "language"], set_={"image_id": image_id}
                )
            )

    def pins(self) -> list[Pin]:
        """Returns all pins, sorted by query."""
        return [Pin(*row) for row in self._rows(select(pins).order_by(pins.c.query, pins.c.language))]

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._engine.connect() as connection:
            return connection.execute(query).all()

    def _column(self, query: Select[Any]) -> list[Any]:
        with self._engine.connect() as connection:
            return list(connection.scalars(query))

    def _chunk_seq(self, id_or_prefix: str) -> int:
        asked = id_or_prefix.strip().lower()
        query = select(chunks.c.seq, chunks.c.id).order_by(chunks.c.seq)
        known = [(int(seq), str(chunk_id)) for seq, chunk_id in self._rows(query)]
        exact = [seq for seq, chunk_id in known if chunk_id == asked]
        matching = exact or [seq for seq, chunk_id in known if asked and chunk_id.startswith(asked)]
        if len(matching) == 1:
            return matching[0]
        shown = ", ".join(chunk_id for _, chunk_id in known[-10:]) or "none yet"
        what = "Several chunks start with" if matching else "There is no chunk"
        raise UnknownChunk(f"{what} {id_or_prefix[:40]!r}. Known chunks: {shown}.")


def _full_text() -> Any:
    return table("captions_text", column("rowid"), column("text"))


def _needs_substring(text: str) -> bool:
    if not any(character.isalnum() for character in text):
        return True
    return any(
        unicodedata.name(character, "").startswith(_UNSPACED) for character in text if ord(character) > 0xE00
    )
