"""What each old slice kept: none may have lost more than the policy allows.

Each old slice is held, in every view, against the live version and against the high water, by the policy's metric and
by R@1. All that changed are read together (`shrinkage.py`), so that sixty slices do not cost sixty times the doubt. A
statement passes when a breach of the policy is unlikely after all that, *and* the slice's own figures exclude a loss
far beyond it, which keeps the others from vouching for one that nobody measured well. It fails when a breach is nearly
certain. Whatever lies between is for a person.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ingest.sentence import joined, phrase, template
from model_updates.evaluation import SliceResult, View
from model_updates.gate.comparison import Drop, measured_drop, slice_name
from model_updates.gate.high_water import HighWater, high_water
from model_updates.gate.report import Policy, Verdict, points
from model_updates.gate.shrinkage import one_sided, share
from model_updates.recalls import LABELS

FloatArray = NDArray[np.float64]

FIRST = "t2i_r1"
FIRST_SCALE = 2.0
"""R@1 of a caption is 0 or 1, the mean of three recalls moves by thirds: it varies about twice as much."""
FAR_BEYOND = 1.6
"""Times the policy: what a slice's own figures must exclude with 97.5 %; 8 points where 5 are allowed."""
OWN_FIGURES = 1.96
WATER_DOUBT = 0.2
"""The high water is asked again after every update: five updates in a row share the error rate."""
_LOST, _PERHAPS, _KEPT = phrase("lost"), phrase("perhaps lost"), phrase("kept")
_FOUND: dict[str, str] = {
    _LOST: template("{slice} lost against {against}: {move} ({why}; the policy allows {limit})."),
    _PERHAPS: template("{slice} perhaps lost against {against}: {move} ({why}; the policy allows {limit})."),
    _KEPT: template("{slice} kept against {against}: {move} ({why}; the policy allows {limit})."),
}
_FEW = template("{slice} {note} against {against}: {move} ({why}; the policy allows {limit}).")


@dataclass(frozen=True, eq=False)
class OldSlice:
    """One old slice in one view, under every version that matters."""

    candidate: SliceResult  # under the encoder that is judged
    live: SliceResult  # under the live one
    # name and result of the others that were ever live and rank differently
    versions: Sequence[tuple[str, SliceResult]] = ()
    debt: float = 0.0  # points that a person accepted to lose here

    @property
    def name(self) -> str:
        """The slice and, beside its own gallery, the view: `de/photo`, `de/photo mixed`."""
        view = self.candidate.view
        return slice_name(self.candidate) + ("" if view is View.OWN else f" ({view})")

    @property
    def is_unchanged(self) -> bool:
        """Whether every caption's rank is what it was under the live version."""
        return bool(np.array_equal(self.candidate.text_ranks, self.live.text_ranks))

    def against_live(self, metric: str) -> Drop:
        """Returns the drop against the live version."""
        reference, candidate = self.live.query_scores(metric), self.candidate.query_scores(metric)
        return measured_drop(reference, candidate, self.candidate.clusters)

    def water(self, metric: str) -> HighWater | None:
        """Returns the high water; None when no other version was ever live here."""
        if not self.versions:
            return None
        results = [self.live, *(result for _, result in self.versions)]
        return high_water([result.query_scores(metric) for result in results], self.candidate.clusters)


@dataclass(frozen=True)
class SliceStatement:
    """One statement on one old slice."""

    slice: OldSlice
    metric: str  # by which it was measured
    against: str  # `live` or the version that sets the high water
    is_water: bool  # whether it is held against the high water
    drop: Drop  # as measured, after what was accepted before
    bound: float  # points; the drop is less than this with `confidence`
    confidence: float  # that this statement needs
    verdict: Verdict
    note: str  # in a word or two

    def sentence(self, policy: Policy) -> str:
        """Says what was found, with its numbers."""
        label = LABELS.get(self.metric, "R")
        limit = policy.slice_drop if self.metric == policy.metric else policy.first_slice_drop
        after = 100.0 * float(self.slice.candidate.query_scores(self.metric).mean())
        before = after + self.drop.points + (self.slice.debt if self.is_water else 0.0)
        said = phrase(
            _FOUND.get(self.note, _FEW),
            slice=self.slice.name,
            note=self.note,
            against=self.against,
            move=f"{label} {before:.1f} → {after:.1f}",
            why=at_worst(self.drop.points, self.bound, self.confidence),
            limit=points(-limit),
        )
        return joined((said, self.slice.candidate.caveat))


