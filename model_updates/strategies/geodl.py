"""GeoDL: replay, with each feature held to the old one along the geodesic between old and new subspace.

Idea: between the subspace of the old features and that of the new ones there is a shortest path; features should look
alike from anywhere on it, not only at its ends.

Formula: per tower ``mean_i 1 - z_i^T G z'_i / sqrt(z_i^T G z_i * z'_i^T G z'_i)``, z the old and z' the new feature,
G the geodesic flow kernel of `parts.geodesic`, without a gradient; both towers added, times ``weight * sqrt(n_old /
n_new)`` as in `ucir`. Source: Simon et al., CVPR 2021; on two towers with a replayed memory as compared with in
IncCLIP (ECCV 2022), which says no more of it than that the classifier's loss is the contrastive one.

Where we differ: subspaces and angles by an exact singular value decomposition, with all of the complement, where the
reference approximates inverses and keeps 60 columns of it; the centred batch spans min(b, d) - 2 directions, as
there. What the base knows counts as a chunk like the first.

Carried between updates: a sample of the pairs.
"""

from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.pair_sets import Batch
from model_updates.parts.distillation import Features, old_features
from model_updates.parts.geodesic import geodesic_loss
from model_updates.parts.old_features import OldFeatureOptions, OldFeatures
from model_updates.parts.replaying import ReplayMemory, remember
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family, Replay


@dataclass(frozen=True)
class GeodlOptions(OldFeatureOptions):
    """Sets the weight to UCIR's."""

    # of the term where as much is old as new; otherwise times the root of old pairs over new ones.
    weight: NotNegative = 5.0


class Geodl(TwoTowers):
    """Distillation along the geodesic."""

    name = "geodl"
    summary = "Replays old pairs, and keeps features alike along the path between old and new subspace."
    paper = "Simon et al., CVPR 2021, as compared with in IncCLIP (ECCV 2022)"
    family = Family.MEMORY
    keeps = "a sample of the pairs"
    overhead = "epochs longer by the memory, and two decompositions a tower in each step"
    needs = frozenset({"text_features"})
    replay = Replay.JOINED
    options: GeodlOptions

    def __init__(self, options: GeodlOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, ReplayMemory(self.options))
        self.old = self.add(OldFeatures(self.options, self.kept, follows_sizes=True))

    def distillation(self, new: Features, batch: Batch) -> Tensor | None:
        """Returns the distance along the geodesic, both towers' added."""
        old = old_features(batch)
        return self.old.term(lambda: geodesic_loss(new[0], old[0]) + geodesic_loss(new[1], old[1]))
