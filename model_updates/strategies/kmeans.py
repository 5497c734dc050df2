"""k-means memory: fine-tuning with the pairs nearest to the centres of each chunk.

Idea: replay pairs from everywhere in a chunk: as many clusters as there is room for pairs, and of each the pair in
its middle.

Formula: finetune's loss over the chunk and the memory. Of M pairs chunk i holds ``m_i = M * n_i / sum n``: those
nearest to the m_i centres of k-means on its unit pair features. Source: the memory of that name in CTP's library
(ICCV 2023).

Where we differ: the feature is the direction of image and text feature together, where CTP has its fusion encoder's.
A pair that is nearest to two centres counts once, the other takes its next. Pairs of large clusters come first, so
that what is cut when later chunks need room is what stood for the fewest. Lloyd's algorithm is ours, and not FAISS's,
which training does not know; it ends when nothing moves, at most after 100 rounds.

Carried between updates: the pairs in their order, and how many are of which chunk.
"""

from model_updates.parts.exemplars import ExemplarOptions, Exemplars, kmeans_order
from model_updates.parts.replaying import remember
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Family, Replay


class Kmeans(TwoTowers):
    """Replay of the middles of clusters."""

    name = "kmeans"
    summary = "As finetune, and trains again on the pairs of earlier chunks in the middle of a cluster each."
    paper = "k-means memory, as compared with in CTP (ICCV 2023)"
    family = Family.MEMORY
    keeps = "pairs, one of each cluster"
    overhead = "epochs longer by the memory, and one pass to choose (CTP: 4.7 h against 3.4 h)"
    replay = Replay.JOINED
    options: ExemplarOptions

    def __init__(self, options: ExemplarOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, Exemplars(self.options, kmeans_order))
