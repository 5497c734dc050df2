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
    """What the gate said, and of what.

    Attributes:
        asked: the job or release that was asked for, by its whole id.
        sentence: whose report it is, or why there is none.
        release: whose version was judged; None when there is no such release (a rejected update).
        job: the update's, when a job was asked for.
        chunk: that was taught, where known.
        gate: its report; None when nothing was judged.
        expected: what the update was forecast to take; None where nothing was.
        took: what it took; None before it was judged.
    """

    asked: str
    sentence: str
    release: str | None = None
    job: str | None = None
    chunk: str | None = None
    gate: Gate | None = None
    expected: Forecast | None = None
    took: Taken | None = None


@dataclass(frozen=True, slots=True)
class VersionColumn:
    """A version, as its newest release that was measured says.

    Attributes:
        version: its id.
        release: id of that release.
        created: when its first release was made.
        strategy: that trained it; "" for the base encoder.
        languages: learned.
        was_live: whether it ever answered.
        is_live: whether it answers now.
    """

    version: str
    release: str
    created: str
    strategy: str
    languages: tuple[str, ...]
    was_live: bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """One slice under one version.

    Attributes:
        recall: percent, by the table's metric.
        images: different things that were looked for.
        captions: that looked.
        change: points against the best version before that was ever live; None when there was none.
        best: the release whose version was that best; "" when there was none.
    """

    recall: float
    images: int
    captions: int
    change: float | None = None
    best: str = ""


@dataclass(frozen=True, slots=True)
class SliceLine:
    """One slice under all versions; None where it was not measured."""

    language: str
    domain: str
    measures: tuple[Measure | None, ...]


@dataclass(frozen=True, slots=True)
class QualityTable:
    """Slices by versions.

    Attributes:
        metric: one of `QUERY_METRICS`.
        view: in which the slices were measured.
        columns: versions, oldest first.
        lines: slices, sorted.
        forgetting: mean of what the live version lies below the best before it, points; None without such slices.
        transfer: mean of what the live version gained (or lost, below 0) on each slice since it was first measured.
    """

    metric: str
    view: str
    columns: tuple[VersionColumn, ...]
    lines: tuple[SliceLine, ...]
    forgetting: float | None
    transfer: float | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What there is of one slice.

    Attributes:
        language: of the captions.
        domain: of the pictures.
        train: pairs to learn from.
        validation: pairs to choose by.
        held_out: pairs to measure by.
        images: different things that the live release was measured on; None when it was not.
        is_learned: whether the live release knows the language.
        is_enough: whether the gate may decide without a person.
    """

    language: str
    domain: str
    train: int
    validation: int
    held_out: int
    images: int | None
    is_learned: bool
    is_enough: bool


@dataclass(frozen=True)
class SliceMoves:
    """How the captions of a slice fare under two versions.

    Attributes:
        slice: language and domain, `de/photo`.
        view: in which they looked.
        before: id of the earlier release.
        after: id of the later one.
        captions: that looked.
        found_before: of these, found among the first ten by the earlier one.
        found_after: the same, by the later one.
        lost: those that fell furthest.
        won: those that rose furthest.
    """

    slice: str
    view: str
    before: str
    after: str
    captions: int
    found_before: int
    found_after: int
    lost: tuple[MovedCaption, ...]
    won: tuple[MovedCaption, ...]


@dataclass(frozen=True)
class ReleaseDrift:
    """What has moved from one release to another.

    Attributes:
        before: id of the earlier release.
        after: id of the later one.
        languages: of the texts: those that both have learned.
        pairs: held-out pairs that were compared.
        drift: the angles.
    """

    before: str
    after: str
    languages: tuple[str, ...]
    pairs: int
    drift: Drift


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
