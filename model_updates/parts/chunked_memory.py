"""Memories that know which chunk each of their pairs is of, and hold a part of each.

What is kept of a chunk is chosen once, at the end of its update, best first; when later chunks need room it is cut
from its end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from model_updates.pairs import TrainingPair
from model_updates.parts.replaying import Replaying
from model_updates.strategy import State, UpdateContext

CHUNKS = "chunks"  # the key of the counts among a strategy's facts


class ChunkedMemory(Replaying):
    """Mixin of the strategies that keep a part of each chunk."""

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self._taught: list[int] = []
        self._held: list[int] = []

    @abstractmethod
    def parts(self, taught: Sequence[int], size: int) -> list[int]:
        """Returns how many pairs of each chunk, the oldest first, a memory of this size holds.

        Args:
            taught: how many pairs each chunk had.
            size: of the memory.
        """

    @abstractmethod
    def ranked(self, context: UpdateContext, count: int) -> Sequence[TrainingPair]:
        """Returns up to so many pairs of an update, those that stay longest first."""

    def choose(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the next memory: what it had of each chunk, cut to the chunk's part, and a part of this one."""
        self._taught.append(len(context.pairs))
        parts = self.parts(self._taught, self.capacity(sum(self._taught)))
        kept, rest = [], list(self._kept)
        for held, part in zip(self._held, parts, strict=False):
            kept.append(rest[: min(held, part)])
            rest = rest[held:]
        kept.append(list(self.ranked(context, parts[-1])))
        self._held = [len(pairs) for pairs in kept]
        return [pair for pairs in kept for pair in pairs]

    def carried(self) -> State:
        """Returns the pairs and how many are of each chunk."""
        own = super().carried()
        if not self._taught:
            return own
        counts = {"taught": self._taught, "held": self._held}
        return State(own.tensors, {**own.facts, CHUNKS: counts}, own.update)

    def carry(self, state: State) -> None:
        """Takes them."""
        facts = dict(state.facts)
        counts = facts.pop(CHUNKS, {"taught": [], "held": []})
        self._taught = [int(count) for count in counts["taught"]]
        self._held = [int(count) for count in counts["held"]]
        super().carry(State(state.tensors, facts, state.update))
