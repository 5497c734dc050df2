"""MoF: fine-tuning with a memory of the pairs around which each chunk lies.

Idea: replay not just any old pairs but those whose mean follows the mean of all: herding picks them one by one.

Formula: finetune's loss over the chunk and the memory. ``mu`` the mean of the chunk's unit pair features, ``w <-
mu``; then again and again the pair with the largest ``w . x``, ``w <- w + mu - x``. Chunk i holds ``M * n_i / sum n``
of M pairs; when later chunks need room it is cut from the end of its order. Source: the mean-of-features memory of
CTP's library (ICCV 2023), after iCaRL (CVPR 2017); M = 10,000 there, about 1 % of the pairs.

Where we differ: the feature is the direction of image and text feature together, where CTP has its fusion encoder's;
what is cut is the end of the herding order, where the reference code has lost the order by then. One mean a chunk:
there are no classes.

Carried between updates: the pairs in their order, and how many are of which chunk.
"""

from model_updates.parts.exemplars import ExemplarOptions, Exemplars, herding_order
from model_updates.parts.replaying import remember
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family, Replay


class Mof(TwoTowers):
    """Replay of herded exemplars."""

    name = "mof"
    summary = (
        "As finetune, and trains again on the pairs of earlier chunks around which the others lie (herding)."
    )
    paper = "mean of features, as compared with in CTP (ICCV 2023); herding as in iCaRL (CVPR 2017)"
    family = Family.MEMORY
    keeps = "pairs, chosen by herding"
    overhead = "epochs longer by the memory, and one pass to choose (CTP: 4.8 h against 3.4 h)"
    replay = Replay.JOINED
    options: ExemplarOptions

    def __init__(self, options: ExemplarOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, Exemplars(self.options, herding_order))
