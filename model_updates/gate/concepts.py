"""Whether old captions that name things still find those things among everything.

Where captions are names of classes, many pictures are as right as a caption's own, and its rank says little: pictures
of another style may fill the first places with something else. So the share of the first ten that shows the same thing
is judged beside the recalls. Styles of the same things compete, and no update can keep them from that: a loss is
never rejected, a person decides, and is told what a search in one domain finds.
"""

from collections.abc import Sequence

import numpy as np

from ingest.sentence import phrase
from model_updates.evaluation import View
from model_updates.gate.comparison import Drop, measured_drop
from model_updates.gate.kept import OldSlice
from model_updates.gate.report import Policy, RuleResult, Verdict
from model_updates.gate.shrinkage import one_sided
from model_updates.recalls import CONCEPT, ELSEWHERE


def judge_concepts(old: Sequence[OldSlice], policy: Policy, attempts: int) -> tuple[RuleResult, ...]:
    """Returns the rule of things; none where no old slice among everything names things and changed.

    Candidates that were held against one live version share the error rate.
    """
    asked = [one for one in old if _is_asked(one)]
    if not asked:
        return ()
    level = 1.0 - policy.loss_alpha(attempts) / len(asked)
    lost = []
    for one in asked:
        drop = _drop(one)
        if drop.points - one_sided(level) * drop.error > policy.slice_drop:
            lost.append(_sentence(one, policy))
    verdict = Verdict.REVIEW if lost else Verdict.PROMOTE
    kept = phrase("No slice finds fewer pictures of the same thing than the policy allows.")
    return (RuleResult(phrase("same things"), verdict, tuple(lost) or (kept,)),)


def _is_asked(one: OldSlice) -> bool:
    candidate, live = one.candidate, one.live
    return (
        candidate.view is View.MIXED
        and candidate.is_labelled
        and live.is_labelled
        and not np.array_equal(candidate.concepts, live.concepts, equal_nan=True)
    )


def _drop(one: OldSlice) -> Drop:
    """Returns the drop of the share that shows the same thing; captions of one thing rise and fall together."""
    names = np.isfinite(one.live.concepts[:, 0])
    before, after = one.live.concepts[names], one.candidate.concepts[names]
    return measured_drop(before[:, 0], after[:, 0], [str(int(thing)) for thing in before[:, 2]])


def _sentence(one: OldSlice, policy: Policy) -> str:
    before, after = one.live.recalls(), one.candidate.recalls()
    return phrase(
        "{slice} finds fewer pictures of the same thing: of 100 first answers {after} show it, before {before} "
        "(the policy allows {limit} points). Styles of the same things compete: {now} are of other domains, before "
        "{then}. A search in this domain alone does not meet them.",
        slice=one.name,
        after=f"{after[CONCEPT]:.0f}",
        before=f"{before[CONCEPT]:.0f}",
        limit=f"{policy.slice_drop:g}",
        now=f"{after[ELSEWHERE]:.0f}",
        then=f"{before[ELSEWHERE]:.0f}",
    )
