"""The whole question at once: do these captions belong to these pictures, and how sure is that?

The order of the questions matters. A slip of rows, or captions that nothing ties to their pictures, would make any
estimate of single mismatched pairs meaningless, and an estimate is worth something only where matched pairs can be
told from mismatched ones: because a trusted caption stands beside, because the encoder by itself tells them apart, or
because trusted pairs of the same domain, heard in the same way, do. Elsewhere the answer is that nobody can tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.evidence import ENCODER, WORDS, Evidence, UploadedPairs, in_parts, unit_rows
from model_updates.trust.mismatch import Mismatch, mismatch, share_of, with_rivals
from model_updates.trust.row_shift import USUAL_SPREAD, RowShift, row_shift

FEWEST = 100  # pairs; with fewer, the interval of the mismatched share is wider than what it is about
FEWEST_OF_PART, APART = (
    30,
    0.25,
)  # parts of one upload whose intervals lie so far apart are not of one quality
AT_ONCE = 1_000  # pairs that vouch for each other; larger sets are heard in parts
# Deviations from which on rows slipped. Where captions are tied to their pictures, clean tables and shuffled ones stay
# below 4.1; where nothing ties them, the best of all stretches and distances reaches 5.3 by chance (docs/log.md).
SLIPPED, SLIPPED_WHERE_UNTIED = 4.5, 6.0
TIED = 3.0  # deviations of random orders above which captions are tied to their pictures at all
RANDOM_ORDERS = 8  # whose spread counts as much as the usual one
MANY = 1_000  # pairs among which even a strange domain shows some tie; measured down to a strength of 11
# The estimate is too high by the matched pairs that look like mismatched ones. How many those are shows in how clearly
# the others stand out: where scores shift a little (normal scores with 35 % of the pairs below the median of mismatched
# ones) a pair that counts as matched outscores .88 of the mismatched, where some are wrong and the rest fit, .93.
TOO_MANY = 0.25
CLEAR_BY_WORDS, CLEAR_BY_ENCODER = 0.97, 0.935  # mismatched pairs that those which count as matched outscore
TOO_MANY_WHERE_CLEAR = 0.17
READ, READ_CLEARLY = 0.45, 0.9  # by the encoder alone: estimated share at most, and outscored at least
TOO_MANY_WHERE_READ = 0.15
ABOVE_REFERENCE = 0.12
# Where the encoder knows the language and trusted pairs show that it reads the domain, the estimate itself is compared.
READ_WELL, ABOVE_WELL_READ, FEWEST_WRONG = 0.12, 0.06, 0.08
SURELY_MATCHED = 0.05  # p-value below which a pair shows how matched ones score
UNREADABLE = 0.5  # estimated share of trusted pairs from which on they say nothing
NEVER = 1.0  # where nobody tells, no estimate is too much
# A part that was trained on is known by heart, and what was not looks mismatched beside it. Held-out names of things
# that the encoder never saw: .36 to .44 estimated, those that fit outscore .93 to .95 of the mismatched; where it can
# read and 30 % are exchanged, .98 and more.
BY_HEART = 0.9  # of a part's pairs that fit surely
READ_IN_PART, WHATEVER_IS_READ = 0.97, 0.6
REFERENCE = "reference"


class Impression(StrEnum):
    """What the captions look like."""

    MATCHED = "matched"
    MOVED = "moved"
    UNRELATED = "unrelated"
    MISMATCHED = "mismatched"
    UNTOLD = "untold"
    FEW = "few"


@dataclass(frozen=True)
class Matching:
    """The answer, with what it rests on."""

    found: Impression  # what the captions look like
    told: bool = False  # whether matched pairs can be told from mismatched ones here
    why_told: str = ""  # by what, for the sentence: `WORDS`, `ENCODER`, `REFERENCE`, or "" when nothing does
    too_many: float = NEVER  # the bound of the mismatched share from which on they are too many
    mismatch: Mismatch | None = None  # estimated share and each pair's chance; None for too few pairs
    # estimated share and its interval in each part of the caller's
    by_part: Mapping[str, tuple[float, float, float]] | None = None
    shift: RowShift | None = None  # where rows may have slipped; None for too few pairs
    tie: float = 0.0  # strength of the agreement in deviations of random orders
    power: float = 0.5  # share of mismatched pairs that own pairs outscore
    weights: Mapping[str, float] | None = None  # what each witness counted
    scores: NDArray[np.float64] | None = None  # (n,) deviations above mismatched pairs
    # parts that look mismatched and do not count, since the encoder knows another part by heart
    unread: tuple[str, ...] = ()


def matching(
    pairs: UploadedPairs,
    parts: Mapping[str, NDArray[np.intp]],
    *,
    reference: UploadedPairs | None = None,
    seed: int = 0,
) -> Matching:
    """Judges the pairs of one language and domain.

    The pairs are in the order of the upload; `parts` has the positions of the training part and of the held-out part,
    by name. `reference` are trusted pairs of the same domain, known in the same way; their estimate shows what matched
    captions look like here. It is asked only where nothing else tells. The seed is of blocks and resampling.
    """
    if len(pairs) < FEWEST:
        return Matching(Impression.FEW)
    whole = Evidence(pairs, seed=seed) if len(pairs) <= AT_ONCE else None
    tie = _tie(whole or Evidence(pairs.part(in_parts(pairs, AT_ONCE, seed)[0]), seed=seed), seed)
    shift = _shift(pairs, parts, seed)
    judged, power, weights, scores, groups, p_values = _heard(pairs, seed, whole)
    clear = _outscored(p_values, judged.share)
    why, limit, limit_of_all = _told_by(pairs, weights, reference, clear, seed)
    if ENCODER in weights:
        judged = with_rivals(judged, p_values, rivals(pairs, p_values))
    by_part = {
        name: share_of(p_values[at], groups[at], seed=seed)
        for name, at in parts.items()
        if len(at) >= FEWEST_OF_PART
    }
    unread = _unread(p_values, parts, by_part)
    counted = {name: bounds for name, bounds in by_part.items() if name not in unread}
    low = max([judged.low, *(counted[name][1] for name in counted if len(parts[name]) >= FEWEST)])
    too_many = low > limit or judged.share > limit_of_all
    found = _verdict(len(pairs), shift, tie, bool(why), too_many=too_many, told=limit < NEVER)
    if found in {Impression.MATCHED, Impression.UNTOLD} and _differ(counted):
        found = Impression.MISMATCHED
    told = found is not Impression.UNTOLD
    limit = min(limit, limit_of_all)
    return Matching(found, told, why, limit, judged, by_part, shift, tie, power, weights, scores, unread)


def _unread(
    p_values: NDArray[np.float64],
    parts: Mapping[str, NDArray[np.intp]],
    by_part: Mapping[str, tuple[float, float, float]],
) -> tuple[str, ...]:
    """Returns the parts whose estimate says nothing: another part is known by heart, and this one cannot be read."""
    by_heart = {name for name in by_part if np.mean(p_values[parts[name]] < SURELY_MATCHED) >= BY_HEART}
    if not by_heart:
        return ()
    return tuple(
        name
        for name, (share, low, _) in by_part.items()
        if name not in by_heart
        and low <= WHATEVER_IS_READ
        and _outscored(p_values[parts[name]], share) < READ_IN_PART
    )


def _verdict(
    size: int, shift: RowShift, tie: float, witnessed: bool, *, too_many: bool, told: bool
) -> Impression:
    if shift.certainty >= (SLIPPED if tie >= TIED else SLIPPED_WHERE_UNTIED):
        return Impression.MOVED
    if tie < TIED:
        return Impression.UNRELATED if witnessed or size >= MANY else Impression.UNTOLD
    if too_many:
        return Impression.MISMATCHED
    return Impression.MATCHED if witnessed and told else Impression.UNTOLD


def _differ(by_part: Mapping[str, tuple[float, float, float]]) -> bool:
    """Whether one part certainly has more mismatched pairs than another, whatever the estimates start from."""
    lows, highs = [low for _, low, _ in by_part.values()], [high for _, _, high in by_part.values()]
    return len(by_part) > 1 and max(lows) - min(highs) > APART


def rivals(pairs: UploadedPairs, p_values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Returns (n,) whether another picture fits a caption as well as matched pairs do, by the encoder alone.

    A caption that was exchanged has its own picture somewhere else in the chunk; one that the encoder reads badly has
    none.
    """
    assert pairs.picture_vectors is not None  # noqa: S101 - the encoder was heard
    assert pairs.text_vectors is not None  # noqa: S101
    found = np.zeros(len(pairs), dtype=np.bool_)
    things = np.asarray([hash(group) for group in pairs.groups])
    for at in in_parts(pairs, AT_ONCE):
        scores = unit_rows(pairs.picture_vectors[at]) @ unit_rows(pairs.text_vectors[at]).T
        scores = scores - scores.mean(axis=1, keepdims=True)
        own = np.diagonal(scores).copy()
        scores[things[at][:, None] == things[at][None, :]] = -np.inf
        matched = own[p_values[at] < SURELY_MATCHED]
        found[at] = scores.max(axis=0) >= (np.median(matched) if len(matched) else np.inf)
    return found


