"""A head in closed form: a domain's pictures onto the texts that captions of theirs have, one head for each domain.

Idea: pictures of a domain are mapped to the space of texts by ridge regression on the domain's pairs (`parts.ridge`),
and what the classifier of the base encoder sees is added. Directions in which captions hardly differ count nearly as
much as those in which they all differ (whitening); the pictures carry that, so that no vector of any text moves. What
captions have in common tells no picture from another, so all pictures of the domain get as much of it as captions have.

Formula, in each space of the texts, for standardised trunk features x, the domain's caption vectors with mean m and
covariance C (its mean eigenvalue 1), W = (C + e I)^(-a/2), and h what the base encoder gives without its own mean:

    y = N(x B + b + k(x) A),   B and b by ridge regression onto (t - m) W
    q = (y + c N(h W)) W,   the picture's vector: sqrt(1 - |m|^2) N(q without its part along m) + m

Few captions show a covariance badly and teach little: e and c fall with the number n of pairs, to their values for
many, and the strength of B grows with n. What B leaves of a picture's captions is learned by kernel ridge regression
from pictures like it, k(x) = exp(-g |z - z_i|^2) for unit features z on their main axes: A = (K + D)^-1 R with R what
is left and D = s over the number of a picture's captions, s the noise that misses pictures left out one at a time the
least (docs/log.md has what was tried).
Source: our own; whitening of the targets is known from zero-shot learning by ridge regression (Romera-Paredes and Torr,
*ESZSL*, ICML 2015), kernel ridge regression from Saunders et al., ICML 1998, and one head a domain from nobody that we
know of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.inserts import Insert, Owner, RunImages
from model_updates.parts.ridge import Captioned, Sums, standard

STRENGTH, BY_PAIR = 15_000.0, 4.0  # of the ridge regression: STRENGTH + BY_PAIR n
NEARNESS = 3.0  # g
NOISES = (0.3, 1.0, 3.0)  # s is one of them
MOST_LEFT_OUT = 1000  # pictures that it is chosen by
AXES = 256  # of the features that the kernel sees
_NEVER = 1e-6  # captions of a picture that has none in a space: nothing is learned from it there
MOST_LIKE = 8192  # pictures that others are compared with, spread over all where there are more
POWER = 0.7  # a
LEAST, LEAST_FROM_FEW = 0.5, 800.0  # e = LEAST + LEAST_FROM_FEW / n
SEEN, SEEN_BY_FEW = 0.5, 80.0  # c = SEEN + SEEN_BY_FEW / n, at most MOST_SEEN
MOST_SEEN = 1.5


class RidgeHead(Insert):
    """The head of one domain; `fit` solves it from its pairs."""

    kind = "ridge-head"
    tower = "image"
    runs_in_tower = False
    only_counts = frozenset({"axes", "like"})
    seen: Tensor  # (spaces,) c
    weight: Tensor  # (f, dim) B of all spaces, beside one another
    bias: Tensor  # (dim,) b
    centre: Tensor  # (dim,) m
    base_centre: Tensor  # (dim,) what the base encoder's pictures have in common
    whiten: Tensor  # W of all spaces, one after another
    axes: Tensor  # (f, a) onto the main axes of unit features
    like: Tensor  # (k, a) float16, pictures on those axes
    left: Tensor  # (k, dim) float16, A of all spaces

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        self.widths, self.shares = list(config["widths"]), list(config["shares"])
        trunk, dim = int(config["trunk"]), sum(self.widths)
        axes, like = int(config.get("axes", 0)), int(config.get("like", 0))
        self.register_buffer("seen", torch.zeros(len(self.widths)))
        self.register_buffer("weight", torch.zeros(trunk, dim))
        self.register_buffer("bias", torch.zeros(dim))
        self.register_buffer("centre", torch.zeros(dim))
        self.register_buffer("base_centre", torch.zeros(dim))
        self.register_buffer("whiten", torch.zeros(sum(width * width for width in self.widths)))
        self._add_kernel(
            torch.zeros(trunk, axes), torch.zeros(like, axes).half(), torch.zeros(like, dim).half()
        )

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a head of the right shapes; its numbers come from `fit` or from a file."""
        return cls(owner, config).to(next(model.parameters()).device)

    def around_head(self, run: RunImages, trunk: Tensor) -> Tensor:
        features = standard(trunk)
        mapped = features @ self.weight + self.bias
        if len(self.like):
            mapped = mapped + self._near(features @ self.axes) @ self.left.float()
        fitted = self._each(mapped)
        seen = self._each(run(trunk))
        bases, centres = self._each(self.base_centre), self._each(self.centre)
        parts = []
        for n, (share, white) in enumerate(zip(self.shares, self._whiten(), strict=True)):
            own = functional.normalize((seen[n] / share - bases[n]) @ white, dim=-1)
            both = functional.normalize(fitted[n], dim=-1) + self.seen[n] * own
            parts.append(share * among_captions(both @ white, centres[n]))
        return torch.cat(parts, dim=-1)

    def fit(self, spaces: Sequence[Captioned]) -> None:
        """Solves the regressions of each space from its pairs; all spaces have the same pictures."""
        sums = list(Sums.of_all(spaces))
        features = spaces[0].features.cpu()
        alike = self._compare_with(features, sums[-1])
        kernel = self._near(self.like.float())
        solved_with, factor = kernel.new_zeros(0), kernel
        for n, (said, own, white) in enumerate(zip(spaces, sums, self._whiten(), strict=True)):
            count = max(1.0, float(own.count))
            white.copy_(whitening(own, LEAST + LEAST_FROM_FEW / count))
            self.seen[n] = min(MOST_SEEN, SEEN + SEEN_BY_FEW / count)
            fit = own.mapped(white.double().cpu()).solved(STRENGTH + BY_PAIR * count)
            self._each(self.weight)[n].copy_(fit.weight)
            self._each(self.bias)[n].copy_(fit.bias)
            self._each(self.centre)[n].copy_(own.targets / count)
            means, times = _means(said)
            rest = (means - (own.targets / count).float()) @ white.cpu() - features @ fit.weight - fit.bias
            rest, times = (one[alike].to(kernel.device) for one in (rest, times.clamp(min=_NEVER)))
            noise = best_noise(kernel, rest, times) / times
            if not torch.equal(noise, solved_with):  # spaces mostly have the same
                solved_with, factor = noise, torch.linalg.cholesky(_raised(kernel, noise))
            self._each(self.left)[n].copy_(torch.cholesky_solve(rest, factor))

    def _compare_with(self, features: Tensor, sums: Sums) -> Tensor:
        """Chooses the axes and the pictures of the kernel from features (p, f); returns those pictures' places (k,).

        The places are in an order that follows from the features alone, so that the order of pairs does not matter.
        """
        mean = sums.features / sums.count.clamp(min=1)
        spread = sums.gram - torch.outer(sums.features, mean)
        width = max(0, min(AXES, len(features) - 1, len(spread)))
        axes = torch.linalg.eigh(spread).eigenvectors[:, len(spread) - width :].float() / len(spread) ** 0.5
        rows = features @ axes
        order = rows[:, -1:].sum(dim=1).argsort()
        count = min(MOST_LIKE, len(order)) if width > 0 else 0
        alike: Tensor = order[torch.linspace(0, len(order) - 1, count).round().long()]
        self.config |= {"axes": width, "like": count}
        self._add_kernel(axes, rows[alike].half(), torch.zeros(count, sum(self.widths), dtype=torch.float16))
        return alike

    def _add_kernel(self, axes: Tensor, like: Tensor, left: Tensor) -> None:
        for name, rows in (("axes", axes), ("like", like), ("left", left)):
            # A head that has no kernel, as those of before there was one, is saved without it.
            self.register_buffer(name, rows.to(self.weight.device), persistent=len(like) > 0)

    def _near(self, rows: Tensor) -> Tensor:
        """Returns how near the rows (n, a) are to the pictures that the kernel compares with, (n, k), 0 … 1."""
        like = self.like.float()
        # In place: of eight thousand pictures this is a quarter of a gigabyte.
        apart = rows.square().sum(dim=1)[:, None] + like.square().sum(dim=1)
        return apart.sub_(2 * rows @ like.T).clamp_(min=0).mul_(-NEARNESS).exp_()

    def _each(self, rows: Tensor) -> Sequence[Tensor]:
        """Returns what belongs to each space, of rows (..., dim)."""
        return torch.split(rows, self.widths, dim=-1)

    def _whiten(self) -> list[Tensor]:
        squares = torch.split(self.whiten, [width * width for width in self.widths])
        return [one.view(width, width) for one, width in zip(squares, self.widths, strict=True)]


