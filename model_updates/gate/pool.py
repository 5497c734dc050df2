"""What the old slices kept together: an average that may not fall, against live and against the high water.

Each slice weighs as many as it has different things, so that a hundred small uploads do not outvote what people use,
and slices in which nothing is found under either version weigh nothing: junk dilutes no loss.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ingest.sentence import phrase, template
from model_updates.evaluation import SliceResult, View
from model_updates.gate.comparison import Drop, measured_drop, weight_of
from model_updates.gate.high_water import high_water
from model_updates.gate.kept import OWN_FIGURES, WATER_DOUBT, MetricLimit, OldSlice, at_worst, metrics_of
from model_updates.gate.report import Policy, RuleResult, Verdict, points, strictest_first, worst
from model_updates.gate.shrinkage import COMMON_SPREAD, normal_tail, one_sided, posterior
from model_updates.recalls import LABELS

FloatArray = NDArray[np.float64]

POOLS = {template("known"): (View.OWN, View.MEMORY), template("found"): (View.MIXED, View.MEMORY)}
"""What is averaged: what the encoder knows, and what a searcher finds among everything."""
_FOUND = {
    Verdict.REJECT: template(
        "Old slices together lost against {against} in what is {pool}: {why}, over {n} (the policy allows {limit})."
    ),
    Verdict.REVIEW: template(
        "Old slices together perhaps lost against {against} in what is {pool}: {why}, over {n} "
        "(the policy allows {limit})."
    ),
    Verdict.PROMOTE: template(
        "Old slices together kept against {against} in what is {pool}: {why}, over {n} (the policy allows {limit})."
    ),
}

_Told = tuple[OldSlice, Mapping[str, SliceResult]]
"""A slice that tells something, and the earlier versions that tell something about it."""


@dataclass(frozen=True)
class Belief:
    """What is known of an average drop after it was measured."""

    against: str  # `live` or the version that sets the high water
    drop: Drop  # as measured, after what was accepted before
    mean: float  # of the belief, points
    deviation: float  # of the belief, points
    allowed: float  # chance of a breach with which the statement still passes

    def verdict(self, limit: float, policy: Policy) -> Verdict:
        """Returns the verdict where the average may lose `limit` points."""
        broken = float(normal_tail((limit - self.mean) / self.deviation))
        if broken >= policy.confidence:
            return Verdict.REJECT
        return Verdict.REVIEW if broken > self.allowed else Verdict.PROMOTE

    def bounds(self) -> str:
        """Returns the drop and its bound in words."""
        bound = self.mean + one_sided(1.0 - self.allowed) * self.deviation
        return at_worst(self.drop.points, bound, 1.0 - self.allowed)


def judge_pool(old: Sequence[OldSlice], policy: Policy, tries: int) -> RuleResult:
    """Judges all old slices together, by both metrics, against live and against the high water."""
    if not old:
        return RuleResult(
            phrase("kept"),
            Verdict.REVIEW,
            (phrase("No old slice was measured, so nothing shows what was kept."),),
        )
    everything = [(one, _comparable(one, policy)) for one in old if tells(one, policy)]
    found: list[tuple[Verdict, str]] = []
    for pool, views in POOLS.items():
        told = [entry for entry in everything if entry[0].candidate.view in views]
        if not told:
            continue
        if all(one.is_unchanged for one, _ in told):
            said = phrase(
                "Old slices unchanged in what is {pool}: no rank of {count} differs.",
                pool=phrase(pool),
                count=len(told),
            )
            found.append((Verdict.PROMOTE, said))
            continue
        for asked in metrics_of(policy, tries):
            is_main = asked.metric == policy.metric
            limit = policy.pooled_drop if is_main else policy.first_pooled_drop
            label = "" if is_main else f"{LABELS[asked.metric]} "
            for belief in _beliefs(told, asked):
                verdict = belief.verdict(limit, policy)
                # What passes is said once, by the metric that decides most.
                if verdict is not Verdict.PROMOTE or is_main:
                    said = phrase(
                        _FOUND[verdict],
                        against=belief.against,
                        pool=phrase(pool),
                        why=label + belief.bounds(),
                        n=len(told),
                        limit=points(-limit),
                    )
                    found.append((verdict, said))
    return RuleResult(phrase("kept"), worst(verdict for verdict, _ in found), strictest_first(found))


def _beliefs(told: Sequence[_Told], asked: MetricLimit) -> list[Belief]:
    metric, slices = asked.metric, [one for one, _ in told]
    clusters = [cluster for one in slices for cluster in one.candidate.clusters]
    weights = np.concatenate([weight_of(one.candidate) for one in slices])
    candidate = np.concatenate([one.candidate.query_scores(metric) for one in slices])
    live = np.concatenate([one.live.query_scores(metric) for one in slices])
    spread, allowed = asked.scale * COMMON_SPREAD, asked.policy.loss_alpha(asked.tries)

    def belief(against: str, drop: Drop, center: float, share: float) -> Belief:
        mean, deviation = posterior(drop.points, drop.error, center=center, spread=spread)
        return Belief(against, drop, mean, deviation, share)

    found = [belief("live", measured_drop(live, candidate, clusters, weights), 0.0, allowed)]
    versions = _water(told, metric)
    if versions:
        water = high_water([live, *versions.values()], clusters, weights)
        debt = _debt(slices)
        below = measured_drop(water.scores, candidate, clusters, weights)
        gap = measured_drop(water.scores, live, clusters, weights)
        # A candidate is expected where live stands, not at the water.
        drop, center = Drop(below.points - debt, below.error), gap.points - debt
        found.append(belief(["live", *versions][water.best], drop, center, WATER_DOUBT * allowed))
    return found


def tells(one: OldSlice, policy: Policy) -> bool:
    """Whether anything was or is found here: certainly more than a random order of the gallery would find."""
    for result in (one.live, one.candidate):
        scores = result.query_scores(policy.metric)
        above = measured_drop(scores, np.full_like(scores, result.chance(policy.metric)), result.clusters)
        if above.points - OWN_FIGURES * above.error > 0:
            return True
    return False


def _comparable(one: OldSlice, policy: Policy) -> dict[str, SliceResult]:
    """Returns the versions that are not worse than live here for certain.

    A version from before a language was learned says nothing about that language, and all the more about the others.
    """
    live = one.live.query_scores(policy.metric)
    found = {}
    for name, result in one.versions:
        drop = measured_drop(live, result.query_scores(policy.metric), one.live.clusters)
        if drop.points - OWN_FIGURES * drop.error <= 0:
            found[name] = result
    return found


def _water(told: Sequence[_Told], metric: str) -> dict[str, FloatArray]:
    """Returns what each earlier version would score on all slices, with live's scores where it says nothing."""
    names = sorted({name for _, versions in told for name in versions})
    return {
        name: np.concatenate([versions.get(name, one.live).query_scores(metric) for one, versions in told])
        for name in names
    }


def _debt(slices: Sequence[OldSlice]) -> float:
    groups = [one.candidate.groups for one in slices]
    return sum(one.debt * size for one, size in zip(slices, groups, strict=True)) / sum(groups)
