"""The story of an upload: read, check, store blobs, store rows, report.

Blobs are stored while the upload streams by, rows afterwards in one transaction. A crash in between leaves
pictures that no row names: harmless, and used when the upload comes again. A refused upload takes its
pictures away again. A large folder, and what is fetched, is taken in part by part, each an upload added to one chunk.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ingest.blobs import BlobStore
from ingest.captions import normalise_language
from ingest.catalog import Catalog
from ingest.checks import normalise_domain
from ingest.decoding import decode_apart
from ingest.errors import BadImage, BadOption, BadRow, BadUpload, NoValidPair
from ingest.harvest import Harvest, Progress
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.named_pictures import NamedPictures, Networks, require_most
from ingest.plan import IntakePlan, make_plan
from ingest.readers.container import Container, Skipped, Told
from ingest.readers.folder import Folder
from ingest.readers.formats import open_container
from ingest.readers.names import is_address, shown
from ingest.readers.table import check_mapping
from ingest.records import NewChunk, Recorded
from ingest.report import IntakeReport
from ingest.rescan import Rescan, Stated, left_out, look_again
from ingest.sources import PictureSource, source_of
from ingest.tally import Tally
from ingest.unstated_languages import fill_in

logger = logging.getLogger(__name__)

OnPart = Callable[[int], None]
OnPlan = Callable[[int, int], None]
Turn = Callable[[], AbstractContextManager[None]]


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
    # whether pictures of a folder that are at no place any more are removed for good
    forget: bool = False
    # whether the folder is followed, not given anew: pictures of it that a person withdrew stay out
    follow: bool = False
    # whether a bare table may name pictures in its own folder; False for browser uploads
    pictures_beside: bool = True
    pictures: Path | None = None  # the folder of a table's pictures, where it is not the table's own
    fetch: bool = False  # whether pictures that tables name by http(s) addresses are fetched
    networks: Networks = ()  # beyond the public internet, from where they may be fetched
    # ids of the chunks that the live version learned: their pictures stay in training, withdrawn or not
    learned: Sequence[str] = ()
    held_by: str = ""  # who brings it and may not let it teach: it is held from the first; empty where it may
    held_why: str = ""


def ingest_source(
    source: Path,
    *,
    catalog: Catalog,
    blobs: BlobStore,
    options: IntakeOptions | None = None,
    progress: Progress | None = None,
    on_part: OnPart | None = None,
    on_plan: OnPlan | None = None,
    turn: Turn = nullcontext,
) -> IntakeReport:
    """Takes a folder, archive or table in as one chunk.

    Each part is read and recorded within a `turn` of its own, so that a small upload waits for no large one. `on_plan`
    is told, before anything is stored, how many pictures are to be read and how many bytes their files have;
    `progress` is called with pictures done and pictures in all; `on_part` while more is to come, with how many new
    pictures are recorded. Content that is known already makes a report of "0
    new". Of a folder that was read before, files that are as they were are not opened again, and those that are gone
    are marked.

    Raises:
        BadUpload: the upload is refused as a whole, and nothing is stored.
        NoValidPair: it was read, but nothing in it can be used; nothing is stored.
        BadOption: an option cannot be used.
        UnknownLanguage: `options.language` is no language tag.
        StoreFull, CatalogFull: no disk space; no row is stored.
        StoreError: files of pictures were removed while it was read; what was read last is not recorded.
    """
    options = _checked(options or IntakeOptions())
    container = _opened(source, options)
    plan = make_plan(container, mapping=options.mapping, limits=options.limits, fetch=options.fetch)
    if options.pictures is not None:
        require_most(plan, options.pictures)
    again, stated = Rescan(), _stated(options)
    if isinstance(container, Folder) and options.pictures_beside:
        again = look_again(catalog, blobs, container, plan, stated)
    fetched = catalog.sources.fetched(filter(is_address, plan.rows))
    again = replace(again, unchanged=again.unchanged | left_out(catalog, blobs, plan, fetched, stated))
    if on_plan is not None:
        coming = [container.origin(name) for name in plan.rows if name not in again.unchanged]
        files = {one.path: one.size for one in coming}  # an archive is one, however many pictures are in it
        on_plan(len(coming), sum(files.values()))
    if options.language is None:
        fill_in(plan)
    report = _Intake(catalog, blobs, options, container, again).run(plan, progress, on_part, turn)
    logger.info(
        "chunk=%s new_pairs=%d new_images=%d held=%d rejected=%d unchanged=%d gone=%d",
        report.chunk_id,
        report.new_pairs,
        report.new_images,
        report.held,
        report.rejected,
        report.unchanged,
        report.gone,
    )
    return report


def nothing_new(
    source: Path, *, catalog: Catalog, blobs: BlobStore, options: IntakeOptions
) -> IntakeReport | None:
    """Returns the report of a folder in which nothing has changed since it was read; None for anything else.

    Files that could not be used then are read again, as every time; as long as none can, there is nothing new.

    Raises:
        As `ingest_source`; `NoValidPair` also of a folder of which nothing is known and no picture can be read.
    """
    options = _checked(options)
    container = _opened(source, options)
    if not isinstance(container, Folder) or options.forget or options.fetch:
        return None
    plan = make_plan(container, mapping=options.mapping, limits=options.limits)
    stated = _stated(options)
    again = look_again(catalog, blobs, container, plan, stated)
    if again.gone or not _are_refused(container, plan, options.limits):
        return None
    return _Intake(catalog, blobs, options, container, again).run(plan, None)


def _are_refused(container: Container, plan: IntakePlan, limits: Limits) -> bool:
    """Returns whether no picture of a plan can be read; looks no further than the first that can."""
    for _, data in container.read(plan.rows):
        if not isinstance(data, Skipped):
            try:
                decode_apart(data, limits)
            except BadImage:
                continue
            return False
    return True


def check_upload(source: Path, options: IntakeOptions) -> None:
    """Refuses at once what taking it in would refuse after a moment; reads no more than the beginning.

    Raises:
        BadUpload: it is no folder, archive or table.
        BadOption, UnknownLanguage: an option cannot be used.
    """
    _opened(source, _checked(options))


def _opened(source: Path, options: IntakeOptions) -> Container:
    # A table that is sent alone lies alone: what it finds beside it is itself.
    is_table_enough = options.pictures_beside or options.fetch
    return open_container(source, options.limits, pictures_beside=is_table_enough, pictures=options.pictures)


def _checked(options: IntakeOptions) -> IntakeOptions:
    check_mapping(options.mapping)
    language = normalise_language(options.language) if options.language else None
    try:
        domain = normalise_domain(options.domain) if options.domain else None
    except BadRow as error:
        raise BadOption(error.sentence) from None
    return replace(options, language=language, domain=domain)


def _stated(options: IntakeOptions) -> Stated:
    return Stated(options.language, options.domain, options.in_gallery, options.forget, options.follow)


class _Intake:
    """Takes a plan in part by part: whoever stops it loses no more than a part, and goes on after the others."""

    def __init__(
        self, catalog: Catalog, blobs: BlobStore, options: IntakeOptions, container: Container, again: Rescan
    ) -> None:
        self._catalog, self._blobs, self._options = catalog, blobs, options
        self._trained = catalog.trained_but_withdrawn(options.learned)
        self._container, self._again = container, again
        self._tally = Tally(name=shown(options.name or container.name))
        self._forgotten = 0
        self._pictures = NamedPictures(container, catalog, blobs, options.limits, options.networks)
        if not options.pictures_beside:
            self._pictures.left = options.limits.unpacked_bytes

    def run(
        self,
        plan: IntakePlan,
        progress: Progress | None,
        on_part: OnPart | None = None,
        turn: Turn = nullcontext,
    ) -> IntakeReport:
        """Takes all of it in.

        Raises:
            NoValidPair: nothing in it can be used, and nothing is known of it.
        """
        parts = self._pictures.parts(plan.rows)
        done, refused = 0, None
        for number, names in enumerate(parts):
            rows = {name: plan.rows[name] for name in names}
            part = replace(plan, rows=rows, problems=[] if number else plan.problems)
            try:
                with turn():
                    self._take(plan, part, _from(progress, done, len(plan.rows)))
            except NoValidPair as error:
                refused = error
            done += len(names)
            if on_part is not None and number < len(parts) - 1:
                on_part(self._tally.recorded.new_images)
        tally, known = self._tally, self._again.known
        if refused is not None and not (tally.chunk_id or known):
            raise refused
        newest = tally.chunk_id or self._catalog.newest_chunk_of(known)
        with turn():
            self._leave_gone()
        if not tally.chunk_id:
            tally.chunk_id = newest
            return self._report(plan, tally.recorded)
        report = self._report(plan, tally.recorded)
        if refused is not None and not tally.recorded.known_chunk:  # no row of the last parts could be used
            self._catalog.set_report(tally.chunk_id, report.to_json())
        return report

    def _take(self, plan: IntakePlan, part: IntakePlan, progress: Progress | None) -> None:
        options = self._options
        harvest = Harvest(
            self._catalog,
            self._blobs,
            language=options.language,
            domain=options.domain,
            limits=options.limits,
            before=self._tally,
            trained=self._trained,
        )
        for problem in part.problems:
            harvest.reject([problem.where], problem.code, problem.sentence)
        try:
            self._blobs.put(harvest.gather(self._pictures.read(part.rows), part, progress))
            harvest.settle()
            harvest.pairs.sort(key=lambda pair: plan.places.get(pair.where, len(plan.places)))
        except NoValidPair:
            self._tally.rows += harvest.rows
            raise
        except BadUpload:
            harvest.forget(harvest.stored)
            raise
        self._record(plan, harvest)

    def _record(self, plan: IntakePlan, harvest: Harvest) -> None:
        harvest.require_stored()
        tally, is_first = self._tally, not self._tally.chunk_id
        chunk = NewChunk(
            id=tally.chunk_id or _chunk_id(harvest),
            name=tally.name,
            in_gallery=self._options.in_gallery,
            images=list(harvest.images.values()),
            captions=[(pair.image_id, pair.language, pair.text) for pair in harvest.pairs],
            aside=harvest.aside,
            sources=self._sources(plan, harvest),
            goes_on=not is_first and not tally.recorded.known_chunk,
            held_by=self._options.held_by,
            held_why=self._options.held_why,
        )
        if tally.recorded.known_chunk and not is_first and self._catalog.brings_new(chunk):
            # The known chunk was judged without this; what is new is a chunk of its own, with all that follows.
            chunk, is_first = replace(chunk, id=_chunk_id(harvest)), True
        tally.add(harvest)

        def report_of(recorded: Recorded) -> dict[str, Any]:
            tally.chunk_id = chunk.id
            return self._report(plan, tally.with_part(recorded, is_first=is_first)).to_json()

        recorded = self._catalog.record_chunk(chunk, report_of)
        tally.chunk_id, tally.recorded = chunk.id, tally.with_part(recorded, is_first=is_first)

    def _leave_gone(self) -> None:
        """Takes pictures whose places are gone out of the gallery, or out of everything."""
        self._catalog.sources.set_gone(self._again.gone)
        if self._options.forget and isinstance(self._container, Folder):
            left = self._catalog.sources.gone_from(self._container.path)
            self._catalog.forget(left)
            self._blobs.delete(left)
            self._forgotten = len(left)

    def _report(self, plan: IntakePlan, recorded: Recorded) -> IntakeReport:
        again, seen = self._again, self._tally.images.keys() | self._again.unchanged
        lost = {one.image_id for one in again.gone}
        elsewhere = self._catalog.sources.of(lost - seen)
        places = {(one.place, one.name) for one in again.gone}
        left = {
            image_id
            for image_id, every in elsewhere.items()
            if all(one.gone or (one.place, one.name) in places for one in every)
        }
        moved = len(lost & self._tally.images.keys())
        return self._tally.report(
            self._catalog,
            plan,
            recorded,
            unchanged=len(again.unchanged),
            moved=moved,
            gone=len(left),
            forgotten=self._forgotten,
        )

    def _sources(self, plan: IntakePlan, harvest: Harvest) -> list[PictureSource]:
        uploaded = None if self._options.pictures_beside else self._tally.name
        found = []
        for image_id in harvest.images:
            keywords = harvest.facts[image_id].keywords
            for name in sorted(harvest.names[image_id]):
                told = plan.told.get(name, Told())
                if keywords:
                    told |= Told(fields={"keywords": ", ".join(keywords)})
                origin = self._pictures.origin(name)
                found.append(source_of(image_id, name, origin, uploaded=uploaded, told=told))
        return found


def _chunk_id(harvest: Harvest) -> str:
    captioned = {pair.image_id for pair in harvest.pairs}
    lines = [f"{pair.image_id}\t{pair.language}\t{pair.text}" for pair in harvest.pairs]
    lines += [image_id for image_id in harvest.images if image_id not in captioned]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:12]


def _from(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Returns what is told of one part, after others, and tells of all."""
    return None if progress is None else lambda part, _: progress(done + part, max(total, done + part))