def _means(said: Captioned) -> tuple[Tensor, Tensor]:
    """Returns the mean target of each picture, (p, d), and how many it has, (p,), float32 on the CPU."""
    targets, picture = said.targets.float().cpu(), said.picture.cpu()
    times = torch.bincount(picture, minlength=len(said.features)).float()
    total = torch.zeros(len(times), targets.shape[1]).index_add(0, picture, targets)
    return total / times.clamp(min=1)[:, None], times


def _raised(kernel: Tensor, noise: Tensor) -> Tensor:
    """Returns a kernel (k, k) with noise (k,) on its diagonal."""
    raised = kernel.clone()
    raised.diagonal().add_(noise)
    return raised


def best_noise(kernel: Tensor, rest: Tensor, times: Tensor) -> float:
    """Returns the noise by which (k, d) targets are missed least, each left out in turn and said `times` (k,).

    Source: what is missed is known without solving again, (K + D)^-1 R over the diagonal of (K + D)^-1 (PRESS; Allen,
    Technometrics 1974).
    """
    some = torch.linspace(0, len(kernel) - 1, min(len(kernel), MOST_LEFT_OUT), device=kernel.device).long()
    kernel, rest, times = kernel[some][:, some], rest[some], times[some]

    def missed(noise: float) -> float:
        inverse = torch.linalg.inv(_raised(kernel, noise / times))
        return float((((inverse @ rest) / inverse.diagonal()[:, None]).square().sum(dim=1) * times).sum())

    return min(NOISES, key=missed)


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
