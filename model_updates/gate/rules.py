"""The gate: does the data show that a candidate learned what it was taught and kept what was known?

Five rules, each promote, review or reject; the strictest decides.

*learned* and *visible* (`learned.py`): taught slices gained for certain, in their own gallery and among everything.
*kept* (`pool.py`) and *worst slice* (`kept.py`): old slices, together and each, cannot have lost more than the policy
allows, against live and against the best that versions before were.
*same things* (`concepts.py`): captions that name things find no fewer pictures of them; where no caption does there is
no such rule.
*canaries*: pinned queries keep their answer.
A chunk that holds out too few is judged by what copies found of all its pairs (`examined.py`), with a rule more:
*displacement*, what old captions lose their place to new pictures.

A rule passes when the data exclude a breach of the policy, rejects when they show one, and asks for a review between
the two. A slice whose ranks are all the same as before has lost exactly nothing, whatever its size. Candidates that
were held against the same live version spend one error rate: who tries twenty times must not pass by luck.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ingest.sentence import phrase
from model_updates.evaluation import SliceResult, View
from model_updates.gate.comparison import Comparison, slice_name
from model_updates.gate.concepts import judge_concepts
from model_updates.gate.examined import CrossFitted, judge_displacement, judge_examined
from model_updates.gate.kept import FIRST, OldSlice, SliceStatement, judge_each
from model_updates.gate.learned import judge_learned
from model_updates.gate.pool import judge_pool, tells
from model_updates.gate.report import GateReport, GateRow, Policy, RuleResult, Verdict, strictest_first, worst
from model_updates.gate.shrinkage import one_sided

__all__ = [
    "GateInputError",
    "GateReport",
    "GateRow",
    "Past",
    "Policy",
    "RuleResult",
    "Verdict",
    "judge",
    "judge_small",
]

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Past:
    """What came before on one slice in one view."""

    # name and result of versions that were live before, on the same pairs
    versions: Sequence[tuple[str, SliceResult]] = ()
    debt: float = 0.0  # points that a person accepted to lose there by promoting in spite of a review


class GateInputError(ValueError):
    """Raised when measurements that should be compared do not belong together or are missing."""


def judge(
    *,
    candidate: Mapping[Key, SliceResult],
    live: Mapping[Key, SliceResult],
    new_slices: Collection[Key],
    taught_pairs: Mapping[str, int],
    canaries: Sequence[tuple[str, bool]],
    policy: Policy,
    past: Mapping[Key, Past] | None = None,
    attempts: int = 1,
) -> GateReport:
    """Judges a candidate encoder by its ranks on held-out pairs.

    A key stands for one slice in one view. `live` is measured on the same pairs. `new_slices` are the keys of what this
    update taught, measured on the chunk's own pairs; all others are old. `taught_pairs` counts this update's training
    pairs by the name of their slice; `canaries` are pinned queries, and whether the candidate still gives the pinned
    answer. `past` has of old slices how versions that were live before rank the same pairs, and what was accepted.
    `attempts` candidates, this one included, were held against this live version.

    Raises:
        GateInputError: when a slice is missing on one side or was measured on other pairs.
    """
    past = past or {}
    _check_inputs(candidate, live, past, new_slices)
    order = sorted(
        candidate, key=lambda key: (slice_name(candidate[key]), list(View).index(candidate[key].view))
    )
    taught = [(candidate[key], live[key]) for key in order if key in new_slices]
    old = [
        OldSlice(candidate[key], live[key], _distinct(live[key], known.versions), known.debt)
        for key in order
        if key not in new_slices
        for known in [past.get(key, Past())]
    ]
    learned, learned_rows = judge_learned(taught, taught_pairs, policy, attempts)
    each = judge_each(old, policy, attempts)
    return GateReport(
        policy=policy,
        rules=(
            *learned,
            judge_pool(old, policy, attempts),
            _worst_slice(old, each, policy),
            *judge_concepts(old, policy, attempts),
            _judge_canaries(canaries, policy),
        ),
        rows=(
            *(_new_row(comparison, verdict, note, policy) for comparison, verdict, note in learned_rows),
            *(_old_row(one, [judged for judged in each if judged.slice is one], policy) for one in old),
        ),
        attempts=attempts,
    )


def judge_small(
    report: GateReport,
    examined: Sequence[CrossFitted],
    old: Sequence[tuple[SliceResult, SliceResult]],
    taught_pairs: Mapping[str, int],
    drawn: Sequence[tuple[SliceResult, SliceResult]] = (),
) -> GateReport:
    """Judges a small chunk by what copies found of all its pairs, once the held-out ones alone were judged.

    `report` is of the held-out pairs, of an update that moved nothing known. `examined` then says what was learned, and
    what old captions lose their place is bounded, in the (candidate, live) of old slices among everything and of the
    `drawn` probes among themselves. Where the held-out pairs might have passed by themselves this is a second look, and
    counts as an attempt more.
    """
    policy = report.policy
    held = [row.images for row in report.rows if row.role == "new" and row.view == View.OWN]
    attempt = report.attempts + (bool(held) and min(held) >= policy.minimum_images)
    learned, rows = judge_examined(examined, taught_pairs, policy, attempt)
    told, of_probes = ([pair for pair in some if tells(OldSlice(*pair), policy)] for some in (old, drawn))
    kept = [rule for rule in report.rules if rule.rule not in {one.rule for one in learned}]
    return replace(
        report,
        attempts=attempt,
        rules=(*learned, judge_displacement(told, policy, of_probes), *kept),
        rows=(
            *(_new_row(comparison, verdict, note, policy) for comparison, verdict, note in rows),
            *(row for row in report.rows if row.role != "new"),
        ),
    )


def _distinct(
    live: SliceResult, versions: Sequence[tuple[str, SliceResult]]
) -> tuple[tuple[str, SliceResult], ...]:
    """Returns one of all versions that rank alike, and none that ranks as live does."""
    kept: list[tuple[str, SliceResult]] = []
    for name, result in versions:
        others = [live, *(other for _, other in kept)]
        if not any(np.array_equal(result.text_ranks, other.text_ranks) for other in others):
            kept.append((name, result))
    return tuple(kept)


def _check_inputs(
    candidate: Mapping[Key, SliceResult],
    live: Mapping[Key, SliceResult],
    past: Mapping[Key, Past],
    new_slices: Collection[Key],
) -> None:
    missing = set(candidate) ^ set(live) | (set(new_slices) | set(past)) - set(candidate)
    if missing:
        names = ", ".join(sorted(map(str, missing)))
        raise GateInputError(
            f"Slice {names} was not measured for both candidate and live. Measure both again."
        )
    for key, result in candidate.items():
        for reference, other in [("live", live[key]), *past.get(key, Past()).versions]:
            if other.image_ids != result.image_ids or not np.array_equal(
                other.caption_image, result.caption_image
            ):
                raise GateInputError(
                    f"Slice {slice_name(result)} was measured on {len(result.caption_image)} captions and "
                    f"{len(result.image_ids)} images for the candidate, but on other pairs "
                    f"({len(other.caption_image)} and {len(other.image_ids)}) for {reference}. "
                    "Measure all versions again on the newest held-out pairs."
                )


def _worst_slice(old: Sequence[OldSlice], each: Sequence[SliceStatement], policy: Policy) -> RuleResult:
    reasons = strictest_first(
        (judged.verdict, judged.sentence(policy)) for judged in each if judged.verdict is not Verdict.PROMOTE
    )
    if each and not reasons:
        reasons = (
            phrase("Worst old slice: {why}", why=max(each, key=lambda judged: judged.bound).sentence(policy)),
        )
    elif old and not each:
        reasons = (phrase("No rank of any old slice changed ({count} measured).", count=len(old)),)
    return RuleResult(phrase("worst slice"), worst(judged.verdict for judged in each), reasons)


def _judge_canaries(canaries: Sequence[tuple[str, bool]], policy: Policy) -> RuleResult:
    if not canaries:
        return RuleResult(phrase("canaries"), Verdict.PROMOTE, ())
    lost = [query for query, kept in canaries if not kept]
    if not lost:
        return RuleResult(
            phrase("canaries"),
            Verdict.PROMOTE,
            (phrase("All {count} pinned queries keep their answer.", count=len(canaries)),),
        )
    verdict = Verdict.REJECT if len(lost) > policy.canary_share * len(canaries) else Verdict.PROMOTE
    named = ", ".join(f"“{query}”" for query in lost[:5]) + (" …" if len(lost) > 5 else "")
    said = phrase(
        "{count} of {all} pinned queries lose their answer: {queries} (the policy allows {share} %).",
        count=len(lost),
        all=len(canaries),
        queries=named,
        share=f"{100 * policy.canary_share:.0f}",
    )
    return RuleResult(phrase("canaries"), verdict, (said,))


# ------------------------------------------------------------------------------------------------- the rows


def _new_row(comparison: Comparison, verdict: Verdict, note: str, policy: Policy) -> GateRow:
    candidate, live = comparison.candidate, comparison.live
    return GateRow(
        role="new",
        difference=comparison.change,
        low=comparison.low,
        high=comparison.high,
        verdict=verdict,
        note=note,
        **_measured(candidate, live, policy),
    )


def _old_row(one: OldSlice, judged: Sequence[SliceStatement], policy: Policy) -> GateRow:
    facts = _measured(one.candidate, one.live, policy)
    if not judged:
        return GateRow(
            role="kept",
            difference=0.0,
            low=0.0,
            high=0.0,
            verdict=Verdict.PROMOTE,
            note=phrase("unchanged"),
            debt=one.debt,
            **facts,
        )
    against = {(entry.metric, not entry.is_water): entry for entry in judged}
    live, water = against[policy.metric, True], against.get((policy.metric, False))
    first = against.get((FIRST, True), live)
    verdict = worst(entry.verdict for entry in judged)
    level = None if water is None else facts["candidate"] + water.drop.points + one.debt
    return GateRow(
        role="kept",
        difference=-live.drop.points,
        low=-live.bound,
        high=-live.drop.points + one_sided(policy.confidence) * live.drop.error,
        verdict=verdict,
        note=next(entry.note for entry in judged if entry.verdict is verdict),
        first_low=-first.bound,
        water=level,
        water_version=None if water is None else water.against,
        water_difference=None if water is None else -water.drop.points,
        water_low=None if water is None else -water.bound,
        debt=one.debt,
        **facts,
    )


def _measured(candidate: SliceResult, live: SliceResult, policy: Policy) -> dict[str, Any]:
    before, after = live.recalls(), candidate.recalls()
    return {
        "slice": slice_name(candidate),
        "view": str(candidate.view),
        "images": candidate.groups,
        "captions": len(candidate.caption_image),
        "live": 100.0 * float(live.query_scores(policy.metric).mean()),
        "candidate": 100.0 * float(candidate.query_scores(policy.metric).mean()),
        "live_recalls": before,
        "candidate_recalls": after,
        "first_difference": after[FIRST] - before[FIRST],
    }
