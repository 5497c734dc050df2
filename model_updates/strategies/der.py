"""DER: CLL-CLIP that replays old pairs and keeps their features where they were.

Idea: keep a reservoir of pairs from the stream together with the text feature that each had when it was put in. In
later updates every batch is followed by as many pairs from the memory, whose features must stay what they were.

Formula: ``L = L_cll(current) + alpha * mean_elements (r_F - stored r_F)**2 on the memory``, with the contrastive part
of L_cll over all rows of the batch. Source: Buzzega et al., NeurIPS 2020, on CLL-CLIP's host as in CLL-CLIP with TEIR
(AAAI 2024), table 2: stored features are those of the step that inserts the pair, before that step's update; a pair
is offered in every epoch; alpha 1; 8,000 pairs.

Where we differ: an update replays the memory as it was at its start, while the reservoir fills for the next one; where
other strategies taught the chunks before, it starts as a sample of theirs. At its end, features stored in it are made
anew by what it has learned: the paper's updates have thousands of steps and ours a dozen an epoch, so that what the
steps stored is mostly from before the language was learned (docs/log.md). ``features="insertion"`` keeps those.

Carried between updates: the pairs, their features, and how many items the reservoir has seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from model_updates.checked import OneOf
from model_updates.features import caption_features
from model_updates.losses import element_mse
from model_updates.pair_sets import Batch, UpdateData
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.replayed_table import PairMemory, ReplayOptions, replayed_terms
from model_updates.strategy import Epochs, Family, Replay, State, UpdateContext


@dataclass(frozen=True)
class DerOptions(ReplayOptions):
    """Adds which features are stored."""

    # "end": those that a pair has when the update that took it in has ended; "insertion": those of the step
    # that took it in, as in the paper.
    features: Annotated[str, OneOf("end", "insertion")] = "end"


class Der(LanguageTeaching):
    """Dark experience replay on the token table."""

    name = "der"
    summary = "Trains the word table, replays old pairs and holds their text features where they were."
    paper = "Buzzega et al., NeurIPS 2020, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "pairs and their features"
    overhead = "batches twice as long"
    replay = Replay.BESIDE
    options: DerOptions

    def __init__(self, options: DerOptions | None = None) -> None:
        super().__init__(options)
        self.kept = self.add(PairMemory(self.options.memory_size))
        self._stored = torch.zeros(0, 0)

    def before_update(self, context: UpdateContext) -> None:
        """Stores features of pairs that others taught before, or that withdrawn ones stood among; grows the table."""
        if len(self._stored) != len(self.kept.pairs):
            self._stored = torch.from_numpy(caption_features(context.open_previous(), self.kept.pairs))
        super().before_update(context)

    def take(self, data: UpdateData) -> None:
        """Starts the next memory as a copy of this one, features included."""
        super().take(data)
        self._next = torch.zeros(self.options.memory_size, data.train.pictures.features.shape[1])
        self._next[: len(self._stored)] = self._stored if len(self._stored) else 0.0

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns CLL-CLIP's terms and what holds the memory; keeps the features of what went into the next one."""
        text = self.text_features(batch)
        terms = replayed_terms(self, text, batch, self._held(text, batch))
        features = text.detach().cpu()
        for position, slot in self.kept.offer(batch):
            self._next[slot] = features[position]
        return terms

    def _held(self, text: Tensor, batch: Batch) -> Tensor:
        """Returns the distance of replayed features to the stored ones."""
        rows = (batch.row - self.kept.own).clamp(min=0)
        stored = self._stored.to(text)[rows] if len(self._stored) else text.detach()
        return element_mse(text, stored, batch.replayed)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Keeps the features of the next memory."""
        super().after_update(context, batches)
        self._stored = self._next[: len(self.kept.pairs)].clone()
        fresh = self.kept.fresh
        if self.options.features == "end" and fresh:
            again = caption_features(context.encoder, [self.kept.pairs[slot] for slot in fresh])
            self._stored[fresh] = torch.from_numpy(again)

    def progress(self) -> dict[str, Tensor]:
        """Returns the features of the memory that fills, too."""
        return super().progress() | {"features": self._next.clone()} if self._in_update else {}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        super().load_progress(progress)
        self._next = progress["features"].clone()

    def carried(self) -> State:
        facts = super().carried().facts
        return State({"features": self._stored}, facts) if facts else State()

    def carry(self, state: State) -> None:
        super().carry(state)
        self._stored = state.tensors["features"].clone()