def _shift(pairs: UploadedPairs, parts: Mapping[str, NDArray[np.intp]], seed: int) -> RowShift:
    """Looks for a slip in the whole table, and in each part alone, which may have been split before it slipped."""
    found = [row_shift(pairs, seed=seed)]
    for at in parts.values():
        if len(at) >= FEWEST:
            one = row_shift(pairs.part(at[:AT_ONCE]), seed=seed)
            found.append(replace(one, first=int(at[one.first]), last=int(at[one.last])))
    return max(found, key=lambda shift: shift.certainty)


def _tie(evidence: Evidence, seed: int) -> float:
    """Returns how strong the agreement is, in deviations of what orders of the captions that mean nothing reach."""
    size, random = len(evidence.pairs), np.random.default_rng(seed)
    by_chance = [evidence.strength(random.permutation(size)) for _ in range(RANDOM_ORDERS)]
    return evidence.strength(np.arange(size)) / float(
        np.sqrt((np.var(by_chance, ddof=1) + USUAL_SPREAD**2) / 2)
    )


def _heard(
    pairs: UploadedPairs, seed: int, whole: Evidence | None = None
) -> tuple[Mismatch, float, dict[str, float], NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    """Hears all pairs twice: the second time, those that seemed mismatched teach little.

    Returns:
        The estimate, the power, the witnesses' weights, and (n,) scores, groups and p-values.
    """
    size = len(pairs)
    scores, p_values, groups = np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.intp)
    weights: dict[str, float] = {}
    for at in in_parts(pairs, AT_ONCE, seed):
        evidence = whole or Evidence(pairs.part(at), seed=seed)
        first = evidence.hear()
        evidence.believe(1 - mismatch(first.p_values, evidence.groups, seed=seed).doubt)
        second = evidence.hear()
        scores[at], p_values[at] = second.scores, second.p_values
        groups[at] = evidence.groups + (groups.max() + 1)
        for name, weight in second.weights.items():
            weights[name] = weights.get(name, 0.0) + weight * len(at) / size
    judged = mismatch(p_values, groups, seed=seed)
    return judged, float(1 - p_values.mean()), weights, scores, groups, p_values


