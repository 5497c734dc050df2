"""Memories: which pairs of the past are kept for replay."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class Reservoir:
    """A uniform sample of a stream, of fixed size (Vitter, 1985; METHODS of CLL-CLIP's, CTP's and mammoth's libraries).

    Item number n, counted from 0, is kept while there is room, else it replaces a slot r drawn from 0..n when r is
    below the size. The draw depends on the seed and on n alone, so that a reservoir goes on after a restart as if it
    had never stopped.
    """

    size: int  # most items it holds
    seed: int  # of its draws
    seen: int = 0  # items offered so far, over all updates
    # what each slot holds: a number that means something to its owner
    items: list[int] = field(default_factory=list)

    def offer(self, item: int) -> int | None:
        """Offers the next item of the stream; returns the slot it was put in, None when it was passed over."""
        number, self.seen = self.seen, self.seen + 1
        if number < self.size:
            self.items.append(item)
            return number
        slot = random.Random(f"{self.seed}:{number}").randrange(number + 1)
        if slot >= self.size:
            return None
        self.items[slot] = item
        return slot

    def offer_all(self, items: Sequence[int]) -> list[tuple[int, int]]:
        """Offers items in their order; returns (position among them, slot) of those that were put in."""
        slots = [self.offer(item) for item in items]
        return [(position, slot) for position, slot in enumerate(slots) if slot is not None]

    def as_tensor(self) -> Tensor:
        """Returns seen and items in one (1 + held,) int64 tensor, for a checkpoint."""
        return torch.tensor([self.seen, *self.items], dtype=torch.int64)

    def restore(self, kept: Tensor) -> None:
        """Takes what `as_tensor` returned."""
        self.seen, *self.items = (int(value) for value in kept.tolist())
