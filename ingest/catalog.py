"""The catalog: images, captions, chunks, jobs and pins in one SQLite file, or in a database of PostgreSQL's.

Every call is one short transaction of its own, so threads and processes may share a catalog. A chunk's rows
are written in a single transaction after its blobs are stored: a crash in between leaves blobs without rows,
which are harmless and are reused when the chunk comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from typing import Any, TypeVar, Unpack

from sqlalchemy import Engine, Pool, delete, distinct, func, select, update

from ingest.aside import AsideTable, aside
from ingest.asked import AskedTable
from ingest.bucket_rows import PackRows, PublishedRows
from ingest.caption_search import containing, like
from ingest.dialect import Likely, upsert
from ingest.engines import Place, open_engine, writing
from ingest.errors import CatalogDamaged, CatalogFull, MayNotWrite
from ingest.facets import FacetQueries
from ingest.feedback import FeedbackTable
from ingest.findings import Finding
from ingest.image_queries import ImageQueries
from ingest.jobs import JobQueries
from ingest.leases import LeaseTable
from ingest.pair import Caption, ImageId, Pair, SliceKey, Split
from ingest.recording import ChunkRecording, chunk_records
from ingest.records import ChunkRecord, ChunkStanding, Pin
from ingest.release_words import ReleaseWordTable
from ingest.schema import captions, chunk_captions, chunks, images, pins
from ingest.selection import JOINED, Conditions, images_counted, images_where, pairs_counted, pairs_where
from ingest.shadows import ShadowTable
from ingest.shown import PageQueries
from ingest.sources import SourceTable, sources
from ingest.standing import WITHDRAWN, Standing, set_standing
from ingest.tables import TableQueries, grouped
from ingest.withheld import WithheldTable, forget_pictures

Thing = TypeVar("Thing")


def if_only_for_reading(opened: Callable[..., Thing]) -> Thing:
    """Opens for reading alone where nothing can be written: what is there can be searched all the same."""
    try:
        return opened()
    except (CatalogFull, MayNotWrite):
        return opened(read_only=True)


class Catalog(ImageQueries, FacetQueries, PageQueries, JobQueries, ChunkRecording):
    """An open catalog; get one with `Catalog.open`.

    What only withdrawn chunks brought is left out everywhere, unless a question names such a chunk. Where a question
    takes `chunks`, ids of chunks, it is about what any of them has, each thing once; None means all chunks that are not
    withdrawn, and an id that no chunk has matches nothing.
    """

    def __init__(self, engine: Engine, place: Place, *, read_only: bool = False, owner: str = "") -> None:
        self.place = place
        self._read_only = read_only
        self._owner = owner
        self._left: list[Pool] = []
        super().__init__(engine)
        self.feedback = FeedbackTable(engine)  # what people said of answers
        self.asked = AskedTable(engine)  # how often each language was asked for
        self.release_words = ReleaseWordTable(engine)  # what people said of releases
        # which candidates were asked live queries, too, and how far their answers lay from the live ones
        self.shadows = ShadowTable(engine)
        self.aside = AsideTable(engine)  # pairs of uploads that were held or rejected
        self.sources = SourceTable(engine)  # where each picture was seen
        self.packs = PackRows(engine)  # where pictures lie in a bucket
        self.published = PublishedRows(engine)  # which folders lie there
        self.leases = LeaseTable(engine)  # which of the machines that share a home does what
        self.withheld = WithheldTable(engine)  # pictures that a person took out by themselves

    @classmethod
    def open(cls, place: Place, *, read_only: bool = False, owner: str = "") -> Catalog:
        """Opens the catalog in a file, making it unless `read_only`, or in the database at an address, for its owner.

        Raises:
            CatalogMissing: there is none, and none is made.
            CatalogTooNew: written by a newer release.
            CatalogUnreachable: the database does not answer.
            CatalogError: it is no catalog, or that of another owner, or the address cannot be used.
        """
        engine = open_engine(place, read_only=read_only, owner=owner)
        return cls(engine, place, read_only=read_only, owner=owner)

    @property
    def engine(self) -> Engine:
        """What connects to where it lies."""
        return self._engine

    def follow(self, place: Place) -> None:
        """Reads and writes in the place from now on that the catalog was carried to.

        Raises:
            CatalogMissing: there is none.
            CatalogUnreachable: the database does not answer.
        """
        left, engine = self._engine, open_engine(place, read_only=self._read_only, owner=self._owner)
        self.place = place
        for part in (self, *vars(self).values()):
            if isinstance(part, TableQueries):
                part._engine = engine
        self._left.append(left.pool)
        left.dispose()

    def close(self) -> None:
        """Closes all pooled connections."""
        self._engine.dispose()
        for pool in self._left:  # what was at work when it was left
            pool.dispose()

    def damage(self) -> list[str]:
        """Returns what SQLite finds wrong with its file, and rows that refer to rows that are not there."""
        if isinstance(self.place, str):  # its database watches over its own files
            return []
        try:
            with self._engine.connect() as connection:
                said = [str(row[0]) for row in connection.exec_driver_sql("PRAGMA quick_check")]
                astray = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        except CatalogDamaged as error:
            return [str(error)]
        found = [line for line in said if line != "ok"]
        return found + ([f"{len(astray)} rows refer to rows that are not there"] if astray else [])

    def __enter__(self) -> Catalog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Captions and pairs

    def captions_of(self, image_id: ImageId) -> list[Caption]:
        """Returns all captions of an image, by language and then in the order they came."""
        query = (
            select(images.c.id, captions.c.language, captions.c.text)
            .select_from(JOINED)
            .where(images.c.id == image_id, pairs_counted(None))
            .order_by(captions.c.language, captions.c.seq)
        )
        return [Caption(*row) for row in self._rows(query)]

    def find_captions(self, text: str, *, limit: int = 50) -> list[Caption]:
        """Returns captions that contain all words of `text`; the last word may be a beginning.

        Any text is safe: nothing in it is query syntax. Scripts without spaces are matched as substrings.
        """
        query = containing(text, limit)
        return [] if query is None else [Caption(*row) for row in self._rows(query)]

    def captioned_like(
        self, text: str, *, limit: int = 1000, **given: Unpack[Conditions]
    ) -> list[tuple[ImageId, float]]:
        """Returns images of the gallery that have a word of `text` in a caption, best first, each with its weight.

        Any text is safe. At most so many captions are looked at, of the images that all given conditions hold for.

        Raises:
            BadOption: the filter cannot be read.
        """
        query = like(text, limit, images_where(given) if given else None)
        best: dict[ImageId, float] = {}
        for image_id, weight in [] if query is None else self._rows(query):
            best.setdefault(image_id, float(weight))
        return list(best.items())

    def pairs(
        self,
        *,
        chunk: str | None = None,
        language: str | None = None,
        domain: str | None = None,
        split: Split | None = None,
        chunks: Collection[str] | None = None,
    ) -> list[Pair]:
        """Returns the pairs that match all given conditions, in the order they came.

        `chunk` is an id or a unique beginning of one; `chunks` are ids, and stand in its place.

        Raises:
            UnknownChunk: `chunk` is neither an id nor a unique prefix.
        """
        if chunk is not None:
            chunks = [self._chunk_id(chunk)]
        query = pairs_where(language=language, domain=domain, split=split, chunk_ids=chunks)
        splits = {member.value: member for member in Split}
        return [Pair(i, text, tag, place, splits[part]) for i, text, tag, place, part in self._rows(query)]

    def last_pairs(self) -> tuple[int, int, str]:
        """Returns the newest numbers of a pair of a chunk and of one put aside, and when one was last decided.

        Where a person puts one pair in the place of another, a chunk counts as many as before, and these say so.
        Nothing is counted for it.
        """
        columns = (chunk_captions.c.caption, aside.c.seq, aside.c.decided_at)
        newest = [select(func.max(column)).scalar_subquery() for column in columns]
        ((brought, put_aside, decided),) = self._rows(select(*newest))
        return int(brought or 0), int(put_aside or 0), decided or ""

    def captions_in(
        self, language: str, ids: Collection[ImageId], *, chunks: Collection[str] | None = None
    ) -> dict[ImageId, list[str]]:
        """Returns the captions in one language of those ids that have any, in the order they came."""
        # SQLite would read every caption of a language for a few pictures: it takes a language for rare unless told,
        # and walks all of one to have them in order. So it is told, and the order is made here.
        is_language = Likely(captions.c.language == language)
        query = select(captions.c.seq, images.c.id, captions.c.text).select_from(JOINED)
        query = query.where(is_language, pairs_counted(chunks))
        found: dict[ImageId, list[str]] = {}
        with self._engine.connect() as connection:
            for group in grouped(ids):
                rows = connection.execute(query.where(images.c.id.in_(group))).all()
                for _, image_id, text in sorted(rows):
                    found.setdefault(image_id, []).append(text)
        return found

    def pairs_mark(self) -> tuple[Any, ...]:
        """Returns what changes whenever pairs come or come back; captions are not gone through for it."""
        newest = select(func.max(captions.c.seq)).scalar_subquery()
        counted, since = func.sum(chunks.c.new_pairs), func.max(chunks.c.standing_since)
        return tuple(self._rows(select(newest, counted, since))[0])

    def slices(self, *, minimum_images: int = 1, chunks: Collection[str] | None = None) -> list[SliceKey]:
        """Returns every language-and-domain that has at least so many held-out captioned images, sorted."""
        query = (
            select(captions.c.language, images.c.domain)
            .select_from(JOINED)
            .where(images.c.split == Split.TEST.value, pairs_counted(chunks))
            .group_by(captions.c.language, images.c.domain)
            .having(func.count(distinct(captions.c.image)) >= minimum_images)
        )
        return sorted(SliceKey(*row) for row in self._rows(query))

    def languages(self, *, in_gallery: bool = False) -> dict[str, int]:
        """Returns the number of pairs by language; `in_gallery`: of gallery pictures alone."""
        query = (
            select(captions.c.language, func.count())
            .select_from(JOINED if in_gallery else captions)
            .where(pairs_counted(None), *([images.c.in_gallery] if in_gallery else []))
            .group_by(captions.c.language)
            .order_by(captions.c.language)
        )
        return {language: count for language, count in self._rows(query)}

    def domains(self, *, in_gallery: bool = False) -> dict[str, int]:
        """Returns the number of images by domain; `in_gallery`: of gallery pictures alone."""
        counted = images.c.in_gallery if in_gallery else images_counted(None)
        query = select(images.c.domain, func.count()).where(counted)
        query = query.group_by(images.c.domain).order_by(images.c.domain)
        return {domain: count for domain, count in self._rows(query)}

    def has_domain(self, name: str) -> bool:
        """Whether an image is of a domain."""
        return bool(
            self._column(select(images.c.seq).where(images.c.domain == name, images_counted(None)).limit(1))
        )

    def pairs_by_split(self) -> dict[tuple[SliceKey, Split], int]:
        """Returns the number of pairs of each language and domain in each split."""
        query = (
            select(captions.c.language, images.c.domain, images.c.split, func.count())
            .select_from(JOINED)
            .where(pairs_counted(None))
            .group_by(captions.c.language, images.c.domain, images.c.split)
        )
        return {
            (SliceKey(language, domain), Split(split)): count
            for language, domain, split, count in self._rows(query)
        }

    # Chunks

    def chunks(self, *, reports: bool = True) -> list[ChunkRecord]:
        """Returns all chunks in the order they came; without `reports`, which take longest to read, those are empty."""
        columns = [column for column in chunks.c if reports or column is not chunks.c.report]
        with self._engine.connect() as connection:
            return chunk_records(connection, select(*columns).order_by(chunks.c.seq))

    def standings(self) -> list[ChunkStanding]:
        """Returns what each chunk counts as, in the order they came; nothing is counted, and no report is read."""
        columns = [chunks.c[field.name] for field in fields(ChunkStanding)]
        return [ChunkStanding(*row) for row in self._rows(select(*columns).order_by(chunks.c.seq))]

    def chunk(self, id_or_prefix: str) -> ChunkRecord:
        """Returns one chunk by its id, a unique beginning of it, or a name that no other has.

        Raises:
            UnknownChunk: none or several match; the sentence names the known ones.
        """
        chunk_id = self._chunk_id(id_or_prefix)
        with self._engine.connect() as connection:
            return chunk_records(connection, select(chunks).where(chunks.c.id == chunk_id))[0]

    def unjudged(self, chunk: str, learned: Collection[str] = ()) -> list[str]:
        """Returns which of a chunk, by its id, and the others of its name no check was made of, in the order they came.

        What was `learned`, accepted or withdrawn needs none. A folder lies in several chunks of its name when reading
        it was broken off.
        """
        name = select(chunks.c.name).where(chunks.c.id == chunk).scalar_subquery()
        query = select(chunks.c.id).where(
            chunks.c.name == name, chunks.c.report["findings"].as_string().is_(None)
        )
        query = query.where(chunks.c.standing.not_in(["accepted", WITHDRAWN]), chunks.c.id.not_in(learned))
        return self._column(query.order_by(chunks.c.seq))

    def set_standing(
        self, chunk: str, standing: Standing, *, by: str, why: str, measures: bool | None = None
    ) -> ChunkRecord:
        """Changes and returns a chunk; a withdrawn one leaves the gallery in the same transaction.

        `why` may be empty for `new` alone. `measures` says whether it is accepted as measuring material; None leaves
        that as it is, but a withdrawn chunk measures nothing.

        Raises:
            UnknownChunk: none or several match.
            BadOption: a value cannot be used.
        """
        chunk_id = self._chunk_id(chunk)
        with writing(self._engine) as connection:
            set_standing(connection, chunk_id, standing, by=by, why=why, measures=measures)
        return self.chunk(chunk_id)

    def set_report(self, chunk: str, report: dict[str, Any]) -> None:
        """Replaces the report of a chunk.

        Raises:
            UnknownChunk: none or several match.
        """
        chunk_id = self._chunk_id(chunk)
        with writing(self._engine) as connection:
            connection.execute(update(chunks).where(chunks.c.id == chunk_id).values(report=report))

    def set_findings(self, chunk: str, findings: Sequence[Finding]) -> ChunkRecord:
        """Writes findings into a chunk's report, in place of those it had.

        Raises:
            UnknownChunk: none or several match.
        """
        chunk_id = self._chunk_id(chunk)
        with writing(self._engine) as connection:
            query = select(chunks.c.report).where(chunks.c.id == chunk_id)
            report = dict(connection.execute(query).scalar_one())
            report["findings"] = [finding.to_json() for finding in findings]
            connection.execute(update(chunks).where(chunks.c.id == chunk_id).values(report=report))
        return self.chunk(chunk_id)

    def pair_numbers(self, chunk: str, image_ids: Collection[ImageId]) -> dict[tuple[ImageId, str, str], int]:
        """Returns the numbers of a chunk's captions of some pictures, by picture, language and text."""
        query = select(images.c.id, captions.c.language, captions.c.text, captions.c.seq).select_from(JOINED)
        query = query.where(pairs_counted([self._chunk_id(chunk)]), images.c.id.in_(list(image_ids)))
        return {(i, spoken, text): number for i, spoken, text, number in self._rows(query)}

    def set_domain(self, ids: Collection[ImageId], domain: str) -> int:
        """Puts pictures, also withdrawn ones, into a domain; returns how many."""
        statement = update(images).values(domain=domain)
        with writing(self._engine) as connection:
            for group in grouped(ids):
                connection.execute(statement.where(images.c.id.in_(group)))
        return len(ids)

    def forget(self, ids: Collection[ImageId]) -> None:
        """Removes for good what is known of pictures: captions, places, canaries and what they look like.

        That there was a picture of these bytes stays known; an upload that brings them takes it in as new. Its file is
        the caller's to delete, after this.
        """
        with writing(self._engine) as connection:
            for group in grouped(ids):
                forget_pictures(connection, group)
                connection.execute(delete(pins).where(pins.c.image_id.in_(group)))
                connection.execute(delete(sources).where(sources.c.image_id.in_(group)))

    # Pins

    def set_pin(self, query: str, language: str, image_id: ImageId) -> None:
        """Pins the expected first answer of a query, replacing an earlier pin of the same query."""
        statement = upsert(pins).values(query=query, language=language, image_id=image_id)
        with writing(self._engine) as connection:
            connection.execute(
                statement.on_conflict_do_update(
                    index_elements=list(pins.primary_key), set_={"image_id": image_id}
                )
            )

    def remove_pin(self, query: str, language: str) -> bool:
        """Removes a pin; returns whether there was one."""
        statement = delete(pins).where(pins.c.query == query, pins.c.language == language)
        with writing(self._engine) as connection:
            return bool(connection.execute(statement).rowcount)

    def pins(self) -> list[Pin]:
        """Returns all pins, sorted by query."""
        return [Pin(*row) for row in self._rows(select(pins).order_by(pins.c.query, pins.c.language))]
