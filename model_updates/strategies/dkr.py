"""DKR: like Mod-X, and rows that the old model had wrong are set right instead of left out.

Idea: three cases for each row of a batch's similarities. The old model is right: keep its row. It is wrong and the new
one is right: let the new one be. Both are wrong: the target is the truth.

Formula: ``L = L_contrastive + alpha / 2 * (sum_i KL(target_i || sm(M[i])) + the same of the transposes)``; target_i is
``sm(M_old[i])``, or ``sm(M[i])`` without gradient (which adds nothing), or one at the row's own pair, whose divergence
is the cross-entropy of the row. M as in `mod-x`. Source: distilled knowledge rectification, AAAI 2024, of which only
the abstract was at hand and no code is public: temperature, alpha and the sum over rows are Mod-X's, unverified. The
figures that other papers give for it may be of another method.

Where we differ: the truth is shared by several captions of a picture.

Kept between updates: nothing but the encoder itself, the teacher of the next one.
"""

import torch
from torch import Tensor
from torch.nn.functional import log_softmax

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


class Dkr(TwoTowers):
    """Distilled knowledge rectification."""

    name = "dkr"
    summary = "Like mod-x, and pairs that neither the old nor the new model has right are taught once more."
    paper = "DKR, AAAI 2024 (abstract), with Mod-X's settings"
    family = Family.DISTILLATION
    trains = "both towers"
    keeps = "nothing: the encoder before the update is the teacher"
    overhead = "as mod-x"
    needs = frozenset({"text_features"})
    options: RowOptions

    def distillation(self, new: Features, batch: Batch) -> Tensor:
        return row_distillation(new, batch, self.options, rectified_divergence)


def rectified_divergence(old: Tensor, new: Tensor, same: Tensor, temperature: float = 1.0) -> Tensor:
    """Returns KL(target || new) of each row of (r, c) cosines: the old row, nothing, or the truth, `same`."""
    old_right, new_right = right_rows(old, same), right_rows(new.detach(), same)
    truth = same.to(new.dtype) / same.sum(dim=1, keepdim=True)
    wrong = -(truth * log_softmax(new / temperature, dim=1)).sum(dim=1)
    kept = row_divergence(old / temperature, new / temperature)
    return torch.where(old_right, kept, wrong.where(~new_right, 0.0))
