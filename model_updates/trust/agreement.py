"""Several witnesses of whether captions belong to their pictures, heard together.

Idea: each witness gives scores of every caption for every picture of a block. What a mismatched pair scores is seen in
the same block, since nearly all its pictures and captions do not belong together; so scores become comparable by the
mean and the deviation that a picture and a caption have with all others. Witnesses are weighed by a logistic
regression that tells own pairs from others, learned on the other half, and a pair's p-value is the share of
mismatched pairs that score at least as high as it. Some own pairs are mismatched themselves: that makes the weights
smaller, and changes neither their proportions nor the p-values.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.cross_fit import Block

LOWEST, HIGHEST = -4.0, 8.0  # deviations beyond these say nothing more, and would outweigh everything else
OTHERS_A_PAIR = 10  # mismatched pairs that the weights are learned from, for each own one
PENALTY, STEPS = 0.002, 8


@dataclass(frozen=True)
class Agreement:
    """What the witnesses say of each pair."""

    scores: NDArray[np.float64]  # (n,) deviations above what mismatched pairs score
    # (n,) uniform in [0, 1] for pairs that do not belong together, near 0 for those that do
    p_values: NDArray[np.float64]
    # mean score over its standard error, clustered by group; below 2 nothing ties captions to pictures
    strength: float
    # share of (own, mismatched) couples in which the own pair scores higher; 0.5 when nothing can be told
    power: float
    weights: Mapping[str, float]  # what each witness counted, by its name


def same_in(block: NDArray[np.intp], *labels: Sequence[Hashable | None]) -> NDArray[np.bool_]:
    """Returns (b, b), true where picture and caption of a block belong together by their own pair or by a label.

    Labels that are None or empty are like no other.
    """
    same = np.eye(len(block), dtype=np.bool_)
    for label in labels:
        values = np.asarray(
            [hash(label[int(at)]) if label[int(at)] not in {None, ""} else -1 - at for at in block]
        )
        same |= values[:, None] == values[None, :]
    return same


def agreement(
    witnesses: Mapping[str, Sequence[Block]],
    blocks: Sequence[NDArray[np.intp]],
    groups: NDArray[np.intp],
    same: Sequence[NDArray[np.bool_]],
) -> Agreement:
    """Hears all witnesses on all pairs.

    Witnesses give by name the (b, b) scores of each block, own pairs on the diagonal; blocks are positions of pairs;
    `groups` (n,) says which pairs are of one thing, for standard errors. `same` is per block (b, b), true where picture
    and caption may belong together, so that they are no example of a mismatched pair; the diagonal is.
    """
    table, weights = heard(witnesses, same)
    found, others = np.zeros(len(groups)), []
    for block, joint, together in zip(blocks, table, same, strict=True):
        found[block] = np.diagonal(joint)
        others.append(joint[~together])
    null = np.sort(np.concatenate(others))
    below = np.searchsorted(null, found, side="left")
    ties = np.searchsorted(null, found, side="right") - below
    p_values = 1 - (below + 0.5 * ties) / max(1, len(null))
    return Agreement(
        scores=found,
        p_values=p_values,
        strength=strength_of(found, groups),
        power=float(1 - p_values.mean()),
        weights=dict(zip(witnesses, np.mean(weights, axis=0).tolist(), strict=True)),
    )


def strength(
    witnesses: Mapping[str, Sequence[Block]],
    blocks: Sequence[NDArray[np.intp]],
    groups: NDArray[np.intp],
    same: Sequence[NDArray[np.bool_]],
) -> float:
    """Returns what `agreement` says of the strength, and nothing else: for many orders of the captions."""
    table, _ = heard(witnesses, same)
    found = np.zeros(len(groups))
    for block, joint in zip(blocks, table, strict=True):
        found[block] = np.diagonal(joint)
    return strength_of(found, groups)


def heard(
    witnesses: Mapping[str, Sequence[Block]], same: Sequence[NDArray[np.bool_]]
) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Returns per block the (b, b) deviations of all witnesses together, and the (w,) weights they were heard with."""
    deviations = [
        np.stack([_deviations(scores[at], together) for scores in witnesses.values()])
        for at, together in enumerate(same)
    ]
    weights = _weights(deviations, same)
    joint = [
        _deviations(np.tensordot(weights[at], deviations[at], axes=1), together)
        for at, together in enumerate(same)
    ]
    return joint, weights


