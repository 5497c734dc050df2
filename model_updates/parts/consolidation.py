"""Fine-tuning that pays for moving the parameters that mattered: what EWC, SI, MAS, RWalk and AFEC share.

``L = L_contrastive + factor * sum W (theta - theta*)**2``, theta* the weights before the update. The methods differ in
how they measure the weights W at the end of an update. Masked-language terms of CTP's library have no counterpart in a
dual encoder. Rows that another strategy has added to the token table since weigh nothing until they were measured.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.encoder import Encoder, training
from model_updates.pair_sets import Batch
from model_updates.parts.importance import (
    PathIntegral,
    fitted,
    gain_for_distance,
    mean_of_squared_gradients,
    quadratic_penalty,
    running_mean,
)
from model_updates.parts.two_towers import TwoTowerOptions, contrastive
from model_updates.strategy import Epochs, Part, State, UpdateContext

PATH = "path."
DAMPING = 0.1  # xi of SI and RWalk


@dataclass(frozen=True)
class ConsolidationOptions(TwoTowerOptions):
    """Adds the penalty to the options of two towers."""

    # lambda, the weight of the penalty; depends on the scale of the loss (5000 in CTP's library).
    strength: NotNegative = 5000.0


class HeldWeights(Part):
    """The parameters of both towers, each held where an update found it by a weight that earlier updates measured.

    The weighted squared distances are multiplied by `factor`. `measure`, called once at an update's end, gives the
    importance to carry from it on; `weights` gives the weights where they are not the importance itself.
    """

    def __init__(
        self,
        factor: float,
        measure: Callable[[UpdateContext, Epochs], dict[str, Tensor]],
        weights: Callable[[], Mapping[str, Tensor]] | None = None,
    ) -> None:
        self.importance: dict[str, Tensor] = {}  # what is carried of each parameter, by name
        self.updates = 0  # how many updates the importance is of
        self.now: dict[str, Tensor] = {}  # the parameters in training, by name
        self.anchors: dict[str, Tensor] = {}  # where they stood when the update began
        self.factor, self._measure, self._weigh = factor, measure, weights
        self.held: dict[str, Tensor] = {}  # their weights in this update

    def before_update(self, context: UpdateContext) -> None:
        self.now = dict(context.encoder.model.named_parameters())
        self.anchors = {name: value.detach().clone() for name, value in self.now.items()}
        weights = self.weights()
        self.held = {n: fitted(value, self.now[n]) for n, value in weights.items() if n in self.now}

    def weights(self) -> Mapping[str, Tensor]:
        """Returns the weights of the penalty, by parameter name."""
        return self.importance if self._weigh is None else self._weigh()

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the penalty, from the second update on."""
        if not self.held:
            return {}
        return {"consolidation": self.factor * quadratic_penalty(self.now, self.anchors, self.held)}

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Measures what matters for this chunk, beside what mattered before."""
        self.importance = self._measure(context, batches)
        self.updates += 1
        self.now, self.anchors, self.held = {}, {}, {}

    def mean_with(self, new: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the mean of this update's measure and of all earlier ones."""
        return running_mean(self.importance, new, self.updates)

    def carried(self) -> State:
        return State(self.importance, {"updates": self.updates}) if self.updates else State()

    def carry(self, state: State) -> None:
        self.importance = {name: value.clone() for name, value in state.tensors.items()}
        self.updates = int(state.facts["updates"])


def fisher(context: UpdateContext, batches: Epochs, encoder: Encoder | None = None) -> dict[str, Tensor]:
    """Returns the mean of squared gradients over the chunk's batches, in train mode as CTP's library does."""
    chosen = encoder or context.encoder
    with passed_over(chosen):
        losses = over(batches, context, lambda batch: contrastive(chosen, batch))
        return mean_of_squared_gradients(dict(chosen.model.named_parameters()), losses)


def over(batches: Epochs, context: UpdateContext, measure: Callable[[Batch], Tensor]) -> Iterator[Tensor]:
    """Yields a scalar for each batch of the chunk."""
    for batch in batches.epoch(context.seed):
        yield measure(batch.to(context.encoder.device))


class Path(Part):
    """What each parameter's steps gain on the way through an update, which costs one more backward pass a step."""

    def __init__(self) -> None:
        self.integral = PathIntegral({})

    def before_update(self, context: UpdateContext) -> None:
        self.integral = PathIntegral(dict(context.encoder.model.named_parameters()))

    def before_step(self, loss: Tensor) -> None:
        """Notes the gradient of the loss alone, no penalty in it, and where the parameters stand."""
        self.integral.before_step(loss)

    def after_step(self) -> None:
        self.integral.after_step()

    def gain(self, held: HeldWeights, importance: Mapping[str, Tensor] | None = None) -> dict[str, Tensor]:
        """Returns what each parameter gained for how far it went, and lets go of the path."""
        gained, self.integral = self.integral.gained, PathIntegral({})
        return gain_for_distance(gained, held.now, held.anchors, damping=DAMPING, fisher=importance)

    def progress(self) -> dict[str, Tensor]:
        return {f"{PATH}{name}": gained for name, gained in self.integral.gained.items()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        for name, gained in self.integral.gained.items():
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
