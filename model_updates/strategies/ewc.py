"""EWC: fine-tuning that pays for moving what mattered before.

Idea: at the end of each update, measure how much each parameter matters (the diagonal of the Fisher matrix: the mean
of squared gradients over the chunk's batches); in later updates, moving parameter i by d costs ``lambda/2 * F_i *
d**2``.

Formula: ``L = L_contrastive + (lambda / 2) * sum F (theta - theta*)**2``, theta* the weights before the update, F the
mean over all updates so far: ``F <- t/(t+1) F + 1/(t+1) F_new``. Source: Kirkpatrick et al., PNAS 2017, as extended
in CTP's library (ICCV 2023): one Fisher, averaged, not one for each task; lambda 5000. The masked-language terms of
that library have no counterpart in a dual encoder.

Where we differ: rows that another strategy has added to the token table since are unimportant until this one has seen
them. The Fisher pass runs in train mode, as the reference's does, and leaves running statistics as they were.

Carried between updates: F and how many updates it is of. theta* needs no copy: it is the encoder before the update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.encoder import training
from model_updates.errors import BadStrategyOption
from model_updates.pairs import Batch
from model_updates.parts.importance import fitted, mean_of_squared_gradients, quadratic_penalty, running_mean
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Epochs, State, UpdateContext


@dataclass(frozen=True)
class EwcOptions(TwoTowerOptions):
    """Adds the penalty to the options of two towers.

    Attributes:
        strength: lambda, the weight of the penalty; depends on the scale of the loss (5000 in CTP's library).
    """

    strength: float = 5000.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.strength < 0:
            raise BadStrategyOption(f"strength is not negative, got {self.strength}")


class Ewc(TwoTowers):
    """Fine-tuning with elastic weight consolidation."""

    name = "ewc"
    summary = "Fine-tunes both towers and holds back the weights that mattered for what was learned before."
    paper = "Kirkpatrick et al., PNAS 2017, as in CTP (ICCV 2023)"
    trains = "both towers"
    keeps = "a Fisher diagonal, as large as the encoder"
    overhead = "one more pass over the chunk (CTP: 4.6 h against 3.4 h)"
    Options = EwcOptions
    options: EwcOptions

    def __init__(self, options: EwcOptions | None = None) -> None:
        super().__init__(options)
        self._fisher: dict[str, Tensor] = {}
        self._updates = 0

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train, and remembers where the important ones stand."""
        super().before_update(context)
        self._now = dict(context.encoder.model.named_parameters())
        self._importance = {
            name: fitted(value, self._now[name]) for name, value in self._fisher.items() if name in self._now
        }
        self._anchors = {name: self._now[name].detach().clone() for name in self._importance}

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term and, from the second update on, the penalty."""
        terms = super().terms(batch)
        if self._importance:
            moved = quadratic_penalty(self._now, self._anchors, self._importance)
            terms["consolidation"] = self.options.strength / 2 * moved
        return terms

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Measures what matters for this chunk, and takes the mean with what mattered before."""
        model = context.encoder.model
        statistics = {name: value.detach().clone() for name, value in model.named_buffers()}
        with training(context.encoder):
            new = mean_of_squared_gradients(self._now, self._losses(batches, context))
        with torch.no_grad():
            for name, value in model.named_buffers():
                value.copy_(statistics[name])
        self._fisher = running_mean(self._fisher, new, self._updates)
        self._updates += 1
        self._importance, self._anchors, self._now = {}, {}, {}

    def carried(self) -> State:
        """Returns the Fisher diagonal and the number of updates it is the mean of."""
        return State(self._fisher, {"updates": self._updates}) if self._fisher else State()

    def carry(self, state: State) -> None:
        """Takes the Fisher diagonal."""
        self._fisher = {name: value.clone() for name, value in state.tensors.items()}
        self._updates = int(state.facts["updates"])

    def _losses(self, batches: Epochs, context: UpdateContext) -> Iterator[Tensor]:
        for batch in batches.epoch(context.seed):
            yield self.contrastive(batch.to(context.encoder.device))
