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

from torch import Tensor

from model_updates.parts.consolidation import ConsolidationOptions, HeldWeights, fisher
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Epochs, Family, UpdateContext


class Ewc(TwoTowers):
    """Fine-tuning with elastic weight consolidation."""

    name = "ewc"
    summary = "Fine-tunes both towers and holds back the weights that mattered for what was learned before."
    paper = "Kirkpatrick et al., PNAS 2017, as in CTP (ICCV 2023)"
    family = Family.HELD_WEIGHTS
    trains = "both towers"
    keeps = "a Fisher diagonal, as large as the encoder"
    overhead = "one more pass over the chunk (CTP: 4.6 h against 3.4 h)"
    options: ConsolidationOptions

    def __init__(self, options: ConsolidationOptions | None = None) -> None:
        super().__init__(options)
        self.held = self.add(HeldWeights(self.options.strength / 2, self._measured))

    def _measured(self, context: UpdateContext, batches: Epochs) -> dict[str, Tensor]:
        """Returns the mean Fisher diagonal of all updates so far."""
        return self.held.mean_with(fisher(context, batches))
