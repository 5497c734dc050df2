"""The shared token table with replay: what er and der have in common.

From the second update on every batch is followed by as many pairs of the memory. The contrastive term runs over all
rows of the batch, as it did in CLL-CLIP's library (``replay_in_contrastive``), the cross-lingual one over the chunk's;
what holds the memory's rows is each strategy's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from torch import Tensor

from model_updates.checked import Count, NotNegative
from model_updates.pair_sets import Batch, UpdateData
from model_updates.pairs import TrainingPair, stored_pairs
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.replaying import Reservoir, unlike
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.strategy import Epochs, Part, State, UpdateContext

RESERVOIR = "reservoir"


class PairMemory(Part):
    """The pairs kept from earlier updates, and the reservoir of this one.

    An update replays the memory as it was at its start, while the reservoir fills for the next one. Every pair of the
    chunk is offered in every epoch, as in CLL-CLIP's library.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.pairs: tuple[TrainingPair, ...] = ()  # what earlier updates left
        self.seen = 0  # pairs offered so far, over all updates
        self.own = 0  # pairs of the chunk; batches number the memory's after them
        self.fresh: list[int] = []  # slots that the update which ended last has filled
        self._reservoir: Reservoir | None = None

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the pairs kept from earlier updates; in a first one, a sample of what others taught before."""
        if not self.seen:
            earlier = unlike(context.pairs, context.open_earlier())
            reservoir = Reservoir(self.size, context.seed)
            reservoir.offer_all(range(len(earlier)))
            self.pairs, self.seen = tuple(earlier[n] for n in reservoir.items), reservoir.seen
        # What was withdrawn is not learned again.
        self.pairs = tuple(self.pairs[place] for place in context.still_counted(self.pairs))
        return self.pairs

    def before_update(self, context: UpdateContext) -> None:
        self._seed = context.seed

    def take(self, data: UpdateData) -> None:
        """Begins an update: the next memory is a copy of this one; its slots hold the rows of this update's batches."""
        self._taught = data.train.pairs + data.memory.pairs
        self.own = len(data.train.pairs)
        held = list(range(self.own, len(self._taught)))
        self._reservoir = Reservoir(self.size, self._seed, self.seen, held)

    def offer(self, batch: Batch) -> list[tuple[int, int]]:
        """Offers the chunk's pairs of a batch; returns (position in the batch, slot) of those that were put in."""
        positions = [n for n, replayed in enumerate(batch.replayed.tolist()) if not replayed]
        rows = batch.row.tolist()
        kept = self.filling.offer_all([rows[n] for n in positions])
        return [(positions[n], slot) for n, slot in kept]

    @property
    def filling(self) -> Reservoir:
        """The next memory, while an update runs."""
        if self._reservoir is None:
            raise ValueError("this memory is not in an update; call take() first")
        return self._reservoir

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Makes the filled reservoir the memory of the next update."""
        filled = self.filling
        self.pairs = tuple(self._taught[row] for row in filled.items)
        self.fresh = [slot for slot, row in enumerate(filled.items) if row < self.own]
        self.seen = filled.seen
        self._taught, self._reservoir = (), None

    def progress(self) -> dict[str, Tensor]:
        return {} if self._reservoir is None else {RESERVOIR: self._reservoir.as_tensor()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        self.filling.restore(progress[RESERVOIR])

    def carried(self) -> State:
        """Returns pairs and count; nothing while no pair is kept."""
        if not self.pairs:
            return State()
        return State(facts={"pairs": [asdict(pair) for pair in self.pairs], "seen": self.seen})

    def carry(self, state: State) -> None:
        self.pairs = stored_pairs(state.facts["pairs"])
        self.seen = int(state.facts["seen"])

    def notes(self) -> list[str]:
        return [f"{len(self.pairs)} pairs are kept for replay, of {self.seen} offered."]


@dataclass(frozen=True)
class ReplayOptions(SharedTableOptions):
    """Adds the memory to the teaching options."""

    memory_size: Count = 8_000  # pairs kept (8,000 in CLL-CLIP's experiments).
    alpha: NotNegative = 1.0  # weight of what holds the memory's features (1 in CLL-CLIP's experiments).
    # let the memory's pairs join the contrastive term, as they did in the paper's tables.
    replay_in_contrastive: bool = True


def replayed_terms(teaching: LanguageTeaching, text: Tensor, batch: Batch, held: Tensor) -> dict[str, Tensor]:
    """Returns CLL-CLIP's terms and what holds the memory.

    `text` (b, dim) are raw features of the batch's texts; `held` is what the memory's rows cost where they are not
    where they should be, unweighted.
    """
    options, current = teaching.options, ~batch.replayed
    if not isinstance(options, ReplayOptions):
        raise TypeError(f"{teaching.name} replays beside a token table, and its options know no replay")
    chosen = slice(None) if options.replay_in_contrastive else current
    contrasted = batch if options.replay_in_contrastive else batch.select(_positions(current))
    terms = {"cross-modal": teaching.cross_modal(text[chosen], contrasted)}
    if batch.has_english is not None:
        terms["cross-lingual"] = teaching.cross_lingual(text, batch, batch.has_english & current)
    return terms | {"replay": options.alpha * held}


def _positions(chosen: Tensor) -> list[int]:
    return [int(n) for n in chosen.nonzero()[:, 0]]
