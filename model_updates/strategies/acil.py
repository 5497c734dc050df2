"""ACIL: one head on random features, solved recursively, as if all pairs had come at once.

Idea: the weights that least squares would give for all pairs so far follow from those before and from the new pairs
alone, with the inverse of the features' correlations as all that is remembered. So nothing is forgotten, and the order
of chunks does not matter, though no old pair is kept.

Formula: for a chunk with random features X (a column of ones at the end) and targets Y, from R = I / strength, W = 0:

    K = R X' (I + X R X')^-1,   W <- W + K (Y - X W),   R <- R - K X R

Source: Zhuang et al., *ACIL: Analytic Class-Incremental Learning with Absolute Memorization and Privacy Protection*,
NeurIPS 2022, theorem 1. Differences: targets are the captions' vectors in each space of the texts instead of classes;
the paper trains a backbone on the first classes and expands its features to 8,000 and more numbers, here the tower
stays as installed, and a sample of what it knows stands beside the first chunk, where the paper has its base classes.

Kept between updates: R and W of each space of the texts; 32 MB each at the default width.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.checked import Positive
from model_updates.pair_sets import PairSet
from model_updates.parts.random_head import OneHead, RandomHead, RandomHeadOptions

_ROWS = 256  # of a step of the recursion; any number gives the same


@dataclass(frozen=True)
class AcilOptions(RandomHeadOptions):
    """Options of `acil`."""

    strength: Positive = 1000.0  # of the ridge regression; the paper's gamma


class Acil(OneHead):
    """Recursive least squares over the chunks."""

    name = "acil"
    summary = (
        "Solves one head on random features for all pictures recursively: as if all chunks had come at once, in any "
        "order, without an old pair; every picture moves."
    )
    paper = "ACIL, NeurIPS 2022"
    keeps = "the inverse of the features' correlations and the weights"
    options: AcilOptions

    def learn(self, head: RandomHead, pairs: PairSet, kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if pairs.text_features is None:
            raise ValueError("a head is solved from text features; the strategy must ask for them")
        features = head.expanded(pairs.trunk).double().cpu()
        rows = torch.cat([features, torch.ones(len(features), 1, dtype=torch.float64)], dim=1)
        found: dict[str, Tensor] = {}
        for n, targets in enumerate(torch.split(pairs.text_features.double().cpu(), head.widths, dim=-1)):
            there = targets.norm(dim=-1) > 0
            inverse = kept.get(f"{n}/inverse", torch.eye(rows.shape[1]).double() / self.options.strength)
            weight = kept.get(f"{n}/weight", torch.zeros(rows.shape[1], targets.shape[1]).double())
            solved = recursion(inverse, weight, rows[there], normalize(targets[there], dim=-1))
            found[f"{n}/inverse"], found[f"{n}/weight"] = solved
        both = torch.cat([found[f"{n}/weight"] for n in range(len(head.widths))], dim=1).float()
        head.weight.copy_(both[:-1])
        head.bias.copy_(both[-1])
        return found


def recursion(inverse: Tensor, weight: Tensor, rows: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Returns R (m, m) and W (m, d) after rows (n, m) with their targets (n, d) too."""
    for start in range(0, len(rows), _ROWS):
        x, y = rows[start : start + _ROWS], targets[start : start + _ROWS]
        reached = inverse @ x.T
        gain = torch.linalg.solve(torch.eye(len(x)).double() + x @ reached, reached.T).T
        weight = weight + gain @ (y - x @ weight)
        inverse = inverse - gain @ reached.T
    return inverse, weight