def _outscored(p_values: NDArray[np.float64], share: float) -> float:
    """Returns how many mismatched pairs a matched one outscores, when a share of all are mismatched themselves."""
    return float((1 - p_values.mean() - share / 2) / max(1e-9, 1 - share))


def _told_by(
    pairs: UploadedPairs,
    weights: Mapping[str, float],
    reference: UploadedPairs | None,
    clear: float,
    seed: int,
) -> tuple[str, float, float]:
    """Returns what tells matched pairs from mismatched ones, or "", and from where on there are too many.

    That is by the lower bound, of all or of a part, and by the estimate of all.

    Of the encoder it is measured, on its scores alone: wrong captions cannot spoil a witness that learned nothing from
    them. Of everything else only trusted pairs can say it, because wrong captions also weaken what is learned.
    """
    if WORDS in weights:
        return WORDS, TOO_MANY_WHERE_CLEAR if clear >= CLEAR_BY_WORDS else TOO_MANY, NEVER
    if reference is not None and len(reference) >= FEWEST:
        theirs = _heard(reference.part(np.arange(min(len(reference), len(pairs), AT_ONCE))), seed)[0].share
        if theirs >= UNREADABLE:
            return REFERENCE, NEVER, NEVER
        is_read = ENCODER in weights and theirs <= READ_WELL
        of_all = max(FEWEST_WRONG, theirs + ABOVE_WELL_READ) if is_read else NEVER
        return REFERENCE, max(TOO_MANY_WHERE_READ, theirs + ABOVE_REFERENCE), of_all
    if ENCODER in weights:
        at = in_parts(pairs, AT_ONCE, seed)[0]
        alone = Evidence(pairs.part(at), only=[ENCODER], seed=seed)
        p_values = alone.hear().p_values
        share, _, _ = share_of(p_values, alone.groups, seed=seed)
        if share <= READ and _outscored(p_values, share) >= READ_CLEARLY:
            return ENCODER, TOO_MANY_WHERE_READ, NEVER
        return ENCODER, TOO_MANY if clear >= CLEAR_BY_ENCODER else NEVER, NEVER
    return "", NEVER, NEVER
