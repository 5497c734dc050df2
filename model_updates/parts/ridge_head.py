"""A head in closed form: a domain's pictures onto the texts that captions of theirs have, one head for each domain.

Idea: pictures of a domain are mapped to the space of texts by ridge regression on the domain's pairs (`parts.ridge`),
and what the classifier of the base encoder sees is added. Directions in which captions hardly differ count nearly as
much as those in which they all differ (whitening); the pictures carry that, so that no vector of any text moves. What
captions have in common tells no picture from another, so all pictures of the domain get as much of it as captions have.

Formula, in each space of the texts, for standardised trunk features x, the domain's caption vectors with mean m and
covariance C (its mean eigenvalue 1), W = (C + e I)^(-a/2), and h what the base encoder gives without its own mean:

    y = N(x B + b),   B and b by ridge regression onto (t - m) W
    q = (y + c N(h W)) W,   the picture's vector: sqrt(1 - |m|^2) N(q without its part along m) + m

Few captions show a covariance badly and teach little: e and c fall with the number n of pairs, to their values for
many; the ridge's own strength is the same for all (docs/log.md has what was tried).
Source: our own; whitening of the targets is known from zero-shot learning by ridge regression (Romera-Paredes and Torr,
*ESZSL*, ICML 2015), and one head a domain from nobody that we know of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.inserts import Insert, Owner, RunImages
from model_updates.parts.ridge import Sums, standard

STRENGTH = 15_000.0  # of the ridge regression
POWER = 0.7  # a
LEAST, LEAST_FROM_FEW = 0.5, 800.0  # e = LEAST + LEAST_FROM_FEW / n
SEEN, SEEN_BY_FEW = 0.5, 80.0  # c = SEEN + SEEN_BY_FEW / n, at most MOST_SEEN
MOST_SEEN = 1.5


class RidgeHead(Insert):
    """The head of one domain; `fit` solves it from the sums of its pairs."""

    kind = "ridge-head"
    tower = "image"
    runs_in_tower = False
    seen: Tensor  # (spaces,) c
    weight: Tensor  # (f, dim) B of all spaces, beside one another
    bias: Tensor  # (dim,) b
    centre: Tensor  # (dim,) m
    base_centre: Tensor  # (dim,) what the base encoder's pictures have in common
    whiten: Tensor  # W of all spaces, one after another

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        self.widths, self.shares = list(config["widths"]), list(config["shares"])
        trunk, dim = int(config["trunk"]), sum(self.widths)
        self.register_buffer("seen", torch.zeros(len(self.widths)))
        self.register_buffer("weight", torch.zeros(trunk, dim))
        self.register_buffer("bias", torch.zeros(dim))
        self.register_buffer("centre", torch.zeros(dim))
        self.register_buffer("base_centre", torch.zeros(dim))
        self.register_buffer("whiten", torch.zeros(sum(width * width for width in self.widths)))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a head of the right shapes; its numbers come from `fit` or from a file."""
        return cls(owner, config).to(next(model.parameters()).device)

    def around_head(self, run: RunImages, trunk: Tensor) -> Tensor:
        fitted, seen = self._each(standard(trunk) @ self.weight + self.bias), self._each(run(trunk))
        bases, centres = self._each(self.base_centre), self._each(self.centre)
        parts = []
        for n, (share, white) in enumerate(zip(self.shares, self._whiten(), strict=True)):
            own = functional.normalize((seen[n] / share - bases[n]) @ white, dim=-1)
            both = functional.normalize(fitted[n], dim=-1) + self.seen[n] * own
            parts.append(share * among_captions(both @ white, centres[n]))
        return torch.cat(parts, dim=-1)

    def fit(self, sums: Sequence[Sums]) -> None:
        """Solves the regression of each space from the sums of its pairs."""
        for n, (own, white) in enumerate(zip(sums, self._whiten(), strict=True)):
            count = max(1.0, float(own.count))
            white.copy_(whitening(own, LEAST + LEAST_FROM_FEW / count))
            self.seen[n] = min(MOST_SEEN, SEEN + SEEN_BY_FEW / count)
            fit = own.mapped(white.double()).solved(STRENGTH)
            self._each(self.weight)[n].copy_(fit.weight)
            self._each(self.bias)[n].copy_(fit.bias)
            self._each(self.centre)[n].copy_(own.targets / count)

    def _each(self, rows: Tensor) -> Sequence[Tensor]:
        """Returns what belongs to each space, of rows (..., dim)."""
        return torch.split(rows, self.widths, dim=-1)

    def _whiten(self) -> list[Tensor]:
        squares = torch.split(self.whiten, [width * width for width in self.widths])
        return [one.view(width, width) for one, width in zip(squares, self.widths, strict=True)]


def among_captions(rows: Tensor, centre: Tensor) -> Tensor:
    """Returns unit vectors (n, d) in the direction of rows, but along `centre` (d,), |centre| < 1, as captions are."""
    length = centre.norm()
    along = centre / length.clamp(min=1e-9)
    across = functional.normalize(rows - (rows @ along)[:, None] * along, dim=-1)
    return torch.sqrt((1 - length.square()).clamp(min=0)) * across + centre


def whitening(sums: Sums, least: float) -> Tensor:
    """Returns W (d, d) float64 of the captions behind some sums."""
    count = sums.count.clamp(min=1)
    mean = sums.targets / count
    values, axes = torch.linalg.eigh(sums.spread / count - torch.outer(mean, mean))
    values = values.clamp(min=0)
    values = values / values.mean().clamp(min=1e-12)
    white: Tensor = (axes * (values + least) ** (-POWER / 2)) @ axes.T
    return white
