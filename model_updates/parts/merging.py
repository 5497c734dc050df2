"""Averages of whole checkpoints, going back to one, and what many differ from one by.

What follows holds for parameters, by name. The temperature is a parameter in log space and is averaged there. A token
table may have grown: only rows that both have are averaged, later ones keep their value. Running statistics are no
parameters: the mean of two networks' statistics is that of no network, so they are counted anew
(`parts.merging_towers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


def interpolated(old: Mapping[str, Tensor], new: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Returns ``(1 - share) * old + share * new``, exact at 0 and 1 (WiSE-FT, CVPR 2022, 3)."""
    return {
        name: with_rows_of(torch.lerp(old[name], now[: len(old[name])] if now.ndim else now, share), now)
        if name in old and is_start_of(old[name], now)
        else now.clone()
        for name, now in new.items()
    }


def task_vector(base: Mapping[str, Tensor], trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Returns ``tau = trained - base`` of all that the base has (Ilharco et al., ICLR 2023)."""
    return {
        name: (now[: len(base[name])] if now.ndim else now) - base[name]
        for name, now in trained.items()
        if name in base and is_start_of(base[name], now)
    }


def added(
    base: Mapping[str, Tensor], vector: Mapping[str, Tensor], trained: Mapping[str, Tensor], scale: float
) -> dict[str, Tensor]:
    """Returns ``base + scale * vector``; what the vector does not cover is as it was trained."""
    return {
        name: with_rows_of(base[name] + scale * vector[name], now) if name in vector else now.clone()
        for name, now in trained.items()
    }


def trimmed(vector: Mapping[str, Tensor], keep: float) -> dict[str, Tensor]:
    """Returns a task vector with all but its largest entries set to 0: a share of all of them, over all parameters."""
    sizes = torch.cat([value.abs().flatten() for value in vector.values()])
    kept = max(1, round(keep * len(sizes)))
    smallest = sizes.kthvalue(len(sizes) - kept + 1).values
    return {name: torch.where(value.abs() >= smallest, value, 0.0) for name, value in vector.items()}


@dataclass(frozen=True)
class SignSums:
    """What TIES needs of all trimmed task vectors so far: their sums and counts by sign, and not the vectors."""

    up: Mapping[str, Tensor]  # the sum of the positive entries
    down: Mapping[str, Tensor]  # that of the negative ones
    ups: Mapping[str, Tensor]  # how many were positive, int16
    downs: Mapping[str, Tensor]  # how many were negative

    @classmethod
    def none(cls, like: Mapping[str, Tensor]) -> SignSums:
        """Returns the sums of no vector at all."""
        zero = {name: torch.zeros_like(value) for name, value in like.items()}
        none = {name: torch.zeros_like(value, dtype=torch.int16) for name, value in like.items()}
        return cls(zero, zero, none, none)

    def to(self, device: torch.device) -> SignSums:
        """Returns the sums on a device."""
        parts = (self.up, self.down, self.ups, self.downs)
        return SignSums(*({name: value.to(device) for name, value in part.items()} for part in parts))

    def with_one_more(self, vector: Mapping[str, Tensor]) -> SignSums:
        """Returns the sums with another trimmed task vector in them."""
        return SignSums(
            {name: self.up[name] + value.clamp(min=0) for name, value in vector.items()},
            {name: self.down[name] + value.clamp(max=0) for name, value in vector.items()},
            {name: self.ups[name] + (value > 0).to(torch.int16) for name, value in vector.items()},
            {name: self.downs[name] + (value < 0).to(torch.int16) for name, value in vector.items()},
        )

    def merged(self) -> dict[str, Tensor]:
        """Returns the mean of the entries that have the elected sign, that of their sum.

        Where the sum is 0 the sign is that of the majority of all entries (TIES, NeurIPS 2023).
        """
        signs = {name: (self.up[name] + self.down[name]).sign() for name in self.up}
        majority = torch.stack([value.sum() for value in signs.values()]).sum().sign()
        merged = {}
        for name, value in signs.items():
            elected = torch.where(value == 0, majority, value)
            up = self.up[name] / self.ups[name].clamp(min=1)
            down = self.down[name] / self.downs[name].clamp(min=1)
            merged[name] = torch.where(elected > 0, up, torch.where(elected < 0, down, 0.0))
        return merged


def with_rows_of(value: Tensor, longer: Tensor) -> Tensor:
    """Returns a value followed by the rows that a longer tensor has beyond it."""
    return value if value.shape == longer.shape else torch.cat([value, longer[len(value) :]])


def is_start_of(there: Tensor, now: Tensor) -> bool:
    """True when a tensor has the shape of another or of its first rows."""
    return there.shape == now.shape or (
        there.ndim == now.ndim > 0 and there.shape[1:] == now.shape[1:] and len(there) < len(now)
    )
