"""Ridge regression from picture features onto text vectors, from sums that add up.

Idea: what a regression needs of its pairs are sums. Those of two chunks added are those of both together, and those of
one taken away are those of the rest; so the order of chunks does not matter, a withdrawn one is unlearned exactly, and
leaving out a fold costs one more solution and no pass over pairs.

Formula: with features centred on their mean and targets on theirs, B = (A'A + strength I)^-1 A'Y; what is fitted is
``y = mean(Y) + (a - mean(A)) B``.
Source: Hoerl and Kennard, *Ridge Regression*, Technometrics 1970; sums in the place of a replay memory as in ACIL
(Zhuang et al., NeurIPS 2022) and RanPAC (McDonnell et al., NeurIPS 2023), whose one map serves all tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from model_updates.pair_sets import PairSet
from model_updates.prospect import Prospect, listed

ROWS = 4096


@dataclass(frozen=True)
class Sums:
    """What a ridge regression needs of pairs, float64 on the CPU; f features, d numbers of a target.

    What is summed are products of 32 bits (`products`).
    """

    count: Tensor  # () pairs
    features: Tensor  # (f,) sum of the features
    targets: Tensor  # (d,) sum of the targets
    gram: Tensor  # (f, f) features with features
    cross: Tensor  # (f, d) features with targets
    spread: Tensor  # (d, d) targets with targets

    @classmethod
    def of(cls, features: Tensor, targets: Tensor, picture: Tensor) -> Sums:
        """Returns the sums of pairs: features (p, f) of pictures, targets (n, d), and the `picture` (n,) of each."""
        return next(cls.of_all([Captioned(features, targets, picture)]))

    @classmethod
    def of_all(cls, spaces: Sequence[Captioned]) -> Iterator[Sums]:
        """Yields the sums in each space of the texts' vectors; all have the same pictures."""
        a = spaces[0].features.float().cpu()
        times, gram = None, a
        for _, targets, picture in spaces:
            y, picture = targets.float().cpu(), picture.cpu()
            counted = torch.bincount(picture, minlength=len(a)).double()
            if times is None or not torch.equal(counted, times):  # spaces mostly have the same texts
                times, gram = counted, products(a * counted.float()[:, None], a)
            said = a.new_zeros(len(a), y.shape[1]).index_add(0, picture, y)
            yield cls(
                times.sum(),
                times @ a.double(),
                y.sum(dim=0, dtype=torch.float64),
                gram,
                products(a, said),
                products(y, y),
            )

    @classmethod
    def none(cls, features: int, targets: int) -> Sums:
        """Returns the sums of no pair."""
        return cls.of(torch.zeros(0, features), torch.zeros(0, targets), torch.zeros(0, dtype=torch.int64))

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: value + other.tensors()[name] for name, value in self.tensors().items()})

    def __sub__(self, other: Sums) -> Sums:
        return Sums(**{name: value - other.tensors()[name] for name, value in self.tensors().items()})

    def tensors(self) -> dict[str, Tensor]:
        """Returns the sums by name, as `Sums(**tensors)` takes them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def mapped(self, by: Tensor) -> Sums:
        """Returns the sums of pairs whose centred targets a matrix (d, e) maps."""
        mean = self.targets / self.count.clamp(min=1)
        away = self.cross - torch.outer(self.features, mean)
        spread = self.spread - self.count * torch.outer(mean, mean)
        return Sums(
            self.count, self.features, torch.zeros_like(mean) @ by, self.gram, away @ by, by.T @ spread @ by
        )

    def solved(self, strength: float) -> Fit:
        """Returns the regression whose coefficients a `strength` > 0 holds back."""
        return self.solved_for([strength])[0]

    def solved_for(self, strengths: Sequence[float]) -> list[Fit]:
        """Returns a regression for each strength; they share one decomposition."""
        count = self.count.clamp(min=1)
        at, mean = self.features / count, self.targets / count
        gram = self.gram - torch.outer(self.features, at)
        cross = self.cross - torch.outer(self.features, mean)
        if len(strengths) == 1:
            weights = [torch.linalg.solve(gram + strengths[0] * torch.eye(len(gram)), cross)]
        else:
            values, axes = torch.linalg.eigh(gram)
            turned = axes.T @ cross
            weights = [axes @ (turned / (values.clamp(min=0) + one)[:, None]) for one in strengths]
        return [Fit(weight.float(), (mean - at @ weight).float()) for weight in weights]


def products(a: Tensor, b: Tensor) -> Tensor:
    """Returns a'b of float32 (n, f) and (n, d), (f, d) float64.

    Some thousand rows are multiplied in 32 bits, which takes half the time and rounds by a millionth; their sums add
    up in 64.
    """
    return sum(
        ((x.T @ y).double() for x, y in zip(torch.split(a, ROWS), torch.split(b, ROWS), strict=True)),
        torch.zeros(a.shape[1], b.shape[1], dtype=torch.float64),
    )


@dataclass(frozen=True)
class Fit:
    """A linear map: features (n, f) to (n, d)."""

    weight: Tensor  # (f, d) float32
    bias: Tensor  # (d,) float32


def standard(trunk: Tensor) -> Tensor:
    """Returns trunk features (n, f) as a regression takes them: each row with mean 0 and variance 1."""
    return functional.layer_norm(trunk, trunk.shape[-1:])


def by_name(tensors: Mapping[str, Tensor]) -> dict[str, Sums]:
    """Returns sums from tensors named ``<name>/<sum>``, as `named` writes them."""
    found: dict[str, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        name, _, part = key.rpartition("/")
        found.setdefault(name, {})[part] = value
    return {name: Sums(**parts) for name, parts in found.items()}


def named(sums: Mapping[str, Sums]) -> dict[str, Tensor]:
    """Returns the tensors of some sums, each under its name and that of the sum."""
    return {f"{name}/{part}": value for name, own in sums.items() for part, value in own.tensors().items()}


class Captioned(NamedTuple):
    """Pairs as a regression takes them; a picture may have no text."""

    features: Tensor  # (p, f) of pictures
    targets: Tensor  # (n, d) of texts, of length 1
    picture: Tensor  # (n,) int64 of each text


def captioned_in(
    pairs: PairSet, widths: Sequence[int], features: Callable[[Tensor], Tensor] = standard
) -> Iterator[Captioned]:
    """Yields the pairs in each space of their texts' vectors, those whose text has a vector there.

    All have the same pictures, and these and the texts stand in an order that follows from what they are: the same
    features give the same numbers to the last bit in whatever order chunks came. `features` makes of trunk features
    (n, f) what the regression takes.
    """
    if pairs.text_features is None:
        raise ValueError("a head is solved from text features; the strategy must ask for them")
    said = [(pair.image_id, pair.language, pair.text) for pair in pairs.pairs]
    order = torch.tensor(sorted(range(len(said)), key=said.__getitem__), dtype=torch.int64)
    numbers = pairs.image_index[order]
    first = {number: place for place, number in enumerate(dict.fromkeys(numbers.tolist()))}
    picture = torch.tensor([first[number] for number in numbers.tolist()], dtype=torch.int64)
    rows = features(pairs.pictures.trunk[list(first)])
    for targets in torch.split(pairs.text_features[order], list(widths), dim=-1):
        there = (targets.norm(dim=-1) > 0).nonzero()[:, 0]
        yield Captioned(rows, functional.normalize(targets[there], dim=-1), picture[there])


def nothing_readable(prospect: Prospect, name: str) -> str | None:
    """Says why a regression onto texts cannot learn from captions that nobody can read yet; None where it can."""
    if prospect.languages & prospect.learned_languages:
        return None
    return (
        f"no caption of this chunk is in a language that is learned ({listed(prospect.languages)} is not), so they "
        f"cannot say to {name} what its pictures show. Use evergreen, which teaches the language too"
    )
