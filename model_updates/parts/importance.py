"""How much each parameter matters for what was learned, and the penalty for moving it."""

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor


def quadratic_penalty(
    now: Mapping[str, Tensor], anchors: Mapping[str, Tensor], importance: Mapping[str, Tensor]
) -> Tensor:
    """Returns ``sum importance * (now - anchor)**2``, a scalar; parameters without an importance are free."""
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
    """Returns the mean over batches of each parameter's squared gradient: the diagonal of the Fisher matrix."""
    return _mean_of_gradients(parameters, losses, torch.square)


def mean_of_absolute_gradients(
    parameters: Mapping[str, Tensor], outputs: Iterable[Tensor]
) -> dict[str, Tensor]:
    """Returns the mean over batches of how steeply an output changes with each parameter: the sensitivity of MAS."""
    return _mean_of_gradients(parameters, outputs, torch.abs)


def _mean_of_gradients(
    parameters: Mapping[str, Tensor], losses: Iterable[Tensor], of: Callable[[Tensor], Tensor]
) -> dict[str, Tensor]:
    sums = {name: torch.zeros_like(value) for name, value in parameters.items()}
    count = 0
    for loss in losses:
        for name, gradient in gradients_of(loss, parameters).items():
            sums[name] += of(gradient)
        count += 1
    return {name: value / max(1, count) for name, value in sums.items()}


def gradients_of(
    loss: Tensor, parameters: Mapping[str, Tensor], *, keep_graph: bool = False
) -> dict[str, Tensor]:
    """Returns the gradient of a loss for each parameter that it depends on; `.grad` stays as it is."""
    names = list(parameters)
    found = torch.autograd.grad(
        loss, [parameters[name] for name in names], allow_unused=True, retain_graph=keep_graph
    )
    return {n: gradient.detach() for n, gradient in zip(names, found, strict=True) if gradient is not None}


class PathIntegral:
    """How much of the loss each parameter's own steps took away: ``omega -= g * step``, summed over an update.

    Attributes:
        gained: omega, by parameter name.
    """

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        self._parameters = dict(parameters)
        self.gained = {name: torch.zeros_like(value) for name, value in parameters.items()}
        self._gradients: dict[str, Tensor] = {}
        self._before: dict[str, Tensor] = {}

    def before_step(self, loss: Tensor) -> None:
        """Notes the gradient of the loss alone, no penalty in it, and where the parameters stand."""
        self._gradients = gradients_of(loss, self._parameters, keep_graph=True)
        self._before = {name: self._parameters[name].detach().clone() for name in self._gradients}

    def after_step(self) -> None:
        """Adds what the step that was made has gained."""
        for name, gradient in self._gradients.items():
            self.gained[name] -= gradient * (self._parameters[name].detach() - self._before[name])
        self._gradients, self._before = {}, {}


def gain_for_distance(
    gained: Mapping[str, Tensor],
    now: Mapping[str, Tensor],
    start: Mapping[str, Tensor],
    *,
    damping: float,
    fisher: Mapping[str, Tensor] | None = None,
) -> dict[str, Tensor]:
    """Returns ``relu(omega / (F * (theta - theta*)**2 + xi))``: what a parameter gained for how far it went.

    `gained` is omega by name, `start` where the parameters stood when the update began. `damping` is xi, which keeps a
    parameter that did not move from mattering without bound. F is Riemannian walk's; None counts every distance alike
    (synaptic intelligence).
    """
    scores = {}
    for name, gain in gained.items():
        distance = (now[name].detach() - start[name]) ** 2
        if fisher is not None:
            distance = fisher[name] * distance
        scores[name] = (gain / (distance + damping)).relu()
    return scores
