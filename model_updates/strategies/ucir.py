"""UCIR: replay, with the direction of each feature held to what it was.

Idea: where old and new are told apart by directions, the directions of old features must not turn; how strongly they
are held grows with how much is old.

Formula: ``weight * sqrt(n_old / n_new) * sum over towers of mean_i (1 - cos(f_i, f_old_i))``, weight 5, beside the
contrastive loss over chunk and memory. Optionally a margin for replayed pairs, ``margin_weight * max(0, margin -
s_own + s_wrong)`` for the two most similar wrong ones of each, both ways. Source: Hou et al., CVPR 2019 (also called
LUCIR); on two towers as compared with in CTP (ICCV 2023) and in IncCLIP (ECCV 2022), which say no more of it than
that the classifier's loss is the contrastive one.

Where we differ: CTP's version holds all token outputs, by a weight of 1, and keeps herded pairs; ours holds what
search sees, and keeps a sample, as IncCLIP does. The margin is off, as in CTP: cosines between picture and text
differ by much less than the 0.5 that it asks between classes. What the base knows counts as a chunk like the first.

Carried between updates: a sample of the pairs.
"""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize, relu

from model_updates.checked import NotNegative, Within
from model_updates.pair_sets import Batch
from model_updates.parts.distillation import Features, old_features, same_picture
from model_updates.parts.old_features import OldFeatureOptions, OldFeatures
from model_updates.parts.replaying import ReplayMemory, remember
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family, Replay

HARDEST = 2  # wrong ones that the margin is kept to


@dataclass(frozen=True)
class UcirOptions(OldFeatureOptions):
    """Sets the weight to the paper's and adds the margin."""

    # of the term where as much is old as new (paper: 5); otherwise times the root of old pairs over new ones.
    weight: NotNegative = 5.0
    # of the margin for replayed pairs (paper, between classes: 1); 0 leaves it out.
    margin_weight: NotNegative = 0.0
    margin: Annotated[float, Within("(0, 2]")] = 0.5  # between the right and a wrong cosine (paper: 0.5).


class Ucir(TwoTowers):
    """Directions that stay."""

    name = "ucir"
    summary = "Replays old pairs, and keeps the direction of every feature where it was."
    paper = "Hou et al., CVPR 2019, as compared with in CTP (ICCV 2023) and IncCLIP (ECCV 2022)"
    family = Family.MEMORY
    keeps = "a sample of the pairs"
    overhead = "epochs longer by the memory, and a pass of the old towers (CTP: 5.5 h against 3.4 h)"
    needs = frozenset({"text_features"})
    replay = Replay.JOINED
    options: UcirOptions

    def __init__(self, options: UcirOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, ReplayMemory(self.options))
        self.old = self.add(OldFeatures(self.options, self.kept, follows_sizes=True))

    def distillation(self, new: Features, batch: Batch) -> Tensor | None:
        """Returns how far directions have turned, both towers' added, and the margin of replayed pairs where wanted."""
        kept = self.old.term(lambda: turned(new, old_features(batch)))
        if kept is None or not self.options.margin_weight or not bool(batch.replayed.any()):
            return kept
        cosines = normalize(new[0], dim=-1) @ normalize(new[1], dim=-1).T
        same = same_picture(batch)
        both = [
            margin_to_hardest(rows[batch.replayed], right[batch.replayed], self.options.margin)
            for rows, right in ((cosines, same), (cosines.T, same.T))
        ]
        return kept + self.options.margin_weight * (both[0] + both[1]) / 2


def turned(new: Features, old: Features) -> Tensor:
    """Returns the mean of 1 - cos between new and old features, both towers' added; no gradient into the old."""
    pairs = zip(new, old, strict=True)
    return torch.stack(
        [(1 - cosine_similarity(now, before.detach(), dim=1)).mean() for now, before in pairs]
    ).sum()


def margin_to_hardest(cosines: Tensor, same: Tensor, margin: float) -> Tensor:
    """Returns the mean over rows of ``sum max(0, margin - s_own + s_wrong)``, the hardest right and wrong."""
    own = cosines.masked_fill(~same, torch.inf).amin(dim=1, keepdim=True)
    wrong = cosines.masked_fill(same, -torch.inf).topk(min(HARDEST, cosines.shape[1]), dim=1).values
    return relu(margin - own + wrong).sum(dim=1).mean()
