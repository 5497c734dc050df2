"""A candidate against a reference on the same held-out slices: estimates and bounds for the gate."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model_updates.bootstrap import Bootstrap, FloatArray, holm_levels, paired_bootstrap
from model_updates.evaluation import SliceResult
from model_updates.gate_report import Policy


def slice_name(result: SliceResult) -> str:
    """Returns the slice as people read it, `de/photo`."""
    return f"{result.language}/{result.domain}"


@dataclass(frozen=True, eq=False)
class Comparison:
    """A candidate against a reference on one slice.

    Attributes:
        name: the slice, `de/photo`.
        reference_name: `live` or a version.
        candidate: ranks of the encoder that is judged.
        reference: ranks of the one it is held against.
        drop: reference minus candidate, as a fraction.
        is_identical: whether every caption's rank is the same.
        level: confidence of this comparison's one-sided bounds after Holm's correction.
    """

    name: str
    reference_name: str
    candidate: SliceResult
    reference: SliceResult
    drop: Bootstrap
    is_identical: bool
    level: float

    @property
    def change(self) -> float:
        """Candidate minus reference in points."""
        return -100.0 * self.drop.difference

    @property
    def low(self) -> float:
        """The change in points is at least this."""
        return -100.0 * self.drop.high(self.level)

    @property
    def high(self) -> float:
        """The change in points is at most this."""
        return -100.0 * self.drop.low(self.level)


def compare(
    pairs: Sequence[tuple[str, SliceResult, SliceResult]], limit: float, policy: Policy
) -> list[Comparison]:
    """Bootstraps each slice and corrects the bounds for their number.

    Args:
        pairs: (reference name, candidate, reference) per comparison.
        limit: points; the hypotheses of Holm's family are "the drop is at least this".
        policy: metric, confidence, samples and seed.
    """
    alpha = 1.0 - policy.confidence
    # Ten resamples beyond the family's strictest bound; the cap keeps a hundred slices affordable.
    samples = max(policy.samples, min(10_000, math.ceil(10 * len(pairs) / alpha)))
    drops = []
    for reference_name, result, reference in pairs:
        drops.append(
            paired_bootstrap(
                reference.query_scores(policy.metric),
                result.query_scores(policy.metric),
                result.caption_image,
                seed=(policy.seed, zlib.crc32(f"{slice_name(result)} {reference_name}".encode())),
                samples=samples,
            )
        )
    levels = holm_levels([float(np.mean(drop.means >= limit / 100.0)) for drop in drops], alpha)
    return [
        Comparison(
            name=slice_name(result),
            reference_name=reference_name,
            candidate=result,
            reference=reference,
            drop=drop,
            is_identical=bool(np.array_equal(result.text_ranks, reference.text_ranks)),
            level=1.0 - level,
        )
        for (reference_name, result, reference), drop, level in zip(pairs, drops, levels, strict=True)
    ]


def beats_guessing(comparison: Comparison, policy: Policy) -> bool:
    """Returns whether the candidate certainly finds more than a random order of its gallery would."""
    scores = comparison.candidate.query_scores(policy.metric)
    guessing = np.full_like(scores, comparison.candidate.chance(policy.metric))
    above = paired_bootstrap(
        scores, guessing, comparison.candidate.caption_image, seed=policy.seed, samples=policy.samples
    )
    return above.low(policy.confidence) > 0


def pooled_drop(comparisons: Sequence[Comparison], policy: Policy) -> Bootstrap:
    """Averages over slices, as AR does; a slice under the minimum size weighs in proportion to its images.

    An image is drawn together with its captions in all languages, since they rise and fall together.
    """
    references: list[FloatArray] = []
    candidates: list[FloatArray] = []
    weights: list[FloatArray] = []
    clusters: list[str] = []
    for comparison in comparisons:
        result = comparison.candidate
        captions = len(result.caption_image)
        share = min(1.0, result.captioned_images / policy.minimum_images)
        references.append(comparison.reference.query_scores(policy.metric))
        candidates.append(result.query_scores(policy.metric))
        weights.append(np.full(captions, share / captions))
        clusters += [result.image_ids[position] for position in result.caption_image]
    return paired_bootstrap(
        np.concatenate(references),
        np.concatenate(candidates),
        np.array(clusters),
        seed=policy.seed,
        samples=policy.samples,
        weights=np.concatenate(weights),
    )
