"""Memories that know which chunk each of their pairs is of, and hold a part of each.

What is kept of a chunk is chosen once, at the end of its update, best first; when later chunks need room it is cut
from its end.
"""

from collections.abc import Callable, Sequence

from model_updates.pairs import TrainingPair
from model_updates.parts.replaying import MemoryOptions, ReplayMemory
from model_updates.strategy import State, UpdateContext

CHUNKS = "chunks"  # the key of the counts among a strategy's facts
Shares = Callable[[Sequence[int], int], list[int]]
"""How many pairs of each chunk, the oldest first, a memory of some size holds, by how many pairs each chunk had."""
Ranked = Callable[[UpdateContext, int], Sequence[TrainingPair]]
"""Up to so many pairs of an update, those that stay longest first."""


class ChunkedMemory(ReplayMemory):
    """A memory that keeps a part of each chunk.

    `shares` says how large the parts are, `ranked` what is kept of a chunk.
    """

    def __init__(self, options: MemoryOptions, shares: Shares, ranked: Ranked) -> None:
        super().__init__(options)
        self._shares, self._ranked = shares, ranked
        self._taught: list[int] = []
        self._held: list[int] = []

    def choose(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the next memory: what it had of each chunk, cut to the chunk's part, and a part of this one."""
        self._taught.append(len(context.pairs))
        shares = self._shares(self._taught, self.capacity(sum(self._taught)))
        kept, rest = [], list(self.kept)
        for held, share in zip(self._held, shares, strict=False):
            kept.append(rest[: min(held, share)])
            rest = rest[held:]
        kept.append(list(self._ranked(context, shares[-1])))
        self._held = [len(pairs) for pairs in kept]
        return [pair for pairs in kept for pair in pairs]

    def carried(self) -> State:
        own = super().carried()
        if not self._taught:
            return own
        return State(facts={**own.facts, CHUNKS: {"taught": self._taught, "held": self._held}})

    def carry(self, state: State) -> None:
        super().carry(state)
        counts = state.facts.get(CHUNKS, {"taught": [], "held": []})
        self._taught = [int(count) for count in counts["taught"]]
        self._held = [int(count) for count in counts["held"]]