def strength_of(scores: NDArray[np.float64], groups: NDArray[np.intp]) -> float:
    """Returns the mean over its standard error, with whole groups as the independent observations."""
    clipped = np.clip(scores, LOWEST, HIGHEST)
    _, numbers = np.unique(groups, return_inverse=True)
    centred = np.bincount(numbers, weights=clipped - clipped.mean())
    error = float(np.sqrt((centred**2).sum())) / len(clipped)
    return float(clipped.mean() / error) if error > 0 else 0.0


def _deviations(scores: NDArray[np.floating], same: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Returns scores freed of what a picture and a caption score with everybody, in deviations of mismatched pairs."""
    free = (~same).astype(np.float64)
    values = np.asarray(scores, dtype=np.float64)
    rows, columns = (np.maximum(1.0, free.sum(axis=axis, keepdims=True)) for axis in (1, 0))
    mean = (values * free).sum() / max(1.0, free.sum())
    left = (
        values
        - (values * free).sum(1, keepdims=True) / rows
        - (values * free).sum(0, keepdims=True) / columns
    )
    left += mean
    spread_rows = np.sqrt((left**2 * free).sum(1, keepdims=True) / rows)
    spread_columns = np.sqrt((left**2 * free).sum(0, keepdims=True) / columns)
    spread = np.sqrt(spread_rows * spread_columns)
    return np.where(spread > 1e-9, left / np.maximum(spread, 1e-9), 0.0)


def _weights(
    deviations: Sequence[NDArray[np.float64]], same: Sequence[NDArray[np.bool_]], seed: int = 0
) -> list[NDArray[np.float64]]:
    """Returns each block's weights of the witnesses, learned on the other half of the blocks; none is negative."""
    count, random = len(deviations[0]), np.random.default_rng(seed)
    if count == 1:
        return [np.ones(1)] * len(deviations)
    own, others = [], []
    for values, together in zip(deviations, same, strict=True):
        clipped = np.clip(values, LOWEST, HIGHEST)
        own.append(np.diagonal(clipped, axis1=1, axis2=2).T)
        null = clipped[:, ~together].T
        others.append(null[random.permutation(len(null))[: OTHERS_A_PAIR * len(together)]])
    halves = []
    for half in range(2):
        rest = [n for n in range(len(deviations)) if n % 2 != half] or [0]
        weights = _logistic(np.concatenate([own[n] for n in rest]), np.concatenate([others[n] for n in rest]))
        weights = np.maximum(0.0, weights)
        halves.append(weights / weights.sum() if weights.sum() > 0 else np.full(count, 1 / count))
    return [halves[n % 2] for n in range(len(deviations))]


def _logistic(own: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the (w,) weights that tell own pairs from others, both sides counting alike; by Newton's method."""
    values = np.concatenate([own, others])
    values = np.hstack([values, np.ones((len(values), 1))])
    is_own = np.arange(len(values)) < len(own)
    share = np.where(is_own, 0.5 / max(1, len(own)), 0.5 / max(1, len(others)))
    ridge = PENALTY * np.eye(values.shape[1])
    ridge[-1, -1] = 0
    weights = np.zeros(values.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(values @ weights, -30, 30)))
        slope = values.T @ (share * (is_own - chance)) - ridge @ weights
        curve = (
            (values * (share * chance * (1 - chance))[:, None]).T @ values + ridge + 1e-9 * np.eye(len(ridge))
        )
        weights += np.linalg.solve(curve, slope)
    return weights[:-1]
