"""Co2L: replay, with each feature's neighbours in the batch held to what they were.

Idea: which inputs are alike is what a representation knows; let every row of a batch have the same neighbours, in the
same proportions, as it had under the old towers.

Formula: per tower ``mean_i -sum_j p_old(j | i; tau 0.01) ln p_new(j | i; tau 0.2)``, p the softmax of a row's cosines
to all others of the batch; both towers added, weight 1, beside the contrastive loss over chunk and memory. Source:
the instance-wise relation distillation of Cha et al., ICCV 2021; on two towers as compared with in IncCLIP (ECCV
2022), which says no more of it than that the classifier's loss is the contrastive one.

Where we differ: nowhere in the term. Its two temperatures make the old distribution the sharper one, so that towers
that have not moved do pay, and move: this asks for more than staying. Only with equal temperatures is it at rest
there.

Carried between updates: a sample of the pairs.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from model_updates.checked import Positive
from model_updates.pair_sets import Batch
from model_updates.parts.distillation import Features, old_features, same_picture
from model_updates.parts.old_features import OldFeatureOptions, OldFeatures
from model_updates.parts.replaying import ReplayMemory, remember
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family, Replay

LEFT_OUT = (
    -1e4
)  # a logit that no softmax sees, and that no gradient makes NaN where a row has no neighbour at all


@dataclass(frozen=True)
class Co2lOptions(OldFeatureOptions):
    """Adds the temperatures to the options of memory and teacher."""

    old_temperature: Positive = 0.01  # of the distribution under the old towers (paper: 0.01).
    new_temperature: Positive = 0.2  # of that in training (paper: 0.2).


class Co2l(TwoTowers):
    """Instance-wise relation distillation."""

    name = "co2l"
    summary = "Replays old pairs, and keeps which inputs of a batch are alike, in each tower."
    paper = "Cha et al., ICCV 2021, as compared with in IncCLIP (ECCV 2022)"
    family = Family.MEMORY
    keeps = "a sample of the pairs"
    overhead = "epochs longer by the memory, and a pass of the old towers"
    needs = frozenset({"text_features"})
    replay = Replay.JOINED
    options: Co2lOptions

    def __init__(self, options: Co2lOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, ReplayMemory(self.options))
        self.old = self.add(OldFeatures(self.options, self.kept))

    def distillation(self, new: Features, batch: Batch) -> Tensor | None:
        """Returns the cross-entropy of neighbours, both towers' added."""
        alone = torch.eye(len(batch.row), dtype=torch.bool, device=new[0].device)
        towers = zip(new, old_features(batch), (same_picture(batch), alone), strict=True)
        temperatures = {name: getattr(self.options, name) for name in ("new_temperature", "old_temperature")}
        return self.old.term(
            lambda: torch.stack([relation_distillation(*tower, **temperatures) for tower in towers]).sum()
        )


def relation_distillation(
    new: Tensor, old: Tensor, equal: Tensor, *, new_temperature: float, old_temperature: float
) -> Tensor:
    """Returns the mean over rows of the cross-entropy of old against new similarities to the other rows.

    Features are (b, d); no gradient flows into the old ones. `equal` (b, b) bool marks rows of the same input, which
    are no neighbours: each to itself, and pairs of one picture. The temperatures divide the cosines.
    """

    def row_logits(features: Tensor, temperature: float) -> Tensor:
        unit = normalize(features, dim=-1)
        return (unit @ unit.T / temperature).masked_fill(equal, LEFT_OUT)

    before = log_softmax(row_logits(old.detach(), old_temperature), dim=1)
    now = log_softmax(row_logits(new, new_temperature), dim=1)
    return -(before.exp() * now).masked_fill(equal, 0.0).sum(dim=1).mean()
