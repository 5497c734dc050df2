"""The gate: does the data show that a candidate learned what it was taught and kept what was known?

Four rules, each promote, review or reject; the strictest decides.

*learned*: every taught slice gained more than the margin for certain (lower bound), and beats guessing.
*kept*: the old slices together, each weighing the same, cannot have lost more than the policy allows (upper
bound).
*worst slice*: nor can any one of them, against live and against the best version that ever was.
*canaries*: pinned queries keep their answer.

A rule *rejects* when the best estimate itself breaks the policy, *asks for review* when the estimate is fine
but chance alone could hide a breach, and passes otherwise. A slice under the policy's size is never proof of
keeping or learning; it rejects only if even its wide bounds exclude an acceptable result. A slice whose ranks
are all the same as before has lost exactly nothing, whatever its size. A gap to the best version that live
already has, and that the candidate does not widen, was accepted with live and rejects nothing.

Statements on single slices hold jointly (Holm over the family of a rule): with twenty slices at a plain
95 %, one sentence of the report would be expected to be wrong.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from model_updates.comparison import Comparison, beats_guessing, compare, pooled_drop, slice_name
from model_updates.evaluation import SliceResult
from model_updates.gate_report import GateReport, GateRow, Policy, RuleResult, Verdict, points, worst

__all__ = ["GateInputError", "GateReport", "GateRow", "Policy", "RuleResult", "Verdict", "judge"]

Key = TypeVar("Key", bound=Hashable)


class GateInputError(ValueError):
    """Raised when measurements that should be compared do not belong together or are missing."""


def judge(
    *,
    candidate: Mapping[Key, SliceResult],
    live: Mapping[Key, SliceResult],
    best_ever: Mapping[Key, tuple[str, SliceResult]],
    new_slices: Collection[Key],
    taught_languages: Mapping[str, int],
    canaries: Sequence[tuple[str, bool]],
    policy: Policy,
) -> GateReport:
    """Judges a candidate encoder by its ranks on held-out pairs.

    Args:
        candidate: its result on every slice.
        live: the live version's results, measured on the same revision of the same slices.
        best_ever: version and result where another version than live is the best so far, same revision.
        new_slices: the keys that this update taught; all others are old.
        taught_languages: training pairs per language of this update.
        canaries: pinned queries, and whether the candidate still gives the pinned answer.
        policy: what must be shown.

    Raises:
        GateInputError: when a slice is missing on one side or was measured on other pairs.
    """
    _check_inputs(candidate, live, best_ever, new_slices)
    new_keys = sorted(set(new_slices), key=lambda key: slice_name(candidate[key]))
    old_keys = sorted(set(candidate) - set(new_slices), key=lambda key: slice_name(candidate[key]))
    taught = compare([("live", candidate[k], live[k]) for k in new_keys], -policy.learned_margin, policy)
    best = [(best_ever[k][0], candidate[k], best_ever[k][1]) for k in old_keys if k in best_ever]
    old = compare([("live", candidate[k], live[k]) for k in old_keys] + best, policy.slice_drop, policy)
    against_live, against_best = old[: len(old_keys)], {c.name: c for c in old[len(old_keys) :]}

    learned, learned_rows = _judge_learned(taught, taught_languages, policy)
    kept_each, kept_rows = _judge_each_kept(against_live, against_best, policy)
    return GateReport(
        policy=policy,
        rules=(
            learned,
            _judge_pool(against_live, against_best, policy),
            kept_each,
            _judge_canaries(canaries, policy),
        ),
        rows=(*learned_rows, *kept_rows),
    )


def _check_inputs(
    candidate: Mapping[Key, SliceResult],
    live: Mapping[Key, SliceResult],
    best_ever: Mapping[Key, tuple[str, SliceResult]],
    new_slices: Collection[Key],
) -> None:
    missing = set(candidate) ^ set(live) | (set(new_slices) | set(best_ever)) - set(candidate)
    if missing:
        names = ", ".join(sorted(map(str, missing)))
        raise GateInputError(
            f"Slice {names} was not measured for both candidate and live. Measure both again."
        )
    for key, result in candidate.items():
        others = [("live", live[key]), *([best_ever[key]] if key in best_ever else [])]
        for reference, other in others:
            if other.image_ids != result.image_ids or not np.array_equal(
                other.caption_image, result.caption_image
            ):
                raise GateInputError(
                    f"Slice {slice_name(result)} was measured on {len(result.caption_image)} captions and "
                    f"{len(result.image_ids)} images for the candidate, but on other pairs "
                    f"({len(other.caption_image)} and {len(other.image_ids)}) for {reference}. "
                    "Measure all versions again on the newest held-out pairs."
                )


def _judge_learned(
    taught: Sequence[Comparison], taught_languages: Mapping[str, int], policy: Policy
) -> tuple[RuleResult, list[GateRow]]:
    rows, verdicts, reasons = [], [], []
    for comparison in taught:
        verdict, note = _learned_verdict(comparison, policy)
        verdicts.append(verdict)
        reasons.append(
            f"{comparison.name} {note}: {_movement(comparison, policy)}, at least {points(comparison.low)} "
            f"{_certainty(policy)})."
        )
        rows.append(_row(comparison, "new", None, verdict, note, policy))
    verdict = worst(verdicts)
    if verdict is Verdict.REJECT and not _rejects_all(taught, verdicts):
        verdict = Verdict.REVIEW
    measured = {comparison.candidate.language for comparison in taught}
    for language in sorted(set(taught_languages) - measured):
        verdict = worst((verdict, Verdict.REVIEW))
        reasons.append(
            f"{language} was taught with {taught_languages[language]} pairs, but no held-out pair shows what "
            "was learned. Upload pairs with split=test in that language, or decide yourself."
        )
    if not reasons:
        verdict = Verdict.REVIEW
        reasons.append("This update taught no slice that has held-out pairs, so nothing shows that it helps.")
    return RuleResult("learned", verdict, tuple(reasons)), rows


def _rejects_all(taught: Sequence[Comparison], verdicts: Sequence[Verdict]) -> bool:
    """Whether nothing was learned, or a taught slice certainly got worse; one idle slice is for a person."""
    return Verdict.PROMOTE not in verdicts or any(comparison.high < 0 for comparison in taught)


def _learned_verdict(comparison: Comparison, policy: Policy) -> tuple[Verdict, str]:
    if comparison.high < 0:
        return Verdict.REJECT, "got worse"
    if comparison.candidate.captioned_images < policy.minimum_images:
        return Verdict.REVIEW, _too_small(comparison, policy)
    if comparison.change <= policy.learned_margin:
        return Verdict.REJECT, "not learned"
    if not beats_guessing(comparison, policy):
        return Verdict.REJECT, "no better than guessing"
    if comparison.low > policy.learned_margin:
        return Verdict.PROMOTE, "learned"
    return Verdict.REVIEW, "perhaps learned"


def _judge_each_kept(
    against_live: Sequence[Comparison], against_best: Mapping[str, Comparison], policy: Policy
) -> tuple[RuleResult, list[GateRow]]:
    rows, verdicts, reasons = [], [], []
    for comparison in against_live:
        best = against_best.get(comparison.name)
        judged = [comparison] if best is None or _is_inherited(comparison) else [comparison, best]
        outcomes = [_kept_verdict(one, policy) for one in judged]
        verdict = worst(outcome for outcome, _ in outcomes)
        note = next(note for outcome, note in outcomes if outcome is verdict)
        rows.append(_row(comparison, "kept", best, verdict, note, policy))
        verdicts.append(verdict)
        reasons += [
            f"{one.name} {note} against {one.reference_name}: {_movement(one, policy)}, at worst "
            f"{points(one.low)} {_certainty(policy)}; the policy allows {points(-policy.slice_drop)})."
            for one, (outcome, note) in zip(judged, outcomes, strict=True)
            if outcome is not Verdict.PROMOTE
        ]
    if against_live and not reasons:
        least = min(against_live, key=lambda comparison: comparison.low)
        reasons.append(
            f"Worst old slice {least.name}: {_movement(least, policy)}, at worst {points(least.low)} "
            f"{_certainty(policy)}; the policy allows {points(-policy.slice_drop)})."
        )
    return RuleResult("worst slice", worst(verdicts), tuple(reasons)), rows


def _is_inherited(against_live: Comparison) -> bool:
    """Whether a gap to the best version is live's own and not widened by this update."""
    return against_live.change >= 0


