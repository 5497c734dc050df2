"""Pairs that a strategy keeps for replay: a reservoir over everything that its updates teach.

An update replays the memory as it was at its start, while the reservoir fills for the next one. Every pair of the
chunk is offered in every epoch, as in CLL-CLIP's library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from model_updates.memory import Reservoir
from model_updates.pairs import Batch, TrainingPair, UpdateData

RESERVOIR = "reservoir"


class PairMemory:
    """The pairs kept from earlier updates, and the reservoir of this one.

    Args:
        size: most pairs kept.

    Attributes:
        pairs: what earlier updates left.
        seen: pairs offered so far, over all updates.
        own: pairs of the chunk; batches number the memory's after them.
        fresh: slots that the update which ended last has filled.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.pairs: tuple[TrainingPair, ...] = ()
        self.seen = 0
        self.own = 0
        self.fresh: list[int] = []

    def fill(self, pairs: Sequence[TrainingPair], seed: int) -> None:
        """Offers, before the first update, what the line of versions was taught until then; later it does nothing."""
        if self.seen:
            return
        reservoir = Reservoir(self.size, seed)
        reservoir.offer_all(range(len(pairs)))
        self.pairs, self.seen = tuple(pairs[n] for n in reservoir.items), reservoir.seen

    def start(self, data: UpdateData, seed: int) -> None:
        """Begins an update: the next memory is a copy of this one; its slots hold the rows of this update's batches."""
        self._taught = data.train.pairs + data.memory.pairs
        self.own = len(data.train.pairs)
        held = list(range(self.own, len(self._taught)))
        self._reservoir = Reservoir(self.size, seed, self.seen, held)

    def offer(self, batch: Batch) -> list[tuple[int, int]]:
        """Offers the chunk's pairs of a batch; returns (position in the batch, slot) of those that were put in."""
        positions = [n for n, replayed in enumerate(batch.replayed.tolist()) if not replayed]
        rows = batch.row.tolist()
        kept = self._reservoir.offer_all([rows[n] for n in positions])
        return [(positions[n], slot) for n, slot in kept]

    def finish(self) -> None:
        """Ends an update: the filled reservoir is the memory of the next one."""
        self.pairs = tuple(self._taught[row] for row in self._reservoir.items)
        self.fresh = [slot for slot, row in enumerate(self._reservoir.items) if row < self.own]
        self.seen = self._reservoir.seen
        self._taught = ()

    def progress(self) -> dict[str, Tensor]:
        """Returns the reservoir as it is inside an update."""
        return {RESERVOIR: self._reservoir.as_tensor()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes the reservoir back."""
        self._reservoir.restore(progress[RESERVOIR])

    def facts(self) -> dict[str, Any]:
        """Returns pairs and count as plain values; nothing while no pair is kept."""
        if not self.pairs:
            return {}
        return {"pairs": [asdict(pair) for pair in self.pairs], "seen": self.seen}

    def carry(self, facts: Mapping[str, Any]) -> None:
        """Takes what `facts` returned."""
        self.pairs = tuple(TrainingPair(**pair) for pair in facts["pairs"])
        self.seen = int(facts["seen"])

    def note(self) -> str:
        """Says how many pairs are kept."""
        return f"{len(self.pairs)} pairs are kept for replay, of {self.seen} offered."
