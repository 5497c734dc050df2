"""Small chunks: every pair ranked by a copy that had not learned it, and whether that decides.

A chunk of some hundred pairs holds out too few to show anything. So five copies are trained, each without a fifth of
its things, and each pair is looked up once by the copy that did not learn it. What its picture gained is
``d = ln(1 + rank before) - ln(1 + rank after)``, ranks from 0, averaged over the captions of one thing; under an update
that does nothing each thing's d is as likely to be positive as negative, which gives an exact test by random signs.
Only an update that moved nothing known is judged so, since what old captions can then lose is their place alone: the
*displacement*, which the data must bound.

Sources: Fisher, *The Design of Experiments*, 1935 (signs); Stone, "Cross-validatory choice", 1974 (folds).
"""

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ingest.sentence import Sentence, joined, phrase
from model_updates.evaluation import SliceResult, View
from model_updates.gate.bootstrap import FloatArray, holm_levels, paired_bootstrap
from model_updates.gate.comparison import Comparison, Drop, measured_drop, slice_name
from model_updates.gate.report import Policy, RuleResult, Verdict, points, strictest_first, worst

FOLDS = 5
FEWEST_THINGS = 40  # below, no test of a slice decides
ENOUGH_THINGS = 100  # from here on, no gain at all is a verdict
LEAST_GAIN = 1.0  # points of the policy's metric, in both views
MOST_DISPLACED = 1.0  # points that old captions may lose among everything
FEWEST_OLD = 100  # old things that must look for their picture
BOUND = 0.975  # of every interval a person reads
ONE_SIDED = 1.645  # the normal quantile of 95 %
ONE_RECALL = 33.4  # points, rounded up: one thing alone falls by one recall of three
MOST_SIGNS = 1_000_000  # draws; a level below ten of these cannot be reached, and a person decides
BORNE_OUT = 0.1  # of the pictures; so many of a hundred false captions bear themselves out by chance
DECIDES = 3.52  # standard errors: a two-point test at .0125 with nine chances in ten
_SIGNS_AT_ONCE = 4096

Judged = tuple[Comparison, Verdict, str]


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """One taught slice in one view: all its pairs, each ranked among pictures that its copy had not learned."""

    candidate: SliceResult  # ranks under the copies
    live: SliceResult  # ranks under the live version, in the same galleries
    pictures: int  # in the smallest of these galleries

    @property
    def name(self) -> str:
        """The slice, `de/photo`."""
        return slice_name(self.candidate)

    @cached_property
    def gains(self) -> FloatArray:
        """(things,) how much sooner each thing is found, in log ranks; negative is later."""
        before, after = (np.log1p(ranks.text_ranks) for ranks in (self.live, self.candidate))
        _, thing = np.unique(np.asarray(self.candidate.clusters), return_inverse=True)
        return np.asarray(np.bincount(thing, weights=before - after) / np.bincount(thing))

    def change(self, policy: Policy) -> float:
        """Returns how many points of the policy's metric were gained."""
        after, before = (one.query_scores(policy.metric).mean() for one in (self.candidate, self.live))
        return 100.0 * float(after - before)


def sign_flip_p(gains: FloatArray, alpha: float, seed: int | Sequence[int] = 0) -> float:
    """Returns the chance of at least so large a sum had each gain's sign been tossed.

    ``p = (1 + #{sum(s * d) >= sum(d)}) / (1 + B)`` with at least ``10 / alpha`` tosses B.
    """
    found = gains[gains != 0]
    if not len(found):
        return 1.0
    tosses = min(MOST_SIGNS, max(1_000, math.ceil(10 / alpha)))
    random, total, as_large = np.random.default_rng(seed), float(found.sum()), 0
    for start in range(0, tosses, _SIGNS_AT_ONCE):
        heads = random.integers(0, 2, (min(_SIGNS_AT_ONCE, tosses - start), len(found)), dtype=np.int8)
        # The sum of s * d is that of the heads less that of the tails; what equals the total but for rounding
        # reaches it.
        as_large += int(np.count_nonzero(2.0 * (heads.astype(np.float64) @ found) - total >= total - 1e-9))
    return (1 + as_large) / (1 + tosses)


def pairs_that_decide(gains: FloatArray) -> int | None:
    """Returns how many things in all would decide a gain like this, None where there is none."""
    mean = float(gains.mean())
    return math.ceil((DECIDES * float(gains.std(ddof=1)) / mean) ** 2) if mean > 0 else None


