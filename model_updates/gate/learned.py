"""What was learned: every taught slice gained for certain, and a searcher sees it.

*learned*: in its own gallery a taught slice gained more than the margin for certain, and beats guessing.
*visible*: among pictures of all domains, the language detected, it gained for certain too.

Bounds on single slices hold jointly (Holm over the family of a rule): with twenty slices at a plain 95 %, one sentence
of the report would be expected to be wrong.
"""

from collections.abc import Mapping, Sequence

from ingest.sentence import joined, phrase, template
from model_updates.evaluation import SliceResult, View
from model_updates.gate.comparison import Comparison, beats_guessing, compare, slice_name
from model_updates.gate.examined import CrossFitted, sign_flip_p
from model_updates.gate.report import Policy, RuleResult, Verdict, points, strictest_first, worst

Judged = tuple[Comparison, Verdict, str]
_GAINED = template("{slice} {note}: {move} ({points}, at least {low} with {sure} % confidence).")
_FOUND = {
    "learned": template("{slice} learned: {move} ({points}, at least {low} with {sure} % confidence)."),
    "perhaps learned": template(
        "{slice} perhaps learned: {move} ({points}, at least {low} with {sure} % confidence)."
    ),
    "not learned": template(
        "{slice} not learned: {move} ({points}, at least {low} with {sure} % confidence)."
    ),
    "visible among everything": template(
        "{slice} visible among everything: {move} ({points}, at least {low} with {sure} % confidence)."
    ),
}
"""How a note reads in a sentence; any other stands in `_GAINED` as it is."""


def judge_learned(
    taught: Sequence[tuple[SliceResult, SliceResult]],
    taught_pairs: Mapping[str, int],
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
    learned, learned_rows = _learned_rule(own, taught_pairs, policy)
    visible, visible_rows = _visible_rule(mixed, policy)
    return [learned, *visible], [*learned_rows, *visible_rows]


def _learned_rule(
    own: Sequence[Comparison], taught_pairs: Mapping[str, int], policy: Policy
) -> tuple[RuleResult, list[Judged]]:
    judged = [(comparison, *_learned_verdict(comparison, policy)) for comparison in own]
    said = [(verdict, _sentence(comparison, note, policy)) for comparison, verdict, note in judged]
    verdicts = [verdict for _, verdict, _ in judged]
    verdict = worst(verdicts)
    if verdict is Verdict.REJECT and not _rejects_all(own, verdicts, policy):
        verdict = Verdict.REVIEW
    measured = {slice_name(comparison.candidate) for comparison in own}
    for name in sorted(set(taught_pairs) - measured):
        verdict = worst((verdict, Verdict.REVIEW))
        unseen = phrase(
            "{language} was taught with {count} pairs, but no held-out pair shows what was learned. Upload pairs "
            "with split=test in that language, or decide yourself.",
            language=name,
            count=taught_pairs[name],
        )
        said.append((Verdict.REVIEW, unseen))
    if not said:
        verdict = Verdict.REVIEW
        nothing = phrase(
            "This update taught no slice that has held-out pairs, so nothing shows that it helps."
        )
        said.append((verdict, nothing))
    return RuleResult(phrase("learned"), verdict, strictest_first(said)), judged


def _rejects_all(taught: Sequence[Comparison], verdicts: Sequence[Verdict], policy: Policy) -> bool:
    """Whether nothing was learned, or a taught slice certainly got worse; one idle slice is for a person."""
    return Verdict.PROMOTE not in verdicts or any(is_worse(comparison, policy) for comparison in taught)


def is_worse(comparison: Comparison, policy: Policy) -> bool:
    """Whether a taught slice certainly got worse.

    One thing that falls by a place never spreads in a bootstrap, so of few things random signs have to say it, too.
    """
    if comparison.high >= 0 or comparison.candidate.groups >= policy.minimum_images:
        return comparison.high < 0
    one, alpha = CrossFitted(comparison.candidate, comparison.live, 0), 1.0 - comparison.level
    return sign_flip_p(-one.gains, alpha, policy.seed) <= alpha


def _learned_verdict(comparison: Comparison, policy: Policy) -> tuple[Verdict, str]:
    if is_worse(comparison, policy):
        return Verdict.REJECT, phrase("got worse")
    if comparison.candidate.groups < policy.minimum_images:
        return Verdict.REVIEW, (
            phrase(
                "has not enough held-out pairs ({count} things, {needed} needed)",
                count=comparison.candidate.groups,
                needed=policy.minimum_images,
            )
        )
    if comparison.change <= policy.learned_margin:
        return Verdict.REJECT, phrase("not learned")
    if not beats_guessing(comparison.candidate, policy):
        return Verdict.REJECT, phrase("no better than guessing")
    if comparison.low > policy.learned_margin:
        return Verdict.PROMOTE, phrase("learned")
    return Verdict.REVIEW, phrase("perhaps learned")


def _visible_rule(mixed: Sequence[Comparison], policy: Policy) -> tuple[list[RuleResult], list[Judged]]:
    if not mixed:
        return [], []
    judged = [(comparison, *_visible_verdict(comparison, policy)) for comparison in mixed]
    said = [
        (verdict, _sentence(comparison, phrase("{note} among everything", note=note), policy))
        for comparison, verdict, note in judged
    ]
    verdict = worst(verdict for _, verdict, _ in judged)
    return [RuleResult(phrase("visible"), verdict, strictest_first(said))], judged


def _visible_verdict(comparison: Comparison, policy: Policy) -> tuple[Verdict, str]:
    if is_worse(comparison, policy):
        return Verdict.REJECT, phrase("harder to find")
    if comparison.low > policy.learned_margin:
        return Verdict.PROMOTE, phrase("visible")
    gained = comparison.change > policy.learned_margin
    return Verdict.REVIEW, phrase("perhaps visible") if gained else phrase("not visible")


def _sentence(comparison: Comparison, note: str, policy: Policy) -> str:
    before, after = (
        100.0 * float(result.query_scores(policy.metric).mean())
        for result in (comparison.live, comparison.candidate)
    )
    said = phrase(
        _FOUND.get(note, _GAINED),
        slice=comparison.name,
        note=note,
        move=f"R {before:.1f} → {after:.1f}",
        points=points(comparison.change),
        low=points(comparison.low),
        sure=f"{100 * policy.confidence:g}",
    )
    return joined((said, comparison.candidate.caveat))
