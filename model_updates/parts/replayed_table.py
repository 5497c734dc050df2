"""The shared token table with replay: what er and der have in common.

From the second update on every batch is followed by as many pairs of the memory. The contrastive term runs over all
rows of the batch, as it did in CLL-CLIP's library (``replay_in_contrastive``), the cross-lingual one over the chunk's;
what holds the memory's rows is each strategy's own.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from model_updates.errors import BadStrategyOption
from model_updates.pairs import Batch, TrainingPair, UpdateData
from model_updates.parts.pair_memory import PairMemory
from model_updates.parts.shared_table import SharedTableOptions, SharedTableTeaching
from model_updates.strategy import Epochs, Replay, State, UpdateContext


@dataclass(frozen=True)
class ReplayOptions(SharedTableOptions):
    """Adds the memory to the teaching options.

    Attributes:
        memory_size: pairs kept (8,000 in CLL-CLIP's experiments).
        alpha: weight of what holds the memory's features (1 in CLL-CLIP's experiments).
        replay_in_contrastive: let the memory's pairs join the contrastive term, as they did in the paper's tables.
    """

    memory_size: int = 8_000
    alpha: float = 1.0
    replay_in_contrastive: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.memory_size < 1 or self.alpha < 0:
            raise BadStrategyOption(
                f"memory_size is at least 1 and alpha not negative, got {self.memory_size} and {self.alpha}"
            )


class ReplayedTable(SharedTableTeaching):
    """Base of the strategies that replay pairs beside every batch of the chunk."""

    Options = ReplayOptions
    replay = Replay.BESIDE
    options: ReplayOptions

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self.kept = PairMemory(self.options.memory_size)

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the pairs kept from earlier updates; in a first one, a sample of what others taught before."""
        own = set(context.pairs)
        self.kept.fill([pair for pair in context.open_earlier() if pair not in own], context.seed)
        return self.kept.pairs

    def before_update(self, context: UpdateContext) -> None:
        """Grows the table as cll-clip does."""
        super().before_update(context)
        self._seed = context.seed

    def take(self, data: UpdateData) -> None:
        """Starts the next memory as a copy of this one."""
        self.kept.start(data, self._seed)

    @abstractmethod
    def held(self, text: Tensor, batch: Batch) -> Tensor:
        """Returns what the memory's rows of a batch cost where they are not where they should be, unweighted."""

    def stored(self, text: Tensor, kept: Sequence[tuple[int, int]]) -> None:
        """Is told which (position, slot) of a batch went into the memory, and the batch's features (b, dim)."""

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns CLL-CLIP's terms and what holds the memory."""
        text = self.text_features(batch)
        current = ~batch.replayed
        chosen = slice(None) if self.options.replay_in_contrastive else current
        contrasted = batch if self.options.replay_in_contrastive else batch.select(_positions(current))
        terms = {"cross-modal": self.cross_modal(text[chosen], contrasted)}
        if batch.has_english is not None:
            terms["cross-lingual"] = self.cross_lingual(text, batch, batch.has_english & current)
        terms["replay"] = self.options.alpha * self.held(text, batch)
        self.stored(text.detach(), self.kept.offer(batch))
        return terms

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Makes the filled reservoir the memory of the next update."""
        super().after_update(context, batches)
        self.kept.finish()

    def notes(self) -> list[str]:
        """Says how many pairs are kept."""
        return [*super().notes(), self.kept.note()]

    def progress(self) -> dict[str, Tensor]:
        """Returns the memory that fills, beside the temperature."""
        return super().progress() | self.kept.progress() if self._in_update else {}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes the memory back as it was."""
        super().load_progress(progress)
        self.kept.load_progress(progress)

    def carried(self) -> State:
        """Returns pairs and count."""
        return State({}, self.kept.facts())

    def carry(self, state: State) -> None:
        """Takes the memory of the updates so far."""
        self.kept.carry(state.facts)


def _positions(chosen: Tensor) -> list[int]:
    return [int(n) for n in chosen.nonzero()[:, 0]]