def borne_out(examined: Sequence[CrossFitted]) -> frozenset[str]:
    """Returns the pictures, by id, that show what all their captions say, as far as copies can tell.

    A copy that had not learned a caption put its picture among the best `BORNE_OUT`, alone.
    """
    found: dict[str, bool] = {}
    for one in examined:
        if one.candidate.view is View.OWN:
            near = one.candidate.text_ranks < BORNE_OUT * one.pictures
            for place, is_near in zip(one.candidate.caption_image, near, strict=True):
                image_id = one.candidate.image_ids[place]
                found[image_id] = found.get(image_id, True) and bool(is_near)
    return frozenset(image_id for image_id, is_right in found.items() if is_right)


def judge_examined(
    examined: Sequence[CrossFitted], taught_pairs: Mapping[str, int], policy: Policy, attempt: int
) -> tuple[list[RuleResult], list[Judged]]:
    """Judges the taught slices of a small chunk: *learned* in their own galleries, *visible* among everything.

    A slice passes where both views do: at least `FEWEST_THINGS`, a gain beyond chance at this attempt's share of the
    error rate (Holm over slices), and `LEAST_GAIN` points. It is rejected where it certainly got worse alone, or where
    `ENOUGH_THINGS` show no gain. Whatever lies between is for a person.
    """
    levels = _levels(examined, policy, attempt)
    rules: list[RuleResult] = []
    rows: list[Judged] = []
    for view, title in ((View.OWN, phrase("learned")), (View.MIXED, phrase("visible"))):
        judged = [
            (one, *_verdict(one, levels[one.name], policy)) for one in examined if one.candidate.view is view
        ]
        said = [(verdict, _sentence(one, note, policy)) for one, verdict, note in judged]
        if view is View.OWN:
            said += _not_examined({one.name for one, _, _ in judged}, taught_pairs)
        rules.append(RuleResult(title, worst(verdict for verdict, _ in said), strictest_first(said)))
        rows += [(_compared(one, policy), verdict, note) for one, verdict, note in judged]
    return rules, rows


def _levels(examined: Sequence[CrossFitted], policy: Policy, attempt: int) -> dict[str, float]:
    """Returns by slice the level at which chance must be excluded in both of its views (Holm over the slices)."""
    alpha, names = policy.gain_alpha(attempt), sorted({one.name for one in examined})
    strictest = alpha / max(1, len(names))
    chances = [max(_chance(one, strictest, policy) for one in examined if one.name == name) for name in names]
    return dict(zip(names, holm_levels(chances, alpha), strict=True))


def _chance(one: CrossFitted, alpha: float, policy: Policy) -> float:
    return sign_flip_p(one.gains, alpha, _seed(one, policy))


def _seed(one: CrossFitted, policy: Policy) -> tuple[int, int]:
    return policy.seed, zlib.crc32(f"{one.name} {one.candidate.view}".encode())


def _verdict(one: CrossFitted, level: float, policy: Policy) -> tuple[Verdict, str]:
    things, change, is_own = len(one.gains), one.change(policy), one.candidate.view is View.OWN
    if sign_flip_p(-one.gains, 1.0 - BOUND, _seed(one, policy)) <= 1.0 - BOUND:
        return (Verdict.REJECT, phrase("got worse")) if is_own else (Verdict.REVIEW, phrase("harder to find"))
    if is_own and things >= ENOUGH_THINGS and change <= 0 and one.gains.mean() <= 0:
        return Verdict.REJECT, phrase("not learned")
    if things < FEWEST_THINGS:
        return Verdict.REVIEW, phrase(
            "has too few pairs ({count} things, {needed} needed)", count=things, needed=FEWEST_THINGS
        )
    if _chance(one, level, policy) > level:
        return Verdict.REVIEW, phrase("perhaps learned") if is_own else phrase("perhaps visible")
    if change < LEAST_GAIN:
        return Verdict.REVIEW, phrase("gained too little")
    return Verdict.PROMOTE, phrase("learned") if is_own else phrase("visible")


def _compared(one: CrossFitted, policy: Policy) -> Comparison:
    drop = paired_bootstrap(
        one.live.query_scores(policy.metric),
        one.candidate.query_scores(policy.metric),
        np.array(one.candidate.clusters),
        seed=_seed(one, policy),
        samples=policy.samples,
    )
    return Comparison(one.candidate, one.live, drop, BOUND)


