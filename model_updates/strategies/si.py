"""SI: fine-tuning that pays for moving what brought the loss down before.

Idea: while an update runs, sum up for each parameter how much of the loss its own steps took away; at the end, what it
gained for how far it went is its importance; in later updates, moving it costs that.

Formula: ``omega -= g * step`` at each step, g the gradient without the penalty; at the end of an update ``Omega +=
relu(omega / ((theta - theta*)**2 + 0.1))``; ``L = L_contrastive + lambda * sum Omega (theta - theta*)**2``. Source:
Zenke et al., ICML 2017, as extended in CTP's library (ICCV 2023): lambda 1.

Where we differ: that library leaves out the relu of the paper, so that a parameter whose steps cost loss would be paid
for moving; we keep it. It gets g from a second forward pass; ours is a second backward pass over the same graph, so
that clipping does not enter g. theta* is the encoder before the update.

Carried between updates: Omega.
"""

from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.pair_sets import Batch
from model_updates.parts.consolidation import ConsolidationOptions, HeldWeights, Path
from model_updates.parts.importance import fitted
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Epochs, Family, UpdateContext


@dataclass(frozen=True)
class SiOptions(ConsolidationOptions):
    """Sets the penalty of SI."""

    strength: NotNegative = 1.0  # lambda, the weight of the penalty (1 in CTP's library).


class Si(TwoTowers):
    """Fine-tuning with synaptic intelligence."""

    name = "si"
    summary = "Fine-tunes both towers and holds back the weights whose steps brought the loss down before."
    paper = "Zenke et al., ICML 2017, as in CTP (ICCV 2023)"
    family = Family.HELD_WEIGHTS
    trains = "both towers"
    keeps = "an importance for each parameter, as large as the encoder"
    overhead = "one more backward pass a step (CTP: 4.9 h against 3.4 h)"
    options: SiOptions

    def __init__(self, options: SiOptions | None = None) -> None:
        super().__init__(options)
        self.held = self.add(HeldWeights(self.options.strength, self._measured))
        self.path = self.add(Path())

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the terms, and notes the gradient of the contrastive one alone."""
        terms = super().terms(batch)
        self.path.before_step(terms["contrastive"])
        return terms

    def _measured(self, context: UpdateContext, batches: Epochs) -> dict[str, Tensor]:
        """Returns the importance of all updates so far, summed."""
        earlier = self.held.importance
        return {
            name: value + fitted(earlier[name], value) if name in earlier else value
            for name, value in self.path.gain(self.held).items()
        }
