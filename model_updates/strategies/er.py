"""ER: CLL-CLIP that replays old pairs and keeps their texts at their English captions.

Idea: keep a reservoir of pairs from the stream. In later updates every batch is followed by as many pairs from the
memory, whose texts must stay where the English caption of the same picture is.

Formula: ``L = L_cll(current) + alpha * mean_elements (r_F - r_E)**2 on the memory``, with the contrastive part of L_cll
over all rows of the batch. Source: Chaudhry et al., 2019, on CLL-CLIP's host as in CLL-CLIP with TEIR (AAAI 2024),
Table 2: alpha 1, 8,000 pairs, a pair offered in every epoch. The authors' mask on the contrastive part is ignored in
their code; ``replay_in_contrastive=no`` obeys it.

Where we differ: an update replays the memory as it was at its start, while the reservoir fills for the next one; where
other strategies taught the chunks before, it starts as a sample of theirs; a kept pair without an English caption
counts in the contrastive part alone.

Carried between updates: the pairs, and how many items the reservoir has seen.
"""

from torch import Tensor

from model_updates.losses import element_mse
from model_updates.pair_sets import Batch
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.replayed_table import PairMemory, ReplayOptions, replayed_terms
from model_updates.strategy import Family, Replay


class Er(LanguageTeaching):
    """Experience replay on the token table."""

    name = "er"
    summary = "Trains the word table and replays old pairs beside the new ones."
    paper = "Chaudhry et al., 2019, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "pairs"
    overhead = "batches twice as long"
    replay = Replay.BESIDE
    options: ReplayOptions

    def __init__(self, options: ReplayOptions | None = None) -> None:
        super().__init__(options)
        self.kept = self.add(PairMemory(self.options.memory_size))

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns CLL-CLIP's terms and what holds the memory; offers the batch to the next one."""
        text = self.text_features(batch)
        terms = replayed_terms(self, text, batch, self._held(text, batch))
        self.kept.offer(batch)
        return terms

    def _held(self, text: Tensor, batch: Batch) -> Tensor:
        """Returns the distance of replayed texts to their English captions' features; 0 where there are none."""
        if batch.english_features is None or batch.has_english is None:
            return text.sum() * 0
        return element_mse(text, batch.english_features, batch.replayed & batch.has_english)