def _sentence(one: CrossFitted, note: str, policy: Policy) -> str:
    compared, gains = _compared(one, policy), one.gains
    before, after = (
        f"{100 * result.query_scores(policy.metric).mean():.1f}" for result in (one.live, one.candidate)
    )
    moved = {
        "before": before,
        "after": after,
        "pictures": one.pictures,
        "low": points(compared.low),
        "high": points(compared.high),
        "sooner": int(np.count_nonzero(gains > 0)),
        "later": int(np.count_nonzero(gains < 0)),
    }
    if one.candidate.view is View.MIXED:
        among = phrase(
            "Among everything {sooner} things are found sooner, {later} later; R {before} → {after} "
            "({low} … {high} points).",
            **moved,
        )
        return joined((phrase("{slice} {note}.", slice=one.name, note=note), among))
    return joined((
        phrase("{slice} {note}.", slice=one.name, note=note),
        phrase(
            "All {count} pairs were examined, each by a copy that had not learned it.",
            count=len(one.candidate.caption_image),
        ),
        phrase(
            "{sooner} things are found sooner, {later} later; R {before} → {after} alone, among {pictures} pictures "
            "({low} … {high} points).",
            **moved,
        ),
    ))  # fmt: skip


def _not_examined(found: set[str], taught: Mapping[str, int]) -> list[tuple[Verdict, str]]:
    return [
        (
            Verdict.REVIEW,
            phrase(
                "{language} was taught with {count} pairs, but none of them could be examined.",
                language=name,
                count=taught[name],
            ),
        )
        for name in sorted(set(taught) - found)
    ]


def judge_displacement(
    old: Sequence[tuple[SliceResult, SliceResult]],
    policy: Policy,
    drawn: Sequence[tuple[SliceResult, SliceResult]] = (),
) -> RuleResult:
    """Judges what old captions, given as (candidate, live) among everything, lose to the new pictures.

    ``mean loss + 1.645 * max(sd / sqrt(m), 100 / (3 m))`` over m things must be within `MOST_DISPLACED`: one thing that
    falls by one recall of three is always possible. The `drawn` probes count among the m and look among themselves, so
    the others alone may not lose more than that on average, and one recall of one thing.
    """
    title = phrase("displacement")
    if not old and not drawn:
        return RuleResult(
            title, Verdict.REVIEW, (phrase("No old caption shows what new pictures push aside."),)
        )
    drop, things, lost = _displaced([*old, *drawn], policy)
    few = things < FEWEST_OLD
    verdict = (
        Verdict.PROMOTE
        if drop.points + ONE_SIDED * drop.error <= MOST_DISPLACED and not few
        else Verdict.REVIEW
    )
    own, own_things, own_lost = _displaced(old, policy) if old else (drop, things, lost)
    if verdict is Verdict.PROMOTE and own.points > max(MOST_DISPLACED, ONE_RECALL / own_things):
        verdict, lost = Verdict.REVIEW, own_lost
    if max(one.points - ONE_SIDED * one.error for one in (drop, own)) > MOST_DISPLACED:
        verdict, lost = Verdict.REJECT, own_lost
    unmoved = phrase("No vector of what was known moved.")
    needed = [phrase("{needed} old things must look for their picture.", needed=FEWEST_OLD)] if few else []
    return RuleResult(title, verdict, (joined((unmoved, lost, *needed)),))


def _displaced(old: Sequence[tuple[SliceResult, SliceResult]], policy: Policy) -> tuple[Drop, int, Sentence]:
    """Returns what old captions lose, how many things they are of, and a sentence."""
    live, candidate = (np.concatenate([pair[n].query_scores(policy.metric) for pair in old]) for n in (1, 0))
    clusters = [cluster for pair in old for cluster in pair[0].clusters]
    drop = measured_drop(live, candidate, clusters)
    lost = phrase(
        "Of {count} old captions {lost} lost their place: {points} points, at worst {bound} (allowed {limit}).",
        count=len(live),
        lost=int(np.count_nonzero(candidate < live)),
        points=points(-drop.points),
        bound=points(-drop.points - ONE_SIDED * drop.error),
        limit=points(-MOST_DISPLACED),
    )
    return drop, len(set(clusters)), lost
