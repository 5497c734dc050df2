"""TiC-CLIP's cumulative training: go on from the last encoder, on the new chunk and a buffer of all before it.

Idea: data come in time steps, and training anew on everything at every step costs more each time. Going on from the
last weights, with a fresh optimizer and the same schedule each time, on old data and new, is nearly as good for about
2.5 times less; when old data cannot all be kept, a buffer of fixed size holds some of each step.

Formula: finetune's loss over the chunk and the buffer. Which pairs of T earlier chunks a buffer of M holds: ``all``
of them; ``equal``: M/T of each; ``exp``: M/2 of the newest, half of the rest of the one before, and so on, the oldest
taking what is left. Source: Garg et al., ICLR 2024 (Cumulative-All, -Equal, -Exp); betas .9 and .98, eps 1e-6, decay
.2 as its released parameters. A step has a fixed compute: the longer the epoch, the fewer of them
(``fixed_compute``).

Where we differ: with ``memory_size`` the buffer is of fixed size, as in the protocols; without, it holds a tenth of
what was seen, so that nobody has to know how much is to come. Rate and epochs follow the encoder's size, as for
finetune; every step warms up, though the authors' scripts do not where their settings do. A chunk smaller than its
part leaves the rest unused.

Carried between updates: the buffer and how many pairs of it are of which chunk; with ``all`` nothing.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from model_updates.checked import NotNegative, OneOf
from model_updates.encoder import Encoder
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.exemplars import ChunkedMemory
from model_updates.parts.replaying import MemoryOptions, remember, unlike
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Family, Replay, Schedule, UpdateContext


@dataclass(frozen=True)
class TicOptions(MemoryOptions, TwoTowerOptions):
    """Adds the buffer to the options of two towers."""

    weight_decay: NotNegative = 0.2  # on matrices (released parameters: 0.2).
    # "all" pairs of earlier chunks, "equal" parts of each, or "exp": half for the newest, and so on.
    buffer: Annotated[str, OneOf("all", "equal", "exp")] = "equal"
    # make fewer epochs when the buffer makes them longer, so that each update costs what its chunk alone
    # would; at least one.
    fixed_compute: bool = True


class Buffer(ChunkedMemory):
    """Random parts of every chunk so far, or all of them."""

    options: TicOptions

    def __init__(self, options: TicOptions) -> None:
        super().__init__(options, self._equal_or_halved, self._drawn)

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the buffer, or the pairs of all earlier chunks."""
        if self.options.buffer == "all":
            return unlike(context.pairs, context.open_earlier())
        return super().memory(context)

    def choose(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the next buffer; where all is learned again, none is needed."""
        return () if self.options.buffer == "all" else super().choose(context)

    def notes(self) -> list[str]:
        if self.options.buffer == "all":
            return ["All pairs of earlier chunks were learned again."]
        return super().notes()

    def _equal_or_halved(self, taught: Sequence[int], size: int) -> list[int]:
        return quotas(self.options.buffer, size, len(taught))

    def _drawn(self, context: UpdateContext, count: int) -> Sequence[TrainingPair]:
        """Returns a random part in a random order, so that any beginning of it is a random sample."""
        draw = random.Random(f"{context.seed}:{self.seen}")
        return draw.sample(list(context.pairs), min(count, len(context.pairs)))


class Tic(TwoTowers):
    """Cumulative training with a buffer."""

    name = "tic"
    summary = (
        "Goes on training both towers on the chunk and a buffer of every chunk before it, at the cost of one."
    )
    paper = "TiC-CLIP, ICLR 2024"
    family = Family.MEMORY
    keeps = "a buffer of pairs of every chunk"
    overhead = "none: fewer epochs for longer ones"
    replay = Replay.JOINED
    options: TicOptions

    def __init__(self, options: TicOptions | None = None) -> None:
        super().__init__(options)
        self.kept = remember(self, Buffer(self.options))
        self._longer = 1.0

    def take(self, data: UpdateData) -> None:
        """Learns how much longer an epoch is by the buffer."""
        super().take(data)
        own, again = len(data.train), len(data.memory)
        if self.replay is Replay.BESIDE:
            again = round(own * min(1.0, again / self.options.batch_size))
        self._longer = (own + again) / own

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns finetune's schedule with the released moments, and as many epochs as the compute allows."""
        made = replace(super().schedule(encoder), betas=(0.9, 0.98), eps=1e-6)
        if not self.options.fixed_compute:
            return made
        return replace(made, epochs=max(1, round(made.epochs / self._longer)))


def quotas(buffer: str, size: int, chunks: int) -> list[int]:
    """Returns how many pairs of each chunk, the oldest first, a buffer of this size holds."""
    if buffer == "equal":
        part, rest = divmod(size, chunks)
        return [part + (n < rest) for n in range(chunks)]
    parts: list[int] = []
    for left in range(chunks, 0, -1):
        remaining = size - sum(parts)
        parts.append(remaining if left == 1 else (remaining + 1) // 2)
    return parts[::-1]