def _kept_verdict(comparison: Comparison, policy: Policy) -> tuple[Verdict, str]:
    if comparison.is_identical:
        return Verdict.PROMOTE, "unchanged"
    if comparison.high < -policy.slice_drop:
        return Verdict.REJECT, "lost"
    if comparison.candidate.captioned_images < policy.minimum_images:
        return Verdict.REVIEW, _too_small(comparison, policy)
    return _drop_verdict(-comparison.change, -comparison.low, policy.slice_drop)


def _drop_verdict(drop: float, highest_drop: float, limit: float) -> tuple[Verdict, str]:
    if drop > limit:
        return Verdict.REJECT, "lost"
    if highest_drop >= limit:
        return Verdict.REVIEW, "perhaps lost"
    return Verdict.PROMOTE, "kept"


def _judge_pool(
    against_live: Sequence[Comparison], against_best: Mapping[str, Comparison], policy: Policy
) -> RuleResult:
    if not against_live:
        return RuleResult(
            "kept", Verdict.REVIEW, ("No old slice was measured, so nothing shows what was kept.",)
        )
    families = [("live", list(against_live))]
    if against_best:
        mixed = [c if _is_inherited(c) else against_best.get(c.name, c) for c in against_live]
        families.append(("the best ever", mixed))
    verdicts, reasons = [], []
    for reference_name, comparisons in families:
        drop = pooled_drop(comparisons, policy)
        highest = 100.0 * drop.high(policy.confidence)
        verdict, note = _drop_verdict(100.0 * drop.difference, highest, policy.pooled_drop)
        verdicts.append(verdict)
        reasons.append(
            f"Old slices together {note} against {reference_name}: {points(-100.0 * drop.difference)} on "
            f"average over {len(comparisons)}, at worst {points(-highest)} {_certainty(policy)} "
            f"(the policy allows {points(-policy.pooled_drop)})."
        )
    return RuleResult("kept", worst(verdicts), tuple(reasons))