def at_worst(drop: float, bound: float, confidence: float) -> str:
    """Returns a change in points, given as a drop, and what it is at worst."""
    return phrase(
        "{points}, at worst {bound} with {sure} % confidence",
        points=points(-drop),
        bound=points(-bound),
        sure=f"{100 * confidence:.3g}",
    )


@dataclass(frozen=True)
class MetricLimit:
    """By what old slices are judged."""

    metric: str
    limit: float  # points that a slice may lose
    scale: float  # how much the metric varies, beside the policy's usual one
    policy: Policy
    tries: int  # candidates that share the error rate


def judge_each(old: Sequence[OldSlice], policy: Policy, tries: int) -> list[SliceStatement]:
    """Judges every old slice that changed, by both metrics, against live and against the high water."""
    changed = [one for one in old if not one.is_unchanged]
    judged = []
    for asked in metrics_of(policy, tries) if changed else ():
        drops = [one.against_live(asked.metric) for one in changed]
        judged += _judge_family(changed, ["live"] * len(changed), drops, asked, 1.0)
        judged += _judge_water(changed, drops, asked)
    return judged


def metrics_of(policy: Policy, tries: int) -> list[MetricLimit]:
    """Returns what is judged: the policy's metric, and R@1 where that is another one."""
    first = MetricLimit(FIRST, policy.first_slice_drop, FIRST_SCALE, policy, tries)
    if policy.metric == FIRST:
        return [replace(first, limit=policy.slice_drop)]
    return [MetricLimit(policy.metric, policy.slice_drop, 1.0, policy, tries), first]


def _judge_water(
    changed: Sequence[OldSlice], against_live: Sequence[Drop], asked: MetricLimit
) -> list[SliceStatement]:
    slices, names, drops, gaps = [], [], [], []
    for one, drop in zip(changed, against_live, strict=True):
        water = one.water(asked.metric)
        # What certainly gains on live is on its way back up, wherever the water stands.
        if water is None or drop.points + one_sided(asked.policy.confidence) * drop.error <= 0:
            continue
        clusters = one.candidate.clusters
        slices.append(one)
        names.append(["live", *(name for name, _ in one.versions)][water.best])
        below = measured_drop(water.scores, one.candidate.query_scores(asked.metric), clusters)
        drops.append(Drop(below.points - one.debt, below.error))
        gaps.append(measured_drop(water.scores, one.live.query_scores(asked.metric), clusters))
    if not slices:
        return []
    # A slice that already stands below its high water gets no benefit of the doubt.
    suspected = share(*_columns(gaps), scale=asked.scale).odd
    return _judge_family(slices, names, drops, asked, WATER_DOUBT, suspected=suspected)


def _judge_family(
    slices: Sequence[OldSlice],
    against: Sequence[str],
    drops: Sequence[Drop],
    asked: MetricLimit,
    doubt: float,
    suspected: FloatArray | None = None,
) -> list[SliceStatement]:
    confidence = asked.policy.confidence
    together = share(*_columns(drops), suspected=suspected, scale=asked.scale)
    allowed = doubt * asked.policy.loss_alpha(asked.tries)
    broken, bounds = together.beyond(asked.limit), together.bound(1.0 - allowed)
    judged = []
    for n, (one, name, drop) in enumerate(zip(slices, against, drops, strict=True)):
        own, verdict, note = drop.points + OWN_FIGURES * drop.error, Verdict.PROMOTE, _KEPT
        if broken[n] >= confidence:
            verdict, note = Verdict.REJECT, _LOST
        elif broken[n] > allowed:
            verdict, note = Verdict.REVIEW, _PERHAPS
        elif own >= FAR_BEYOND * asked.limit:
            few = phrase("has too few held-out pairs ({count} things)", count=one.candidate.groups)
            verdict, note = Verdict.REVIEW, few
        facts = (drop, float(bounds[n]), 1.0 - allowed, verdict, note)
        judged.append(SliceStatement(one, asked.metric, name, suspected is not None, *facts))
    return judged


def _columns(drops: Sequence[Drop]) -> tuple[list[float], list[float]]:
    return [drop.points for drop in drops], [drop.error for drop in drops]
