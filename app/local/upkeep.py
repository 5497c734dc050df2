"""Looking after a home: where it stands, whether it is sound, its log and its settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.desk.errors import ReleaseDamaged
from app.desk.health import Described, Examination, IndexStatus, Live, RepairPlan, Status, Updating
from app.desk.probes import is_probes, shown_slices
from app.local.opened import Opened
from ingest.errors import CatalogFull, MayNotWrite
from ingest.records import JobRecord
from ingest.sentence import phrase

if TYPE_CHECKING:
    from app.desk.desk import OnStage

_JOBS = 10
_LOOKED_AT = 50


class Upkeep(Opened):
    """What says how a home is."""

    def status(self, probes: bool = False) -> Status:
        from app.home import durable, engines
        from app.jobs import worker

        place = self.home.require_stores()
        try:
            interrupted = worker.recover(self.installed)
        except (CatalogFull, MayNotWrite):  # no job is noted as interrupted before that can be written
            interrupted = []
        every = self.catalog.chunks(reports=False)
        chunks = [one for one in every if probes or not is_probes(one)]
        left_out = sum(one.pairs for one in every if one not in chunks)
        holder, parts = self.store.lock_holder(), engines.read(place.root)
        return Status(
            live=self._live(probes=probes),
            problem=self.problem,
            counts={
                "gallery": self.catalog.gallery_size(),
                "pairs": sum(self.catalog.languages().values()) - left_out,
                "chunks": len(chunks),
                "releases": len(self.store.releases()),
            },
            updating=Updating(holder.pid, holder.since, holder.what) if holder else None,
            interrupted=tuple(one.id for one in interrupted),
            jobs=tuple(map(self.job_told, self.catalog.jobs(limit=_JOBS))),
            chunks=tuple(reversed(chunks)),
            used_bytes=durable.room(place.root),
            free_bytes=durable.free_bytes(place.root),
            degraded=self.degraded(),
            catalog=parts.catalog or "",
            objects=parts.objects or "",
        )

    def _live(self, *, probes: bool) -> Live | None:
        """What is live, and the damaged commits above it that are passed over."""
        standing = self.store.standing()
        skipped, commit = standing.skipped, standing.commit
        if commit is None:
            return Live(skipped=skipped) if skipped else None
        record = self.store.release(commit.release)
        return Live(
            release=record.id,
            commit=commit.number,
            since=commit.time,
            by=commit.by,
            why=commit.why,
            version=record.version,
            generation=record.generation,
            languages=tuple(record.manifest.languages),
            slices=shown_slices(record.manifest.slices, probes=probes),
            skipped=skipped,
            needs_torch=self._needs_torch(record.version),
        )

    def _needs_torch(self, version: str) -> str:
        from model_updates.errors import VersionDamaged
        from model_updates.portable_encoder import graphs_of

        try:
            found = graphs_of(self.home.versions / version, self.home.graphs / version)
        except VersionDamaged as error:
            return str(error)
        if found.may_be_made:
            return phrase("{why}; the next search makes them of its weights", why=found.why)
        return found.why

    def index(self) -> IndexStatus:
        from app.home.indexed import index_status
        from app.learning.going_live import live_release

        _, record = live_release(self.workspace)
        engine = self.workspace.vector_engine
        elsewhere = {} if engine is None else engine.known()
        return index_status(record, self.home.generations / record.generation, elsewhere)

    def verify(self) -> list[str]:
        damaged = []
        for record in self.store.releases():
            if record.pruned is not None or not self.store.is_here(record.id):
                continue
            try:
                self.store.verify_release(record.id)
            except ReleaseDamaged as error:
                damaged.append(f"{record.id}: {error.message}")
        return damaged

    def start_examination(self, every_byte: bool = True) -> JobRecord:
        from app.jobs import worker

        under_way = [one for one in self.catalog.jobs(limit=_LOOKED_AT) if one.kind == "doctor"]
        active = [one for one in under_way if one.state in {"queued", "running", "interrupted"}]
        if active:
            return active[-1]
        job = worker.submit(self.installed, "doctor", {"every_byte": every_byte, "by": self.by})
        self.begin(job)
        return job

    def examine(self, every_byte: bool, on_stage: OnStage) -> Examination:
        from app.doctor.examination import examine

        return examine(self.installed, every_byte=every_byte, progress=on_stage)

    def repair_plan(self) -> RepairPlan:
        from app.home.catalog_copy import damage_in
        from app.home.damage import CATALOG
        from app.home.in_bucket import lacking
        from app.learning import mending

        why = damage_in(self.home)
        if why:
            return RepairPlan((phrase("The catalog is damaged ({why}); its copy takes its place.", why=why),))
        self.store.damage.forget(CATALOG)  # it may have been put back
        plan, found = mending.plan(self.workspace), lacking(self.home, self.catalog)
        if found.copies:
            said = phrase(
                "{count} files that this machine has are put back in the bucket.", count=len(found.copies)
            )
            plan = replace(plan, steps=(*plan.steps, said))
        return replace(plan, bucket=found.said)

    def repair(self) -> JobRecord:
        from app.home.catalog_copy import damage_in, restore_catalog
        from app.home.damage import CATALOG
        from app.jobs import worker

        told = ""
        if damage_in(self.home):
            if self._given is None:
                self.close()  # it would be open here, too
            told = restore_catalog(self.home, by=self.by)
        self.store.damage.forget(CATALOG)
        job = worker.submit(self.installed, "repair", {"by": self.by, "told": told})
        self.begin(job)
        return job

    def log(self, lines: int = 200) -> list[str]:
        from app.home import logs

        return logs.last_lines(logs.log_file(self.installed.home), lines)

    def settings(self) -> list[Described]:
        from app.home.settings import described

        return described(self.installed)
