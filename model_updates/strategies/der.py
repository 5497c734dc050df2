"""DER: CLL-CLIP that replays old pairs and keeps their features where they were.

Idea: keep a reservoir of pairs from the stream together with the text feature that each had when it was put in. In
later updates every batch is followed by as many pairs from the memory, whose features must stay what they were.

Formula: ``L = L_cll(current) + alpha * mean_elements (r_F - stored r_F)**2 on the memory``, with the contrastive part
of L_cll over all rows of the batch. Source: Buzzega et al., NeurIPS 2020, on CLL-CLIP's host as in CLL-CLIP with TEIR
(AAAI 2024), table 2: stored features are those of the step that inserts the pair, before that step's update; a pair
is offered in every epoch; alpha 1; 8,000 pairs.

Where we differ: an update replays the memory as it was at its start, while the reservoir fills for the next one.

Carried between updates: the pairs, their features, and how many items the reservoir has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from model_updates.errors import BadStrategyOption
from model_updates.families import Family
from model_updates.losses import element_mse
from model_updates.memory import Reservoir
from model_updates.pairs import Batch, TrainingPair, UpdateData
from model_updates.parts.language_teaching import SharedTableTeaching, TeachingOptions
from model_updates.strategy import Epochs, Replay, State, UpdateContext


@dataclass(frozen=True)
class DerOptions(TeachingOptions):
    """Adds the memory to the teaching options.

    Attributes:
        memory_size: pairs kept (8,000 in CLL-CLIP's experiments).
        alpha: weight of the distance to the stored features.
    """

    memory_size: int = 8_000
    alpha: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory_size < 1 or self.alpha < 0:
            raise BadStrategyOption(
                f"memory_size is at least 1 and alpha not negative, got {self.memory_size} and {self.alpha}"
            )


class Der(SharedTableTeaching):
    """Dark experience replay on the token table."""

    name = "der"
    summary = "Trains the word table, replays old pairs and holds their text features where they were."
    paper = "Buzzega et al., NeurIPS 2020, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "pairs and their features"
    overhead = "batches twice as long"
    Options = DerOptions
    replay = Replay.BESIDE
    options: DerOptions

    def __init__(self, options: DerOptions | None = None) -> None:
        super().__init__(options)
        self._pairs: tuple[TrainingPair, ...] = ()
        self._stored = torch.zeros(0, 0)
        self._seen = 0

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the pairs kept from earlier updates."""
        return self._pairs

    def take(self, data: UpdateData) -> None:
        """Starts the next memory as a copy of this one; slots hold the row numbers of this update's batches."""
        self._taught = data.train.pairs + data.memory.pairs
        self._own = len(data.train.pairs)
        held = list(range(self._own, len(self._taught)))
        self._reservoir = Reservoir(self.options.memory_size, self._seed, self._seen, held)
        dim = data.train.image_features.shape[1]
        self._next = torch.zeros(self.options.memory_size, dim)
        self._next[: len(held)] = self._stored[: len(held)] if held else 0.0

    def before_update(self, context: UpdateContext) -> None:
        """Grows the table as cll-clip does."""
        super().before_update(context)
        self._seed = context.seed

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns CLL-CLIP's terms and the distance of replayed features to the stored ones."""
        text = self.text_features(batch)
        terms = {"cross-modal": self.cross_modal(text, batch)}
        current = ~batch.replayed
        if batch.english_features is not None and batch.has_english is not None:
            terms["cross-lingual"] = self.cross_lingual(text, batch, batch.has_english & current)
        stored = (
            self._stored.to(text)[(batch.row - self._own).clamp(min=0)]
            if len(self._stored)
            else text.detach()
        )
        terms["replay"] = self.options.alpha * element_mse(text, stored, batch.replayed)
        rows = batch.row[current].tolist()
        features = text.detach()[current].cpu()
        for position, slot in self._reservoir.offer_all(rows):
            self._next[slot] = features[position]
        return terms

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Makes the filled reservoir the memory of the next update."""
        super().after_update(context, batches)
        self._pairs = tuple(self._taught[row] for row in self._reservoir.items)
        self._stored = self._next[: len(self._pairs)].clone()
        self._seen = self._reservoir.seen
        self._taught = ()

    def notes(self) -> list[str]:
        """Says how many pairs are kept."""
        return [*super().notes(), f"{len(self._pairs)} pairs are kept for replay, of {self._seen} offered."]

    def progress(self) -> dict[str, Tensor]:
        """Returns the memory that fills, beside the temperature."""
        if not self._in_update:
            return {}
        return super().progress() | {"reservoir": self._reservoir.as_tensor(), "features": self._next.clone()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes the memory back as it was."""
        super().load_progress(progress)
        self._reservoir.restore(progress["reservoir"])
        self._next = progress["features"].clone()

    def carried(self) -> State:
        """Returns pairs, features and count."""
        if not self._pairs:
            return State()
        return State(
            {"features": self._stored}, {"pairs": [asdict(pair) for pair in self._pairs], "seen": self._seen}
        )

    def carry(self, state: State) -> None:
        """Takes the memory of the updates so far."""
        self._pairs = tuple(TrainingPair(**pair) for pair in state.facts["pairs"])
        self._stored, self._seen = state.tensors["features"].clone(), int(state.facts["seen"])
