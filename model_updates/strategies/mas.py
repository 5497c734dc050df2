"""MAS: fine-tuning that pays for moving what the features are sensitive to.

Idea: a parameter matters when the length of the features changes with it; no label and no loss is needed to see that.
Measured at the end of each update; in later updates, moving parameter i by d costs ``lambda/2 * Omega_i * d**2``.

Formula: ``Omega_new`` is the mean over batches of ``|d/d theta (mean |u| + mean |v|)|``, u and v the raw projected
features of pictures and texts and ``|.|`` their length; ``Omega <- t/(t+1) Omega + 1/(t+1) Omega_new``; ``L =
L_contrastive + (lambda / 2) * sum Omega (theta - theta*)**2``. Source: Aljundi et al., ECCV 2018, as extended in CTP's
library (ICCV 2023): the length and not its square, lambda 1. Its term for fusion features has no counterpart here.

Carried between updates: Omega and how many updates it is of. theta* is the encoder before the update.
"""

from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.pair_sets import Batch
from model_updates.parts.consolidation import ConsolidationOptions, HeldWeights, over, passed_over
from model_updates.parts.importance import mean_of_absolute_gradients
from model_updates.parts.two_towers import TwoTowers, raw_features
from model_updates.strategy import Epochs, Family, UpdateContext


@dataclass(frozen=True)
class MasOptions(ConsolidationOptions):
    """Sets the penalty of MAS."""

    strength: NotNegative = 1.0  # lambda, the weight of the penalty (1 in CTP's library).


class Mas(TwoTowers):
    """Fine-tuning with memory aware synapses."""

    name = "mas"
    summary = "Fine-tunes both towers and holds back the weights that the features are most sensitive to."
    paper = "Aljundi et al., ECCV 2018, as in CTP (ICCV 2023)"
    family = Family.HELD_WEIGHTS
    trains = "both towers"
    keeps = "a sensitivity for each parameter, as large as the encoder"
    overhead = "one more pass over the chunk (CTP: 4.1 h against 3.4 h)"
    options: MasOptions

    def __init__(self, options: MasOptions | None = None) -> None:
        super().__init__(options)
        self.held = self.add(HeldWeights(self.options.strength / 2, self._measured))

    def _measured(self, context: UpdateContext, batches: Epochs) -> dict[str, Tensor]:
        """Returns the mean sensitivity over all updates so far."""
        with passed_over(context.encoder):
            lengths = over(batches, context, self._lengths)
            return self.held.mean_with(mean_of_absolute_gradients(self.held.now, lengths))

    def _lengths(self, batch: Batch) -> Tensor:
        image, text = raw_features(self._encoder, batch)
        length: Tensor = image.norm(dim=1).mean() + text.norm(dim=1).mean()
        return length
