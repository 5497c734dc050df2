"""iCaRL on two towers: a memory chosen by herding, and the old encoder as a teacher.

Idea: replay the pairs around which the earlier chunks lie, and let every pair, old or new, look to the new towers as
it did to the old ones.

Formula: ``L = L_contrastive + weight / 2 * (KL(sm(u_old / tau) || sm(u / tau)) + the same of v)`` over the chunk and
the memory, raw projected coordinates as logits, tau 0.07, the mean over rows; the memory as `mof` chooses it. Source:
Rebuffi et al., CVPR 2017, as in CTP's library (ICCV 2023): no nearest-mean classifier, for there are no classes.

Where we differ: as `mof`, of which this is all but the second term. In the first update of a line the base is the
teacher, too; ``from_scratch`` leaves that out where the base was never trained.

Carried between updates: the pairs in their order, and how many are of which chunk.
"""

from torch import Tensor

from model_updates.pair_sets import Batch
from model_updates.parts.distillation import Features, feature_divergence, old_features
from model_updates.parts.exemplars import Exemplars, herding_order
from model_updates.parts.old_features import OldFeatureOptions, OldFeatures
from model_updates.parts.replaying import remember
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family, Replay


class Icarl(TwoTowers):
    """Herded exemplars and distilled features."""

    name = "icarl"
    summary = "Replays herded pairs of earlier chunks, and keeps each feature close to what it was."
    paper = "Rebuffi et al., CVPR 2017, as compared with in CTP (ICCV 2023)"
    family = Family.MEMORY
    keeps = "pairs, chosen by herding"
    overhead = "epochs longer by the memory, and a pass of the old towers (CTP: 5.3 h against 3.4 h)"
    needs = frozenset({"text_features"})
    replay = Replay.JOINED
    options: OldFeatureOptions

    def __init__(self, options: OldFeatureOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, Exemplars(self.options, herding_order))
        self.old = self.add(OldFeatures(self.options, self.kept))

    def distillation(self, new: Features, batch: Batch) -> Tensor | None:
        return self.old.term(lambda: feature_divergence(new, old_features(batch)))
