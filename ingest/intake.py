"""The story of an upload: read, check, store blobs, store rows, report.

Blobs are stored while the upload streams by, rows afterwards in one transaction. A crash in between leaves
pictures that no row names: harmless, and used when the upload comes again. A refused upload takes its
pictures away again.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingest.blobs import BlobStore
from ingest.captions import normalise_language
from ingest.catalog import Catalog
from ingest.checks import normalise_domain
from ingest.errors import BadOption, BadRow, BadUpload
from ingest.harvest import Harvest, Progress
from ingest.held_out import held_out, too_few_note
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.pair import BASE_LANGUAGE, SliceKey, Split
from ingest.plan import IntakePlan, make_plan
from ingest.readers.container import Container
from ingest.readers.formats import open_container
from ingest.readers.names import shown
from ingest.readers.table import check_mapping
from ingest.records import NewChunk, Recorded
from ingest.report import IntakeReport, copies_note, withheld_note
from ingest.sources import source_of
from ingest.unstated_languages import fill_in

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class IntakeOptions:
    """How to take an upload in."""

    # BCP-47 tag for captions whose language the upload does not state; None: it is detected
    language: str | None = None
    domain: str | None = None  # domain for pictures whose domain the upload does not state
    # a table's column name to ours, such as {"text": "caption"}
    mapping: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None  # what to call the chunk; the file's or folder's name otherwise
    in_gallery: bool = True  # whether its pictures are found by search
    limits: Limits = DEFAULT_LIMITS  # bounds on what is read
    # whether a bare table may name pictures in its own folder; False for browser uploads
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

    `progress` is called with pictures done and pictures in all. Content that is known already makes a report of "0
    new".

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
    if options.language is None:
        fill_in(plan)
    pictures = container.read(plan.rows.keys())
    harvest = Harvest(catalog, blobs, language=options.language, domain=options.domain, limits=options.limits)
    for problem in plan.problems:
        harvest.reject([problem.where], problem.code, problem.sentence)
    try:
        blobs.put(harvest.gather(pictures, plan, progress))
        harvest.settle()
        harvest.pairs.sort(key=lambda pair: plan.places.get(pair.where, len(plan.places)))
    except BadUpload:
        harvest.forget(harvest.stored)
        raise
    report = _record(harvest, plan, options, container)
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


def _record(harvest: Harvest, plan: IntakePlan, options: IntakeOptions, container: Container) -> IntakeReport:
    name = options.name or container.name
    uploaded = None if options.pictures_beside else shown(name)
    chunk = NewChunk(
        id=_chunk_id(harvest),
        name=shown(name),
        in_gallery=options.in_gallery,
        images=list(harvest.images.values()),
        captions=[(pair.image_id, pair.language, pair.text) for pair in harvest.pairs],
        aside=harvest.aside,
        sources=[
            source_of(image_id, name, container.origin(name), uploaded=uploaded, told=plan.told.get(name))
            for image_id in harvest.images
            for name in sorted(harvest.names[image_id])
        ],
    )
    share = _english_share(harvest)
    held_out_counts = {
        key: len(held_out(harvest.settled, ids)) for key, ids in sorted(harvest.slices().items())
    }
    copies = harvest.copies()
    found = [note for note in (copies_note(copies), too_few_note(held_out_counts)) if note]

    def report_of(recorded: Recorded) -> IntakeReport:
        outcomes = Counter(row.outcome for row in harvest.rows)
        known = [f"already have chunk {chunk.id}: {recorded.new_pairs} new"] if recorded.known_chunk else []
        if recorded.returned:
            known = [f"chunk {chunk.id} was withdrawn; it is taken in again, as new, and searched again"]
        if recorded.withheld:
            known.append(withheld_note(recorded.withheld))
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
            notes=(*known, *plan.notes, *found),
            rows=tuple(harvest.rows),
            held_out={str(key): count for key, count in held_out_counts.items()},
            copies=copies,
            detected=plan.detected,
        )

    recorded = harvest.catalog.record_chunk(chunk, lambda changes: report_of(changes).to_json())
    return report_of(recorded)


def _chunk_id(harvest: Harvest) -> str:
    captioned = {pair.image_id for pair in harvest.pairs}
    lines = [f"{pair.image_id}\t{pair.language}\t{pair.text}" for pair in harvest.pairs]
    lines += [image_id for image_id in harvest.images if image_id not in captioned]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]


def _per_slice(harvest: Harvest) -> dict[str, dict[str, int]]:
    counts: dict[SliceKey, Counter[Split]] = {}
    for pair in harvest.pairs:
        image = harvest.images[pair.image_id]
        counts.setdefault(SliceKey(pair.language, image.domain), Counter())[image.split] += 1
    return {str(key): {split.value: counts[key][split] for split in Split} for key in sorted(counts)}


def _english_share(harvest: Harvest) -> float | None:
    foreign = [pair.image_id for pair in harvest.pairs if pair.language != BASE_LANGUAGE]
    if not foreign:
        return None
    english = {pair.image_id for pair in harvest.pairs if pair.language == BASE_LANGUAGE}
    english |= harvest.catalog.captions_in(BASE_LANGUAGE, set(foreign)).keys()
    return sum(image_id in english for image_id in foreign) / len(foreign)
