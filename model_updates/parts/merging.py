"""Averages of whole checkpoints."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor


def keep_share(state: Mapping[str, Tensor], old: Mapping[str, Tensor], share: float) -> None:
    """Moves a model's state back towards an earlier state, in place: ``old + share * (now - old)`` for every key.

    Share 0 restores the old values and share 1 keeps the new ones, both bit by bit (C-CLIP, eq. 2).
    Integer buffers keep their new value.
    """
    with torch.no_grad():
        for name, now in state.items():
            if now.is_floating_point():
                now.copy_(torch.lerp(old[name], now, share))