def _judge_canaries(canaries: Sequence[tuple[str, bool]], policy: Policy) -> RuleResult:
    if not canaries:
        return RuleResult("canaries", Verdict.PROMOTE, ())
    lost = [query for query, kept in canaries if not kept]
    if not lost:
        return RuleResult(
            "canaries", Verdict.PROMOTE, (f"All {len(canaries)} pinned queries keep their answer.",)
        )
    verdict = Verdict.REJECT if len(lost) > policy.canary_share * len(canaries) else Verdict.PROMOTE
    named = ", ".join(f"“{query}”" for query in lost[:5]) + (" and more" if len(lost) > 5 else "")
    return RuleResult(
        "canaries",
        verdict,
        (
            f"{len(lost)} of {len(canaries)} pinned queries lose their answer: {named} (the policy allows "
            f"{100 * policy.canary_share:.0f} %).",
        ),
    )


def _too_small(comparison: Comparison, policy: Policy) -> str:
    images = comparison.candidate.captioned_images
    return f"has not enough held-out pairs ({images} images, {policy.minimum_images} needed)"


def _movement(comparison: Comparison, policy: Policy) -> str:
    before, after = (
        100.0 * float(result.query_scores(policy.metric).mean())
        for result in (comparison.reference, comparison.candidate)
    )
    return f"R {before:.1f} → {after:.1f} ({points(comparison.change)}"


def _certainty(policy: Policy) -> str:
    return f"with {100 * policy.confidence:g} % confidence"


def _row(
    comparison: Comparison,
    role: str,
    best: Comparison | None,
    verdict: Verdict,
    note: str,
    policy: Policy,
) -> GateRow:
    live, candidate = comparison.reference, comparison.candidate
    return GateRow(
        slice=comparison.name,
        role=role,
        images=candidate.captioned_images,
        captions=len(candidate.caption_image),
        live=100.0 * float(live.query_scores(policy.metric).mean()),
        candidate=100.0 * float(candidate.query_scores(policy.metric).mean()),
        difference=comparison.change,
        low=comparison.low,
        high=comparison.high,
        best_ever=None if best is None else 100.0 * float(best.reference.query_scores(policy.metric).mean()),
        best_version=None if best is None else best.reference_name,
        best_low=None if best is None else best.low,
        live_recalls=live.recalls(),
        candidate_recalls=candidate.recalls(),
        verdict=verdict,
        note=note,
    )
