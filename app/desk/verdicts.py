"""Verdicts: what the gate said, how good releases are, how far two lie apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import computed_field

from app.desk.jobs import Forecast, Taken
from app.desk.operation import grown
from app.desk.opinions import AskedLanguage, ShadowReport
from app.desk.releases import ListedRelease
from ingest.captions import UNDETERMINED
from ingest.sentence import phrase
from model_updates.drift import Drift
from model_updates.gate.report import GateReport, QueryChange, Verdict

FEWEST_ASKED = 3
"""Queries in a language to speak of it: one of two words may look like any."""


@dataclass(frozen=True)
class MovedCaption(QueryChange):
    """A caption that found its picture later or sooner, with the addresses of both pictures."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thumb_url(self) -> str:
        """Where the thumbnail of its picture is."""
        return f"/v1/images/{self.image_id}/thumbnail"

    @computed_field  # type: ignore[prop-decorator]
    @property
    def first_thumb_url(self) -> str | None:
        """Where that of the picture is which the candidate puts first."""
        return f"/v1/images/{self.first_image}/thumbnail" if self.first_image else None


@dataclass(frozen=True)
class Gate(GateReport):
    """The gate's whole report; changes are points, levels percent, as `GateRow` explains them."""

    lost: tuple[MovedCaption, ...] = ()
    won: tuple[MovedCaption, ...] = ()

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Gate:
        """Returns a report that a release or a job keeps as plain values."""
        report = GateReport.from_json(document)
        moved = {
            side: tuple(grown(MovedCaption, one) for one in getattr(report, side)) for side in ("lost", "won")
        }
        return grown(cls, report, **moved)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> Verdict:
        """The strictest verdict of all rules."""
        return super().verdict

    @computed_field  # type: ignore[prop-decorator]
    @property
    def reasons(self) -> tuple[str, ...]:
        """All rules' sentences; those that decided the verdict come first."""
        return super().reasons

    @computed_field  # type: ignore[prop-decorator]
    @property
    def decided(self) -> str:
        """The sentence that decided."""
        return self.first_reason


@dataclass(frozen=True)
class Judged:
    """What the gate said, and of what."""

    asked: str  # the job or release that was asked for, by its whole id
    sentence: str  # whose report it is, or why there is none
    # whose version was judged; None when there is no such release (a rejected update)
    release: str | None = None
    job: str | None = None  # the update's, when a job was asked for
    chunk: str | None = None  # that was taught, where known
    gate: Gate | None = None  # its report; None when nothing was judged
    expected: Forecast | None = None  # what the update was forecast to take; None where nothing was
    took: Taken | None = None  # what it took; None before it was judged


@dataclass(frozen=True, slots=True)
class VersionColumn:
    """A version, as its newest release that was measured says."""

    version: str  # its id
    release: str  # id of that release
    created: str  # when its first release was made
    strategy: str  # that trained it; "" for the base encoder
    languages: tuple[str, ...]  # learned
    was_live: bool  # whether it ever answered
    is_live: bool  # whether it answers now


@dataclass(frozen=True, slots=True)
class Measure:
    """One slice under one version."""

    recall: float  # percent, by the table's metric
    images: int  # different things that were looked for
    captions: int  # that looked
    # points against the best version before that was ever live; None when there was none
    change: float | None = None
    best: str = ""  # the release whose version was that best; "" when there was none


@dataclass(frozen=True, slots=True)
class SliceLine:
    """One slice under all versions; None where it was not measured."""

    language: str
    domain: str
    measures: tuple[Measure | None, ...]


@dataclass(frozen=True, slots=True)
class QualityTable:
    """Slices by versions."""

    metric: str  # one of `QUERY_METRICS`
    view: str  # in which the slices were measured
    columns: tuple[VersionColumn, ...]  # versions, oldest first
    lines: tuple[SliceLine, ...]  # slices, sorted
    # mean of what the live version lies below the best before it, points; None without such slices
    forgetting: float | None
    # mean of what the live version gained (or lost, below 0) on each slice since it was first measured
    transfer: float | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What there is of one slice."""

    language: str  # of the captions
    domain: str  # of the pictures
    train: int  # pairs to learn from
    validation: int  # pairs to choose by
    held_out: int  # pairs to measure by
    images: int | None  # different things that the live release was measured on; None when it was not
    is_learned: bool  # whether the live release knows the language
    is_enough: bool  # whether the gate may decide without a person


@dataclass(frozen=True)
class SliceMoves:
    """How the captions of a slice fare under two versions."""

    slice: str  # language and domain, `de/photo`
    view: str  # in which they looked
    before: str  # id of the earlier release
    after: str  # id of the later one
    captions: int  # that looked
    found_before: int  # of these, found among the first ten by the earlier one
    found_after: int  # the same, by the later one
    lost: tuple[MovedCaption, ...]  # those that fell furthest
    won: tuple[MovedCaption, ...]  # those that rose furthest


@dataclass(frozen=True)
class ReleaseDrift:
    """What has moved from one release to another."""

    before: str  # id of the earlier release
    after: str  # id of the later one
    languages: tuple[str, ...]  # of the texts: those that both have learned
    pairs: int  # held-out pairs that were compared
    drift: Drift  # the angles


@dataclass(frozen=True)
class AskedLanguages:
    """In which languages people searched in the last days, the most asked first, and what follows from that."""

    days: int
    languages: tuple[AskedLanguage, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def advice(self) -> tuple[str, ...]:
        """A sentence for each language that is asked for and not learned."""
        return self.advised()

    def advised(self, name: Callable[[str], str] = str) -> tuple[str, ...]:
        """Returns `advice` with languages called as `name` calls them, by their tags."""
        return tuple(
            phrase(
                "{language} is asked for and not learned: {queries} of the last {days} days look like it, {share} % of "
                "all. Upload {language} pairs.",
                language=name(one.language),
                queries=phrase("1 query")
                if one.queries == 1
                else phrase("{count} queries", count=one.queries),
                days=self.days,
                share=f"{100 * one.share:.0f}",
            )
            for one in self.languages
            if not one.is_learned and one.language != UNDETERMINED and one.queries >= FEWEST_ASKED
        )


@dataclass(frozen=True)
class Quality:
    """Recall of each slice under each released version, what there is to measure by, and what is asked for."""

    table: QualityTable
    coverage: tuple[Coverage, ...]
    asked: AskedLanguages


@dataclass(frozen=True)
class ReleaseDetail(ListedRelease):
    """A release with its verdict, what live queries have shown, and everything else its manifest says."""

    manifest: Mapping[str, Any]
    judged: Judged
    shadow: ShadowReport | None = None
