"""The story of an upload: read, check, store blobs, store rows, report.

Blobs are stored while the upload streams by, rows afterwards in one transaction. A crash in between leaves
pictures that no row names: harmless, and used when the upload comes again. A refused upload takes its
pictures away again.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingest.blobs import BlobStore
from ingest.captions import normalise_language
from ingest.catalog import Catalog
from ingest.checks import Accepted, Judge, Place, normalise_domain, repeated_captions
from ingest.errors import BadImage, BadOption, BadRow, BadUpload, NoValidPair
from ingest.images import decode, thumbnail
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.pair import BASE_LANGUAGE, ImageId, SliceKey, Split, image_id_of
from ingest.plan import Plan, make_plan
from ingest.readers.container import Container, Problem, Row, shown
from ingest.readers.dispatch import open_container
from ingest.readers.table import check_mapping
from ingest.records import NewChunk, NewImage, Recorded
from ingest.report import IntakeReport, ReportRow, top_reasons

logger = logging.getLogger(__name__)

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class IntakeOptions:
    """How to take an upload in.

    Attributes:
        language: BCP-47 tag for captions whose language the upload does not state.
        domain: domain for pictures whose domain the upload does not state.
        mapping: a table's column name to ours, such as {"text": "caption"}.
        name: what to call the chunk; the file's or folder's name otherwise.
        in_gallery: whether its pictures are found by search.
        limits: bounds on what is read.
        pictures_beside: whether a bare table may name pictures in its own folder; False for browser uploads.
    """

    language: str | None = None
    domain: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    in_gallery: bool = True
    limits: Limits = DEFAULT_LIMITS
    pictures_beside: bool = True


def ingest_source(
    source: Path,
    *,
    catalog: Catalog,
    blobs: BlobStore,
    options: IntakeOptions | None = None,
    progress: Progress | None = None,
) -> IntakeReport:
    """Takes a folder, archive or table in as one chunk.

    Args:
        source: the folder or file.
        catalog: where rows go.
        blobs: where pictures go.
        options: what fills gaps, and the limits.
        progress: called with pictures done and pictures in all.

    Returns:
        What became of everything in it. Content that is known already makes a report of "0 new".

    Raises:
        BadUpload: the upload is refused as a whole, and nothing is stored.
        NoValidPair: it was read, but nothing in it can be used; nothing is stored.
        BadOption: an option cannot be used.
        UnknownLanguage: `options.language` is no language tag.
        StoreFull, CatalogFull: no disk space; no row is stored.
    """
    options = _checked(options or IntakeOptions())
    container = open_container(source, options.limits, pictures_beside=options.pictures_beside)
    plan = make_plan(container, mapping=options.mapping, limits=options.limits)
    harvest = _Harvest(catalog, blobs, options)
    for problem in plan.problems:
        harvest.reject([problem.where], problem.code, problem.sentence)
    try:
        blobs.put(harvest.gather(container, plan, progress))
        harvest.settle()
    except BadUpload:
        harvest.forget(harvest.stored)
        raise
    report = _record(harvest, plan.notes, options.name or container.name)
    logger.info(
        "chunk=%s new_pairs=%d new_images=%d held=%d rejected=%d",
        report.chunk_id,
        report.new_pairs,
        report.new_images,
        report.held,
        report.rejected,
    )
    return report


def check_upload(source: Path, options: IntakeOptions) -> None:
    """Refuses at once what taking it in would refuse after a moment; reads no more than the beginning.

    Raises:
        BadUpload: it is no folder, archive or table.
        BadOption, UnknownLanguage: an option cannot be used.
    """
    options = _checked(options)
    open_container(source, options.limits, pictures_beside=options.pictures_beside)


def _checked(options: IntakeOptions) -> IntakeOptions:
    check_mapping(options.mapping)
    language = normalise_language(options.language) if options.language else None
    try:
        domain = normalise_domain(options.domain) if options.domain else None
    except BadRow as error:
        raise BadOption(error.sentence) from None
    return replace(options, language=language, domain=domain)


class _Harvest:
    """What one upload yields, picture after picture."""

    def __init__(self, catalog: Catalog, blobs: BlobStore, options: IntakeOptions) -> None:
        self.catalog = catalog
        self.options = options
        self.images: dict[ImageId, NewImage] = {}
        self.pairs: list[Accepted] = []
        self.rows: list[ReportRow] = []
        self.stored: set[ImageId] = set()  # blobs that this upload brought
        self._blobs = blobs
        self._uncaptioned: set[ImageId] = set()
        self._judge = Judge(language=options.language, domain=options.domain, limits=options.limits)

    def reject(self, places: Sequence[str], code: str, sentence: str) -> None:
        """Lists each place as rejected for one reason."""
        self.rows.extend(ReportRow(shown(where), "rejected", code, sentence) for where in places)

    def gather(
        self, container: Container, plan: Plan, progress: Progress | None
    ) -> Iterator[tuple[ImageId, bytes, bytes]]:
        """Judges each picture and yields `(id, original, thumbnail)` of those that have to be stored."""
        unread = dict(plan.rows)
        for done, (name, data) in enumerate(container.read(plan.rows.keys()), start=1):
            rows = plan.rows[name]
            unread.pop(name, None)
            places = [row.where for row in rows] or [name]
            if isinstance(data, Problem):
                self.reject(places, data.code, data.sentence)
            else:
                try:
                    yield from self._take(name, data, rows)
                except BadImage as error:
                    self.reject(places, error.code, error.sentence)
            if progress is not None:
                progress(done, max(done, len(plan.rows)))
        for name, rows in unread.items():
            sentence = f"The picture {shown(name)!r} could not be read from the upload."
            self.reject([row.where for row in rows] or [name], "image_missing", sentence)

    def settle(self) -> None:
        """Applies the checks that need the whole upload.

        Raises:
            NoValidPair: nothing is left.
        """
        repeated = repeated_captions(self.pairs, self.options.limits)
        kept: list[Accepted] = []
        for pair in self.pairs:
            if (pair.language, pair.text) in repeated:
                sentence = "Its caption stands on very many pictures; look whether it belongs to each."
                self.rows.append(ReportRow(pair.where, "held", "caption_repeated", sentence))
            else:
                kept.append(pair)
                self.rows.append(ReportRow(pair.where, "accepted", sentence=pair.sentence))
        self.pairs = kept
        used = {pair.image_id for pair in kept} | self._uncaptioned
        self.images = {image_id: image for image_id, image in self.images.items() if image_id in used}
        self.forget(self.stored - used)
        self.stored &= used
        if not self.images:
            reasons = top_reasons(self.rows) or "It holds no picture."
            raise NoValidPair("no_valid_pair", f"Nothing in the upload can be used. {reasons}")

    def forget(self, image_ids: set[ImageId]) -> None:
        """Deletes blobs that this upload brought, except those another upload has come to rely on meanwhile."""
        self._blobs.delete(image_ids - self.catalog.images(image_ids).keys())

    def _take(self, name: str, data: bytes, rows: Sequence[Row]) -> Iterator[tuple[ImageId, bytes, bytes]]:
        image_id = image_id_of(data)
        record = self.catalog.image(image_id)
        known = Place(record.domain, record.split) if record is not None else None
        is_stored = image_id in self.stored or self._blobs.contains([image_id])[0]
        decoded = None
        if image_id not in self.images and (record is None or not is_stored):
            decoded = decode(data, self.options.limits)
        accepted = self._judge_rows(image_id, name, rows, known, decoded.notes if decoded else ())
        if not accepted:
            return
        if image_id not in self.images:
            place, size = self._judge.place_of(image_id), decoded or record
            if size is not None:
                self.images[image_id] = NewImage(
                    image_id, place.domain, place.split, size.width, size.height, size.format
                )
        if decoded is not None and not is_stored:
            self.stored.add(image_id)
            yield image_id, data, thumbnail(decoded.image)

    def _judge_rows(
        self, image_id: ImageId, name: str, rows: Sequence[Row], known: Place | None, notes: Sequence[str]
    ) -> bool:
        if not rows:
            row = self._judge.judge_uncaptioned(image_id, shown(name), known)
            self.rows.append(row)
            if row.outcome == "accepted":
                self._uncaptioned.add(image_id)
            return row.outcome == "accepted"
        pairs: list[Accepted] = []
        for entry in self._judge.judge(image_id, rows, known):
            if isinstance(entry, Accepted):
                sentence = " ".join(filter(None, (entry.sentence, _as_sentence(notes))))
                pairs.append(replace(entry, where=shown(entry.where), sentence=sentence))
            else:
                self.rows.append(replace(entry, where=shown(entry.where)))
        self.pairs.extend(pairs)
        return bool(pairs)


def _as_sentence(notes: Sequence[str]) -> str:
    return f"The picture is {'; '.join(notes)}." if notes else ""


def _record(harvest: _Harvest, notes: Sequence[str], name: str) -> IntakeReport:
    chunk = NewChunk(
        id=_chunk_id(harvest),
        name=shown(name),
        in_gallery=harvest.options.in_gallery,
        images=list(harvest.images.values()),
        captions=[(pair.image_id, pair.language, pair.text) for pair in harvest.pairs],
    )
    share = _english_share(harvest)

    def report_of(recorded: Recorded) -> IntakeReport:
        outcomes = Counter(row.outcome for row in harvest.rows)
        known = [f"already have chunk {chunk.id}: 0 new"] if recorded.known_chunk else []
        return IntakeReport(
            chunk_id=chunk.id,
            name=chunk.name,
            new_pairs=recorded.new_pairs,
            known_pairs=len(harvest.pairs) - recorded.new_pairs,
            new_images=recorded.new_images,
            held=outcomes["held"],
            rejected=outcomes["rejected"],
            per_slice=_per_slice(harvest),
            english_share=share,
            notes=(*known, *notes),
            rows=tuple(harvest.rows),
        )

    recorded = harvest.catalog.record_chunk(chunk, lambda changes: report_of(changes).to_json())
    return report_of(recorded)


def _chunk_id(harvest: _Harvest) -> str:
    captioned = {pair.image_id for pair in harvest.pairs}
    lines = [f"{pair.image_id}\t{pair.language}\t{pair.text}" for pair in harvest.pairs]
    lines += [image_id for image_id in harvest.images if image_id not in captioned]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]


def _per_slice(harvest: _Harvest) -> dict[str, dict[str, int]]:
    counts: dict[SliceKey, Counter[Split]] = {}
    for pair in harvest.pairs:
        image = harvest.images[pair.image_id]
        counts.setdefault(SliceKey(pair.language, image.domain), Counter())[image.split] += 1
    return {str(key): {split.value: counts[key][split] for split in Split} for key in sorted(counts)}


def _english_share(harvest: _Harvest) -> float | None:
    foreign = [pair.image_id for pair in harvest.pairs if pair.language != BASE_LANGUAGE]
    if not foreign:
        return None
    english = {pair.image_id for pair in harvest.pairs if pair.language == BASE_LANGUAGE}
    english |= harvest.catalog.captions_in(BASE_LANGUAGE, set(foreign)).keys()
    return sum(image_id in english for image_id in foreign) / len(foreign)
