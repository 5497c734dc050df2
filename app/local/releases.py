"""Releases of a home: what is live, what could be, and how that changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.desk.probes import shown_slices
from app.desk.releases import (
    Difference,
    Evaluated,
    Exported,
    Imported,
    ListedRelease,
    Node,
    PrunePlan,
    ReleaseWords,
    WentLive,
)
from app.desk.verdicts import (
    AskedLanguages,
    Quality,
    ReleaseDetail,
    ReleaseDrift,
    SliceMoves,
)
from app.home.commits import CommitRecord
from app.home.lineage import lineage
from app.home.releases import ReleaseRecord
from app.local.opened import Opened
from ingest.records import JobRecord
from ingest.release_words import ReleaseWord

if TYPE_CHECKING:
    from app.desk.desk import OnStage
    from app.desk.opinions import ShadowReport


class Releases(Opened):
    """What is live, how good it is, and what people said of it."""

    def live_id(self) -> str | None:
        """Returns the id of the release that the newest commit names, if any."""
        commit = self.store.current()
        return commit.release if commit else None

    def releases(self) -> list[ListedRelease]:
        live = self.live_id()
        return [ListedRelease(**_facts(record, live)) for record in reversed(self.store.releases())]

    def release(self, release: str) -> ReleaseDetail:
        from app.learning.judged import judged_release

        record = self.store.release(release)
        told = self.shadow(record.id)
        return ReleaseDetail(
            **_facts(record, self.live_id()),
            manifest=record.manifest.to_json(),
            judged=judged_release(self.store, record.id),
            shadow=told if told.started else None,
        )

    def lineage(self) -> list[Node]:
        return lineage(self.store.releases(), self.store.history(), self.live_id())

    def difference(self, a: str, b: str) -> Difference:
        from app.learning.difference import difference_between

        return difference_between(self.workspace, a, b)

    def promote(self, release: str, why: str = "", force: bool = False) -> WentLive:
        from app.learning import going_live

        return self._went_live(going_live.promote(self.workspace, release, why=why, by=self.by, force=force))

    def roll_back(self, release: str | None = None, why: str = "") -> WentLive:
        from app.learning import going_live

        return self._went_live(going_live.rollback(self.workspace, release, why=why, by=self.by))

    def _went_live(self, commit: CommitRecord) -> WentLive:
        """Starts adding the pictures that a release does not hold which went live."""
        from app.jobs import requests

        self.went_live()
        left_out, job = requests.gallery_job(self.workspace, commit)
        said = commit.reason, commit.by, commit.why
        return WentLive(commit.release, commit.number, *said, left_out, self._followed(job))

    def reject(self, release: str, why: str = "") -> ReleaseWord:
        from app.learning.release_words import judge_release

        return judge_release(self.workspace, release, "rejected", why=why, by=self.by)

    def keep(self, release: str, why: str = "") -> ReleaseWord:
        from app.learning.release_words import judge_release

        return judge_release(self.workspace, release, "kept", why=why, by=self.by)

    def pin(self, why: str = "") -> ReleaseWord:
        from app.learning import release_words

        return release_words.pin(self.workspace, why=why, by=self.by)

    def unpin(self, why: str = "") -> ReleaseWord:
        from app.learning import release_words

        return release_words.unpin(self.workspace, why=why, by=self.by)

    def release_words(self) -> ReleaseWords:
        from app.learning.release_words import pinned

        return ReleaseWords(pinned(self.workspace), tuple(self.catalog.release_words.all()))

    def prune_plan(self, keep: int = 5) -> PrunePlan:
        from app.learning import pruning

        return pruning.plan(self.workspace, keep, in_use=self.in_use())

    def prune(self, releases: Sequence[str], keep: int = 5, why: str = "") -> PrunePlan:
        from app.learning import pruning

        return pruning.prune(self.workspace, releases, keep, in_use=self.in_use(), why=why, by=self.by)

    def export(self, release: str, to: Path) -> Exported:
        from app.learning.transfer import export_release

        return export_release(self.workspace, release, to)

    def export_to_open_clip(self, release: str, to: Path) -> Exported:
        """Writes a release's encoder into a folder that plain open_clip opens, without Perennial."""
        from app.learning.transfer import export_to_open_clip

        return export_to_open_clip(self.workspace, release, to)

    def export_to_onnx(self, release: str | None, to: Path, tell: Callable[[str], None]) -> Exported:
        """Writes the encoder of a release, or of the live one, as ONNX into a folder; `tell` is told each file."""
        from app.learning import going_live
        from app.learning.onnx_export import export_to_onnx

        name = release or going_live.live_release(self.workspace)[1].id
        return export_to_onnx(self.workspace, name, to, tell)

    def start_import(self, source: Path, sha256: str | None = None) -> JobRecord:
        from app.jobs import intake

        received = intake.receive(source, self.home.inbox)
        job = intake.take_release_in(self.installed, received, source.name, sha256, self.by)
        self.begin(job)
        return job

    def import_release(self, source: Path, sha256: str | None, on_stage: OnStage) -> Imported:
        from app.learning.transfer import import_release

        return import_release(self.workspace, source, sha256=sha256, progress=on_stage)

    # How good they are

    def quality(self, metric: str = "t2i_r10", view: str = "own", probes: bool = False) -> Quality:
        from app.feedback.asked import WINDOW_DAYS, asked_languages
        from app.learning.quality import coverage, quality_table

        table = quality_table(self.workspace, metric=metric, view=view, probes=probes)
        learned = next((column.languages for column in table.columns if column.is_live), ())
        asked = AskedLanguages(WINDOW_DAYS, tuple(asked_languages(self.catalog, learned)))
        return Quality(table, tuple(coverage(self.workspace, probes=probes)), asked)

    def moves(self, language: str, domain: str, before: str, after: str, view: str = "own") -> SliceMoves:
        from app.learning.lost import slice_moves

        return slice_moves(self.workspace, language, domain, before, after, view=view)

    def drift(self, before: str, after: str, pairs: int = 500) -> ReleaseDrift:
        from app.learning.drift import drift_between

        return drift_between(self.workspace, before, after, most=pairs)

    def evaluate(self, release: str | None = None, probes: bool = False) -> Evaluated:
        from app.learning import going_live
        from app.learning.quality import summaries

        record = self.store.release(release) if release else going_live.live_release(self.workspace)[1]
        found = summaries(going_live.evaluate(self.workspace, record.id))
        return Evaluated(record.id, shown_slices(found, probes=probes))

    def shadow(self, release: str) -> ShadowReport:
        from app.feedback import shadow

        return shadow.report(self.workspace, release)

    def in_shadow(self) -> str:
        from app.feedback import shadow

        found = shadow.active(self.workspace)
        return found.release if found else ""

    def start_shadow(self, release: str, share: float | None = None) -> ShadowReport:
        from app.feedback import shadow

        return self.shadow(shadow.start(self.workspace, release, share=share, by=self.by).release)

    def stop_shadow(self, release: str, why: str = "") -> ShadowReport:
        from app.feedback import shadow

        shadow.stop(self.workspace, release, by=self.by, why=why)
        return self.shadow(release)


def _facts(record: ReleaseRecord, live: str | None) -> dict[str, Any]:
    said = record.manifest
    return {
        "id": record.id,
        "live": record.id == live,
        "version": record.version,
        "generation": record.generation,
        "parent": said.parent,
        "strategy": said.strategy,
        "verdict": said.verdict,
        "mode": said.mode,
        "images_embedded": said.images_embedded,
        "languages": tuple(said.languages),
        "created": said.created,
        "pruned": None if record.pruned is None else record.pruned.time,
    }
