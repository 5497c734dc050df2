"""What was learned: every taught slice gained for certain, and a searcher sees it.

*learned*: in its own gallery a taught slice gained more than the margin for certain, and beats guessing.
*visible*: among pictures of all domains, the language detected, it gained for certain too.

Bounds on single slices hold jointly (Holm over the family of a rule): with twenty slices at a plain 95 %, one sentence
of the report would be expected to be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from model_updates.evaluation import SliceResult, View
from model_updates.gate.comparison import Comparison, beats_guessing, compare
from model_updates.gate.report import Policy, RuleResult, Verdict, points, strictest_first, worst

Judged = tuple[Comparison, Verdict, str]


def judge_learned(
    taught: Sequence[tuple[SliceResult, SliceResult]],
    taught_languages: Mapping[str, int],
    policy: Policy,
    tries: int,
) -> tuple[list[RuleResult], list[Judged]]:
    """Judges the taught slices, given as (candidate, live), in their own galleries and among everything."""
    own, mixed = (
        compare(
            [pair for pair in taught if pair[0].view is view], -policy.learned_margin, policy, tries=tries
        )
        for view in (View.OWN, View.MIXED)
    )
    learned, learned_rows = _learned_rule(own, taught_languages, policy)
    visible, visible_rows = _visible_rule(mixed, policy)
    return [learned, *visible], [*learned_rows, *visible_rows]


def _learned_rule(
    own: Sequence[Comparison], taught_languages: Mapping[str, int], policy: Policy
) -> tuple[RuleResult, list[Judged]]:
    judged = [(comparison, *_learned_verdict(comparison, policy)) for comparison in own]
    said = [(verdict, _sentence(comparison, note, policy)) for comparison, verdict, note in judged]
    verdicts = [verdict for _, verdict, _ in judged]
    verdict = worst(verdicts)
    if verdict is Verdict.REJECT and not _rejects_all(own, verdicts):
        verdict = Verdict.REVIEW
    measured = {comparison.candidate.language for comparison in own}
    for language in sorted(set(taught_languages) - measured):
        verdict = worst((verdict, Verdict.REVIEW))
        unseen = (
            f"{language} was taught with {taught_languages[language]} pairs, but no held-out pair shows what "
            "was learned. Upload pairs with split=test in that language, or decide yourself."
        )
        said.append((Verdict.REVIEW, unseen))
    if not said:
        verdict = Verdict.REVIEW
        nothing = "This update taught no slice that has held-out pairs, so nothing shows that it helps."
        said.append((verdict, nothing))
    return RuleResult("learned", verdict, strictest_first(said)), judged


def _rejects_all(taught: Sequence[Comparison], verdicts: Sequence[Verdict]) -> bool:
    """Whether nothing was learned, or a taught slice certainly got worse; one idle slice is for a person."""
    return Verdict.PROMOTE not in verdicts or any(comparison.high < 0 for comparison in taught)


def _learned_verdict(comparison: Comparison, policy: Policy) -> tuple[Verdict, str]:
    if comparison.high < 0:
        return Verdict.REJECT, "got worse"
    if comparison.candidate.groups < policy.minimum_images:
        return Verdict.REVIEW, (
            f"has not enough held-out pairs ({comparison.candidate.groups} things, {policy.minimum_images} needed)"
        )
    if comparison.change <= policy.learned_margin:
        return Verdict.REJECT, "not learned"
    if not beats_guessing(comparison.candidate, policy):
        return Verdict.REJECT, "no better than guessing"
    if comparison.low > policy.learned_margin:
        return Verdict.PROMOTE, "learned"
    return Verdict.REVIEW, "perhaps learned"


def _visible_rule(mixed: Sequence[Comparison], policy: Policy) -> tuple[list[RuleResult], list[Judged]]:
    if not mixed:
        return [], []
    judged = [(comparison, *_visible_verdict(comparison, policy)) for comparison in mixed]
    said = [
        (verdict, _sentence(comparison, f"{note} among everything", policy))
        for comparison, verdict, note in judged
    ]
    verdict = worst(verdict for _, verdict, _ in judged)
    return [RuleResult("visible", verdict, strictest_first(said))], judged


def _visible_verdict(comparison: Comparison, policy: Policy) -> tuple[Verdict, str]:
    if comparison.high < 0:
        return Verdict.REJECT, "harder to find"
    if comparison.low > policy.learned_margin:
        return Verdict.PROMOTE, "visible"
    return Verdict.REVIEW, "perhaps visible" if comparison.change > policy.learned_margin else "not visible"


def _sentence(comparison: Comparison, note: str, policy: Policy) -> str:
    before, after = (
        100.0 * float(result.query_scores(policy.metric).mean())
        for result in (comparison.live, comparison.candidate)
    )
    said = (
        f"{comparison.name} {note}: R {before:.1f} → {after:.1f} ({points(comparison.change)}, at least "
        f"{points(comparison.low)} with {100 * policy.confidence:g} % confidence)."
    )
    return f"{said} {comparison.candidate.caveat}".rstrip()
