"""Averages of whole checkpoints, and going back to one."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def keep_share(state: Mapping[str, Tensor], old: Mapping[str, Tensor], share: float) -> None:
    """Moves a model's state back towards an earlier state, in place: ``old + share * (now - old)`` for every key.

    Share 0 restores the old values and share 1 keeps the new ones, both bit by bit (C-CLIP, eq. 2).
    Integer buffers keep their new value.
    """
    with torch.no_grad():
        for name, now in state.items():
            if now.is_floating_point():
                now.copy_(torch.lerp(old[name], now, share))


def return_to(model: nn.Module, base: nn.Module) -> list[str]:
    """Gives a model the values of another one where both have them, in place; returns the names of what is left.

    Rows that a table has gained since stay as they are: the other model has no value for them.
    """
    values = base.state_dict()
    left = []
    with torch.no_grad():
        for name, now in model.state_dict().items():
            there = values.get(name)
            if there is not None and is_start_of(there, now):
                now[: len(there)].copy_(there) if now.ndim else now.copy_(there)
            if there is None or there.shape != now.shape:
                left.append(name)
    return left


def is_start_of(there: Tensor, now: Tensor) -> bool:
    """True when a tensor has the shape of another or of its first rows."""
    return there.shape == now.shape or (
        there.ndim == now.ndim > 0 and there.shape[1:] == now.shape[1:] and len(there) < len(now)
    )
