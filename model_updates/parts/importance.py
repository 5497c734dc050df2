"""How much each parameter matters for what was learned, and the penalty for moving it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor


def quadratic_penalty(
    now: Mapping[str, Tensor], anchors: Mapping[str, Tensor], importance: Mapping[str, Tensor]
) -> Tensor:
    """Returns ``sum importance * (now - anchor)**2`` over all parameters, a scalar.

    Args:
        now: parameters in training, by name.
        anchors: where they should stay, same shapes.
        importance: weight of each entry, same shapes; parameters without one are free.
    """
    terms = [(importance[name] * (now[name] - anchors[name]) ** 2).sum() for name in importance]
    return torch.stack(terms).sum()


def running_mean(before: Mapping[str, Tensor], new: Mapping[str, Tensor], updates: int) -> dict[str, Tensor]:
    """Returns ``F <- t/(t+1) F + 1/(t+1) F_new`` after t earlier updates: the mean over all (CTP's library).

    Rows that a token table has gained since count as unimportant until then.
    """
    share = updates / (updates + 1)
    return {
        name: share * fitted(before[name], value) + (1 - share) * value
        if name in before
        else (1 - share) * value
        for name, value in new.items()
    }


def fitted(kept: Tensor, like: Tensor) -> Tensor:
    """Returns a kept tensor with zero rows appended where its parameter has grown, on the parameter's device."""
    if kept.shape == like.shape:
        return kept.to(like)
    if kept.shape[1:] != like.shape[1:] or len(kept) > len(like):
        raise ValueError(f"a parameter of shape {tuple(kept.shape)} cannot have become {tuple(like.shape)}")
    rows = torch.zeros_like(like)
    rows[: len(kept)] = kept.to(like)
    return rows


def mean_of_squared_gradients(
    parameters: Mapping[str, Tensor], losses: Iterable[Tensor]
) -> dict[str, Tensor]:
    """Returns the mean over batches of each parameter's squared gradient: the diagonal of the Fisher matrix.

    Args:
        parameters: by name, all requiring a gradient.
        losses: the loss of each batch, computed as they are asked for.
    """
    names = list(parameters)
    sums = {name: torch.zeros_like(parameters[name]) for name in names}
    count = 0
    for loss in losses:
        gradients = torch.autograd.grad(loss, [parameters[name] for name in names], allow_unused=True)
        for name, gradient in zip(names, gradients, strict=True):
            if gradient is not None:
                sums[name] += gradient.detach() ** 2
        count += 1
    return {name: value / max(1, count) for name, value in sums.items()}
