"""Fine-tuning that compares what the towers say of a batch with what they said before the update.

The old features are cached: they are those of the encoder before the update, in eval mode, so that a teacher costs one
pass over the chunk and not one a step. Similarities are cosines, pictures by texts; every divergence is the forward
one, ``KL(old || new)``, and no gradient reaches the old side.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from model_updates.checked import NotNegative, OneOf, Positive
from model_updates.losses import kl_rows
from model_updates.pair_sets import Batch
from model_updates.parts.two_towers import TwoTowerOptions

FEATURE_TEMPERATURE = 0.07
PAPER_BATCH = 280
"""Mod-X's: its weight of 20 is on a sum over so many rows."""


@dataclass(frozen=True)
class Sides:
    """The unit features of a batch, under the towers in training and under the old ones; (b, dim) each."""

    image: Tensor
    text: Tensor
    old_image: Tensor
    old_text: Tensor

    @property
    def similarities(self) -> Tensor:
        """(b, b) cosines in training, pictures by texts."""
        return self.image @ self.text.T

    @property
    def old_similarities(self) -> Tensor:
        """(b, b) cosines before the update, pictures by texts."""
        return (self.old_image @ self.old_text.T).detach()


@dataclass(frozen=True)
class RowOptions(TwoTowerOptions):
    """Adds the term over rows of similarities to the options of two towers."""

    alpha: NotNegative = 20.0  # weight of the term (paper: 20, on a sum over batches of 280).
    # divides the cosines before the softmax; 1 is the paper's, and any other needs another alpha.
    kl_temperature: Positive = 1.0
    # "scaled" (the sum times 280 / b, so that alpha means the same for any batch of b pairs), "sum" (the
    # paper's) or "mean" over rows.
    reduction: Annotated[str, OneOf("scaled", "sum", "mean")] = "scaled"


Features = tuple[Tensor, Tensor]
"""Of a batch's pictures and texts, (b, dim) each."""
Divergences = Callable[[Tensor, Tensor, Tensor, float], Tensor]
"""Each row's part of a term, (r,), of (r, c) old and new cosines, which columns are right, and a temperature."""


def old_features(batch: Batch) -> Features:
    """Returns the raw features of a batch under the towers before the update."""
    if batch.text_features is None:
        raise ValueError(
            "the old text features of this batch are asked for, and it was gathered without them"
        )
    return batch.image_features.float(), batch.text_features.float()


def row_distillation(new: Features, batch: Batch, options: RowOptions, divergences: Divergences) -> Tensor:
    """Returns the weighted divergences of rows of similarities, pictures by texts and texts by pictures."""
    seen, same = sides(new, old_features(batch)), same_picture(batch)
    before, now = seen.old_similarities, seen.similarities
    found = [
        divergences(before, now, same, options.kl_temperature),
        divergences(before.T, now.T, same, options.kl_temperature),
    ]
    return options.alpha / 2 * torch.stack([reduced(rows, options.reduction) for rows in found]).sum()


def sides(new: Features, old: Features) -> Sides:
    """Returns raw features as unit rows."""
    return Sides(*(normalize(rows, dim=-1) for rows in (*new, *old)))


def row_divergence(old: Tensor, new: Tensor) -> Tensor:
    """Returns ``KL(softmax(old) || softmax(new))`` of each row, (r,), of (r, c) logits; no gradient into the old."""
    before = log_softmax(old.detach(), dim=1)
    return (before.exp() * (before - log_softmax(new, dim=1))).sum(dim=1)


def right_rows(similarities: Tensor, same: Tensor) -> Tensor:
    """Returns (r,) bool: whether a column of a row's own, `same` (r, c), is its largest; a tie counts as right."""
    own = similarities.masked_fill(~same, -torch.inf).amax(dim=1)
    return own >= similarities.amax(dim=1)


def reduced(rows: Tensor, reduction: str) -> Tensor:
    """Returns the values of a batch's rows as one scalar."""
    match reduction:
        case "sum":
            return rows.sum()
        case "mean":
            return rows.mean()
        case _:
            return rows.mean() * PAPER_BATCH


def same_picture(batch: Batch) -> Tensor:
    """Returns (b, b) bool: which texts show which picture of a batch."""
    return batch.image_index[:, None] == batch.image_index[None, :]


def feature_divergence(new: Features, old: Features) -> Tensor:
    """Returns the mean over towers and rows of KL(old || new) of raw features as logits, as CTP's library has it."""
    parts = [
        kl_rows(before / FEATURE_TEMPERATURE, now / FEATURE_TEMPERATURE)
        for before, now in zip(old, new, strict=True)
    ]
    return torch.stack(parts).mean()
