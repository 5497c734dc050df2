"""The running mean of a model's weights over an update, which is released in the place of the last ones."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

AVERAGE, TERMS, STEPS = "average.", "average_terms", "average_steps"


class WeightAverage:
    """``mean <- (n * mean + theta) / (n + 1)`` at the first step, every so many after it and the last, from the start.

    Running statistics are averaged like weights; counters are left alone.

    Attributes:
        terms: how many weights the mean is of, those that the update began with included.
        steps: how many were made.
    """

    def __init__(self, model: nn.Module, every: int, steps: int = 0) -> None:
        """Starts at a model's weights; there is a term every so many steps, and at the last of all `steps` if known."""
        self._model, self._every, self._last = model, max(1, every), steps - 1
        self._mean = {name: value.clone() for name, value in _averaged(model).items()}
        self.terms, self.steps = 1, 0

    def after_step(self) -> None:
        """Counts a step, and adds the weights to the mean when it is time."""
        if self.steps % self._every == 0 or self.steps == self._last:
            for name, value in _averaged(self._model).items():
                self._mean[name] += (value - self._mean[name]) / (self.terms + 1)
            self.terms += 1
        self.steps += 1

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Puts the mean into the model while the block runs, and back what was there, bit for bit."""
        before = {name: value.clone() for name, value in _averaged(self._model).items()}
        self.put()
        try:
            yield
        finally:
            _put(self._model, before)

    def put(self) -> None:
        """Puts the mean into the model."""
        _put(self._model, self._mean)

    def state(self) -> dict[str, Tensor]:
        """Returns the mean and its counters, for a checkpoint."""
        counters = {TERMS: torch.tensor(self.terms), STEPS: torch.tensor(self.steps)}
        return {f"{AVERAGE}{name}": value for name, value in self._mean.items()} | counters

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes what `state` returned."""
        for name, value in self._mean.items():
            value.copy_(state[f"{AVERAGE}{name}"])
        self.terms, self.steps = int(state[TERMS]), int(state[STEPS])


def _averaged(model: nn.Module) -> dict[str, Tensor]:
    return {n: value.detach() for n, value in model.state_dict().items() if value.is_floating_point()}


def _put(model: nn.Module, values: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, value in _averaged(model).items():
            value.copy_(values[name])
