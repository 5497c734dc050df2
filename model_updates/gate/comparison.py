"""A candidate against a reference on the same pairs: estimates, errors and bounds for the gate."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_updates.evaluation import SliceResult
from model_updates.gate.bootstrap import Bootstrap, FloatArray, holm_levels, paired_bootstrap
from model_updates.gate.report import Policy


def slice_name(result: SliceResult) -> str:
    """Returns the slice as people read it, `de/photo`."""
    return f"{result.language}/{result.domain}"


@dataclass(frozen=True)
class Drop:
    """How much less a candidate scored than a reference, in points, and the standard error of that."""

    points: float
    error: float


def measured_drop(
    reference: FloatArray, candidate: FloatArray, clusters: Sequence[str], weights: FloatArray | None = None
) -> Drop:
    """Returns the drop between two sets of scores of the same captions, with its cluster-robust error.

    Captions of one group rise and fall together, so the error is that of leaving out one group after another (the
    jackknife; Efron, *The Jackknife, the Bootstrap and Other Resampling Plans*, 1982): a group that has most captions
    draws the mean to itself, and its deviation from that shows nothing. Where hardly a caption changed hardly
    any deviation is seen; one thing that changes by a third, as one recall of three does, is always possible, and the
    error is at least that.

    Scores are `(n,)` in [0, 1], clusters the group of each caption; `weights` `(n,)` is what each counts, all alike
    when None.
    """
    counted = np.ones(len(reference)) if weights is None else weights
    differences = reference - candidate
    total = float(counted.sum())
    mean = float((counted * differences).sum() / total)
    _, cluster_of = np.unique(np.asarray(clusters), return_inverse=True)
    groups = int(cluster_of.max()) + 1
    left = total - np.bincount(cluster_of, weights=counted)
    strayed = np.bincount(cluster_of, weights=counted * (differences - mean))
    # How far the mean moves without each group; of those that have all the weight nothing is left to tell.
    moved = np.divide(-strayed, left, out=np.zeros(groups), where=left > 0)
    error = math.sqrt((groups - 1) / groups * float(((moved - moved.mean()) ** 2).sum()))
    return Drop(100.0 * mean, max(100.0 * error, 100.0 / (3 * groups)))


@dataclass(frozen=True, eq=False)
class Comparison:
    """A candidate against the live version on one slice."""

    candidate: SliceResult  # ranks of the encoder that is judged
    live: SliceResult  # ranks of the one it is held against
    drop: Bootstrap  # live minus candidate, as a fraction
    level: float  # confidence of this comparison's one-sided bounds after Holm's correction

    @property
    def name(self) -> str:
        """The slice, `de/photo`."""
        return slice_name(self.candidate)

    @property
    def change(self) -> float:
        """Candidate minus live in points."""
        return -100.0 * self.drop.difference

    @property
    def error(self) -> float:
        """Standard error of the change in points."""
        return 100.0 * float(self.drop.means.std())

    @property
    def low(self) -> float:
        """The change in points is at least this."""
        return -100.0 * self.drop.high(self.level)

    @property
    def high(self) -> float:
        """The change in points is at most this."""
        return -100.0 * self.drop.low(self.level)


def compare(
    pairs: Sequence[tuple[SliceResult, SliceResult]], limit: float, policy: Policy, *, tries: int = 1
) -> list[Comparison]:
    """Bootstraps each slice, clustered by group, and corrects the bounds for their number.

    Pairs are candidate and live of each slice. The hypotheses of Holm's family are "the drop is at least `limit`
    points"; this is the `tries`-th candidate against the live version.
    """
    alpha = policy.gain_alpha(tries)
    # Ten resamples beyond the family's strictest bound; the cap keeps a hundred slices affordable.
    samples = max(policy.samples, min(10_000, math.ceil(10 * len(pairs) / alpha)))
    drops = [
        paired_bootstrap(
            live.query_scores(policy.metric),
            candidate.query_scores(policy.metric),
            np.array(candidate.clusters),
            seed=(policy.seed, zlib.crc32(f"{slice_name(candidate)} {candidate.view}".encode())),
            samples=samples,
        )
        for candidate, live in pairs
    ]
    levels = holm_levels([float(np.mean(drop.means >= limit / 100.0)) for drop in drops], alpha)
    return [
        Comparison(candidate, live, drop, 1.0 - level)
        for (candidate, live), drop, level in zip(pairs, drops, levels, strict=True)
    ]


def beats_guessing(result: SliceResult, policy: Policy) -> bool:
    """Returns whether an encoder certainly finds more than a random order of the gallery would."""
    scores = result.query_scores(policy.metric)
    guessing = np.full_like(scores, result.chance(policy.metric))
    above = paired_bootstrap(
        scores, guessing, np.array(result.clusters), seed=policy.seed, samples=policy.samples
    )
    return above.low(policy.confidence) > 0


def weight_of(result: SliceResult) -> FloatArray:
    """Returns what each caption counts in a pool, `(n_captions,)`: a slice weighs as its number of different things."""
    captions = len(result.caption_image)
    return np.full(captions, result.groups / captions)
