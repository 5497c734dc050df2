"""Mod-X: fine-tuning that keeps the old similarities of a batch, where they were right.

Idea: with training, the two towers turn against each other and old pairs no longer meet. Keep the shape of the whole
similarity matrix as the old model has it, but only the rows in which it finds the right partner.

Formula: ``L = L_contrastive + alpha / 2 * (sum_{i right} KL(sm(M_old[i]) || sm(M[i])) + the same of the transposes)``,
M the cosines of pictures and texts without any temperature, row i right when its largest old cosine is its own pair's;
alpha 20. Source: Ni et al., ICML 2023, eq. 4 and 5, and the authors' code.

Where we differ: the paper puts the new model's row in the place of a wrong one, which adds nothing to value or
gradient; we leave the row out (a test shows that both are equal). Its eq. 4 omits the softmax, and its code takes the
sum over rows, so that alpha grows with the batch: with ``reduction=scaled`` alpha means what it meant for batches of
280. Softmaxes of cosines are nearly uniform; the term is a centred squared distance of similarities, half the variance
of each row's change. A row is also right with another caption of its own picture, and with a tie.

Kept between updates: nothing but the encoder itself, the teacher of the next one.
"""

from torch import Tensor

from model_updates.pair_sets import Batch
from model_updates.parts.distillation import (
    Features,
    RowOptions,
    right_rows,
    row_distillation,
    row_divergence,
)
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family


class ModX(TwoTowers):
    """Maintaining off-diagonal information."""

    name = "mod-x"
    summary = "Fine-tunes both towers and keeps the similarities that the old model had right."
    paper = "Ni et al., ICML 2023, eq. 4 and 5"
    family = Family.DISTILLATION
    trains = "both towers"
    keeps = "nothing: the encoder before the update is the teacher"
    overhead = "about a quarter more time an epoch (C-CLIP, Table 9: +28 %)"
    needs = frozenset({"text_features"})
    options: RowOptions

    def distillation(self, new: Features, batch: Batch) -> Tensor:
        """Returns the divergences of the rows that were right, weighted."""
        return row_distillation(new, batch, self.options, right_row_divergence)


def right_row_divergence(old: Tensor, new: Tensor, same: Tensor, temperature: float = 1.0) -> Tensor:
    """Returns KL(old || new) of each row of (r, c) cosines, (r,); 0 where the old maximum is not `same`."""
    return row_divergence(old / temperature, new / temperature).where(right_rows(old, same), 0.0)
