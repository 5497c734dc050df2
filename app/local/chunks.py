"""Chunks of a home: taking them in, what a person says of them and of single pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.desk.chunks import (
    Added,
    Chunk,
    Decided,
    Held,
    NamedDomain,
    PutAside,
    ShownExample,
    ShownFinding,
    Withdrawn,
)
from app.desk.errors import UsageProblem
from app.desk.operation import grown
from app.desk.probes import is_probes
from app.local.opened import Opened
from ingest.errors import UnknownImage
from ingest.findings import Outcome, findings_in
from ingest.records import ChunkRecord, JobRecord
from ingest.report import guarded
from ingest.sentence import phrase

if TYPE_CHECKING:
    from app.desk.desk import OnStage
    from app.desk.jobs import StartUpdate, UpdateRequest
    from ingest.intake import IntakeOptions
    from ingest.report import IntakeReport

_AGAINST = [Outcome.REJECT, Outcome.HOLD, Outcome.UNKNOWN, Outcome.ACCEPT]  # what speaks against it first
_SAMPLES = 12
_COLUMNS = ("where", "outcome", "code", "sentence")


class Chunks(Opened):
    """What takes chunks in, and keeps what people say of them."""

    def chunks(self, probes: bool = False) -> list[ChunkRecord]:
        every = reversed(self.catalog.chunks(reports=False))
        return [one for one in every if probes or not is_probes(one)]

    def chunk(self, chunk: str) -> Chunk:
        return self._shown(self.catalog.chunk(chunk))

    def chunk_report(self, chunk: str) -> bytes:
        return csv_of(self.report_told(self.catalog.chunk(chunk).report))

    def add_chunk(self, source: Path, options: IntakeOptions, on_stage: OnStage) -> Added:
        if self.home.root.resolve().is_relative_to(source.resolve()):
            raise UsageProblem(
                f"{source} holds the home {self.home.root} itself; name the folder of the pictures."
            )
        if (report := self.nothing_to_do(source, options)) is not None:
            return Added(self.chunk(report.chunk_id), report.to_json(), images_embedded=0)
        from app.home.catalog_copy import keep_copy
        from app.learning.adding import add_chunk

        done = add_chunk(self.workspace, source, options, by=self.by, progress=on_stage)
        keep_copy(self.home, at_once=options.forget)
        return Added(
            chunk=self.chunk(done.report.chunk_id),
            report=done.report.to_json(),
            images_embedded=done.images_embedded,
            release=done.commit.release if done.commit else None,
            made_again=done.made_again,
        )

    def nothing_to_do(
        self, source: Path, options: IntakeOptions, *, every_byte: bool = True
    ) -> IntakeReport | None:
        """Returns the report of a folder that is as it was, before anything heavy is loaded; None of any other.

        Nor of one that was read and not judged, or while the live index lacks pictures or, if `every_byte` of it is to
        be looked at, is damaged. Raises as `ingest.intake.nothing_new`.
        """
        from index.manifest import is_sound
        from ingest.intake import nothing_new

        live = self.store.current()
        if live is None or not source.is_dir():
            return None
        with closing(self.home.require_stores().open_blobs(self.catalog)) as blobs:
            report = nothing_new(source, catalog=self.catalog, blobs=blobs, options=options)
        release = self.store.release(live.release)
        if report is None or self.catalog.unjudged(report.chunk_id, release.manifest.chunks):
            return None
        generation = self.store.generation_folder(release.generation)
        return report if is_sound(generation, self.catalog.gallery_size(), every_byte=every_byte) else None

    def start_chunk(self, source: Path, options: IntakeOptions, then: StartUpdate | None = None) -> JobRecord:
        from app.desk.jobs import UpdateRequest
        from app.jobs import intake, worker
        from ingest.upload_zip import sendable

        asked = None
        if then is not None:  # what cannot be done later is refused now, before anything is taken in
            if then.strategy is not None:
                from model_updates.strategies import strategy_named

                strategy_named(then.strategy)
            worker.refuse_second_update(self.installed)
            asked = UpdateRequest(**then.model_dump() | {"chunk": ""}, by=self.by)
        with sendable(source, options) as file:
            received = intake.receive(file, self.home.inbox)
        sent_as = source.name if options.pictures else file.name
        return self.take_in(received, options, sent_as=sent_as, then=asked)

    def take_in(
        self,
        received: Path,
        options: IntakeOptions,
        *,
        sent_as: str,
        then: UpdateRequest | None = None,
        is_held: bool = False,
        held_why: str = "",
    ) -> JobRecord:
        """Starts taking a file of the inbox in, in a process of its own; errors as `app.jobs.intake.take_in`."""
        from app.jobs.intake import take_in

        is_held = is_held or not self.may_see_all()
        job = take_in(
            self.installed, received, options, sent_as, self.by, then=then, is_held=is_held, held_why=held_why
        )
        self.begin(job)
        return job

    def accept(self, chunk: str, why: str, measure: bool = False) -> Chunk:
        from app.learning import standing

        return self._shown(standing.accept(self.workspace, chunk, why=why, by=self.by, measure=measure))

    def withdraw(self, chunk: str, why: str) -> Withdrawn:
        from app.jobs import requests
        from app.learning import standing

        gone = standing.withdraw(self.workspace, chunk, why=why, by=self.by)
        self.changed_gallery()
        job = self._followed(requests.withdrawal_job(self.workspace, gone, by=self.by))
        return replace(gone, job=job)

    def name_domain(self, domain: str, to: str) -> NamedDomain:
        from app.jobs import requests
        from app.learning import unstated

        pictures, name = unstated.name_domain(self.workspace, domain, to)
        self.changed_gallery()
        why = f"{pictures} pictures of {domain} are of {name} now"
        job = self._expected(requests.pictures_job(self.workspace, why=why, by=self.by))
        said = phrase(
            "{pictures} pictures of {domain} are of {name} now; the next update teaches them as such.",
            pictures=pictures,
            domain=domain,
            name=name,
        )
        return NamedDomain(name, pictures, said, job)

    def remove(self, chunk: str, why: str) -> JobRecord:
        from app.jobs import requests

        job = requests.remove_chunk(self.workspace, chunk, why=why, by=self.by)
        self.changed_gallery()
        return self._expected(job)

    def held(self, limit: int = 100, offset: int = 0) -> Held:
        from app.learning import inventory

        total, rows = inventory.held_rows(self.workspace, limit=limit, offset=offset)
        return Held(tuple(one.id for one in inventory.waiting(self.workspace)), total, tuple(rows))

    def put_aside(self, chunk: str) -> PutAside:
        from app.learning import inventory

        return inventory.put_aside(self.workspace, chunk)

    def aside_thumbnail(self, pair: int) -> bytes:
        found = self.catalog.aside.named([pair])
        if not found:
            raise UnknownImage(f"No pair {pair} is kept.")
        return self.workspace.blobs.aside_thumbnail(found[0].image_id)

    def decide(
        self,
        chunk: str,
        accept: Sequence[int] = (),
        leave_out: Sequence[int] = (),
        take_out: Sequence[int] = (),
        language: str | None = None,
        why: str = "",
    ) -> Decided:
        from app.jobs import requests
        from app.learning import held_pairs

        with self.intake_turn() if accept else nullcontext():
            decided = held_pairs.decide(
                self.workspace,
                chunk,
                by=self.by,
                accept=accept,
                leave_out=leave_out,
                take_out=take_out,
                language=language,
                why=why,
            )
        job = self._followed(requests.decision_job(self.workspace, decided, by=self.by))
        return replace(decided, job=job)

    def _shown(self, chunk: ChunkRecord) -> Chunk:
        findings = tuple(
            grown(ShownFinding, one, examples=tuple(grown(ShownExample, example) for example in one.examples))
            for one in sorted(findings_in(chunk.report), key=lambda one: _AGAINST.index(one.outcome))
        )
        learned = tuple(one.id for one in self.store.releases() if chunk.id in one.manifest.chunks)
        return grown(
            Chunk,
            chunk,
            report=self.report_told(chunk.report),
            findings=findings,
            learned=learned,
            samples=tuple(self._samples(chunk.id)),
        )

    def _samples(self, chunk: str) -> Iterator[ShownExample]:
        ids = sorted(self.catalog.ids_where(chunks=[chunk]))
        for image_id in ids[:: max(1, len(ids) // _SAMPLES)][:_SAMPLES]:
            captions = self.catalog.captions_of(image_id)
            language, text = (captions[0].language, captions[0].text) if captions else ("", "")
            yield ShownExample(image_id, language, text, "")


def csv_of(report: Mapping[str, Any]) -> bytes:
    """Returns a kept report's rows as CSV with a byte-order mark, safe to open in a spreadsheet."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for row in report.get("rows", []):
        writer.writerow([guarded(str(row[column])) for column in _COLUMNS])
    return text.getvalue().encode("utf-8-sig")
