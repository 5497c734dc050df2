"""Fine-tuning that pays for moving the parameters that mattered: what EWC, SI, MAS, RWalk and AFEC share.

``L = L_contrastive + factor * sum W (theta - theta*)**2``, theta* the weights before the update. The methods differ in
how they measure the weights W at the end of an update. Masked-language terms of CTP's library have no counterpart in a
dual encoder. Rows that another strategy has added to the token table since weigh nothing until they were measured.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.encoder import Encoder, training
from model_updates.errors import BadStrategyOption
from model_updates.pairs import Batch
from model_updates.parts.importance import (
    PathIntegral,
    fitted,
    mean_of_squared_gradients,
    quadratic_penalty,
    running_mean,
)
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Epochs, State, UpdateContext

PATH = "path."
DAMPING = 0.1  # xi of SI and RWalk


@dataclass(frozen=True)
class ConsolidationOptions(TwoTowerOptions):
    """Adds the penalty to the options of two towers.

    Attributes:
        strength: lambda, the weight of the penalty; depends on the scale of the loss (5000 in CTP's library).
    """

    strength: float = 5000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strength < 0:
            raise BadStrategyOption(f"strength is not negative, got {self.strength}")


class Consolidation(TwoTowers):
    """Base of the methods that weigh parameters.

    Attributes:
        updates: how many updates the weights are of.
        importance: what is carried of each parameter, by name.
    """

    Options = ConsolidationOptions
    options: ConsolidationOptions

    def __init__(self, options: ConsolidationOptions | None = None) -> None:
        super().__init__(options)
        self.importance: dict[str, Tensor] = {}
        self.updates = 0
        self._now: dict[str, Tensor] = {}
        self._anchors: dict[str, Tensor] = {}
        self._weights: dict[str, Tensor] = {}

    @abstractmethod
    def measured(self, context: UpdateContext, batches: Epochs) -> dict[str, Tensor]:
        """Returns the importance to carry from this update on; called once at its end."""

    @property
    def factor(self) -> float:
        """What the weighted squared distances are multiplied by."""
        return self.options.strength / 2

    def weights(self) -> Mapping[str, Tensor]:
        """Returns the weights of the penalty, by parameter name."""
        return self.importance

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train, and remembers where they stand."""
        super().before_update(context)
        self._now = dict(context.encoder.model.named_parameters())
        self._anchors = {name: value.detach().clone() for name, value in self._now.items()}
        self._weights = {
            name: fitted(value, self._now[name])
            for name, value in self.weights().items()
            if name in self._now
        }

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term and, from the second update on, the penalty."""
        terms = super().terms(batch)
        if self._weights:
            moved = quadratic_penalty(self._now, self._anchors, self._weights)
            terms["consolidation"] = self.factor * moved
        return terms

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Measures what matters for this chunk, beside what mattered before."""
        self.importance = self.measured(context, batches)
        self.updates += 1
        self._now, self._anchors, self._weights = {}, {}, {}

    def mean_with_earlier(self, new: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the mean of this update's measure and of all earlier ones."""
        return running_mean(self.importance, new, self.updates)

    def fisher(
        self, context: UpdateContext, batches: Epochs, encoder: Encoder | None = None
    ) -> dict[str, Tensor]:
        """Returns the mean of squared gradients over the chunk's batches, in train mode as CTP's library does.

        Args:
            context: of the update.
            batches: gives the chunk's batches.
            encoder: whose; the candidate's where none is named.
        """
        chosen = encoder or context.encoder
        now = dict(chosen.model.named_parameters())
        with passed_over(chosen):
            losses = self.over(batches, context, lambda batch: self.contrastive(batch, chosen))
            return mean_of_squared_gradients(now, losses)

    def over(
        self, batches: Epochs, context: UpdateContext, measure: Callable[[Batch], Tensor]
    ) -> Iterator[Tensor]:
        """Yields a scalar for each batch of the chunk."""
        for batch in batches.epoch(context.seed):
            yield measure(batch.to(context.encoder.device))

    def carried(self) -> State:
        """Returns the importance and the number of updates that it is of."""
        return State(self.importance, {"updates": self.updates}) if self.updates else State()

    def carry(self, state: State) -> None:
        """Takes the importance that earlier updates measured."""
        self.importance = {name: value.clone() for name, value in state.tensors.items()}
        self.updates = int(state.facts["updates"])


class PathConsolidation(Consolidation):
    """Base of the methods that follow what each parameter's steps gain, which costs one more backward pass a step."""

    def __init__(self, options: ConsolidationOptions | None = None) -> None:
        super().__init__(options)
        self._path = PathIntegral({})

    def before_update(self, context: UpdateContext) -> None:
        """Starts the path."""
        super().before_update(context)
        self._path = PathIntegral(self._now)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the terms, and notes the gradient of the contrastive one alone."""
        terms = super().terms(batch)
        self._path.before_step(terms["contrastive"])
        return terms

    def after_step(self) -> None:
        """Keeps the temperature in range and adds what the step gained."""
        super().after_step()
        self._path.after_step()

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Measures, and lets go of the path."""
        super().after_update(context, batches)
        self._path = PathIntegral({})

    def progress(self) -> dict[str, Tensor]:
        """Returns the path so far."""
        return {f"{PATH}{name}": gained for name, gained in self._path.gained.items()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes the path back."""
        for name, gained in self._path.gained.items():
            gained.copy_(progress[f"{PATH}{name}"])


@contextmanager
def passed_over(encoder: Encoder) -> Iterator[None]:
    """Puts an encoder in train mode for a pass without steps; running statistics are left as they were."""
    model = encoder.model
    statistics = {name: value.detach().clone() for name, value in model.named_buffers()}
    with training(encoder):
        yield
    with torch.no_grad():
        for name, value in model.named_buffers():
            value.copy_(statistics[name])
