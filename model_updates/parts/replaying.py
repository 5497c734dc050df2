"""Experience replay: a strategy that keeps some of the pairs it was taught and is taught them again.

Idea: after each update keep a uniform random sample of all pairs seen so far; in later updates they are trained on
like the chunk's own, under the same loss. ``with_er`` gives any strategy such a memory and calls it ``<name>+er``.

Formula: item number n of the stream, counted from 0, is kept while there is room, else it replaces slot r, drawn from
0..n, when r is below the size: every pair has been kept with the same probability at any time. Source: reservoir
sampling (Vitter, 1985) as the ER of CTP's library (ICCV 2023) and of IncCLIP (ECCV 2022, 3.1: at the end of a step,
10 % of the data). As there, the memory joins the epoch (``replay=joined``); ``beside`` is CLL-CLIP's way (AAAI 2024):
every batch of the chunk is followed by as many pairs from the memory.

Where we differ: a pair is offered once, at the end of its update, and not in every epoch, so that a long training is
no longer stream. Without ``memory_size`` the memory grows with the stream: every chunk gives the same share. Where
other strategies taught the chunks before, the memory starts as a sample of theirs.

Carried between updates: the pairs and how many were seen, beside what the strategy itself carries.
"""

import inspect
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, make_dataclass, replace
from typing import Annotated, TypeVar

import torch
from torch import Tensor

from model_updates.checked import Checked, CountOrZero, OneOf, Within
from model_updates.pairs import TrainingPair, stored_pairs
from model_updates.parts.extended import also, extended
from model_updates.strategy import Epochs, Family, Part, Replay, State, Strategy, UpdateContext


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
        slot = number if number < self.size else random.Random(f"{self.seed}:{number}").randrange(number + 1)
        if slot >= self.size:
            return None
        if slot < len(self.items):
            self.items[slot] = item
            return slot
        self.items.append(item)  # there is room, as in the beginning, or since items were withdrawn
        return len(self.items) - 1

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


MEMORY = "memory"  # the key of what is kept here among a strategy's facts


@dataclass(frozen=True)
class MemoryOptions(Checked):
    """Adds the memory to a strategy's options."""

    memory_size: CountOrZero = 0  # pairs kept for replay; 0 means `memory_share` of those seen.
    # of the pairs seen, how many are kept when there is no `memory_size` (10 % in IncCLIP).
    memory_share: Annotated[float, Within("(0, 1]")] = 0.1
    # "joined": the memory is part of the epoch (CTP, IncCLIP); "beside": every batch is followed by as many
    # pairs drawn from it.
    replay: Annotated[str, OneOf("joined", "beside")] = Replay.JOINED.value


AnyMemory = TypeVar("AnyMemory", bound="ReplayMemory")


class ReplayMemory(Part):
    """The pairs that a strategy keeps: a uniform sample. Another `choose` keeps others."""

    def __init__(self, options: MemoryOptions) -> None:
        self.options = options  # of the strategy
        self.kept: tuple[TrainingPair, ...] = ()  # the pairs
        self.seen = 0  # how many were offered over all updates

    def capacity(self, seen: int) -> int:
        """Returns how many pairs are kept once so many have been seen."""
        return self.options.memory_size or round(self.options.memory_share * seen)

    def choose(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the next memory, out of this one and the pairs of the update that ends."""
        draw = random.Random(f"{context.seed}:{self.seen}")
        kept = _sampled(self.kept, self.capacity(self.seen), draw)
        if self.options.memory_size:
            return _through_reservoir(kept, self.seen, context, self.options.memory_size)
        wanted = self.capacity(self.seen + len(context.pairs)) - len(kept)
        return [*kept, *_sampled(context.pairs, wanted, draw)]

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the pairs kept from earlier updates; in its first one, a choice of what others taught before."""
        if not self.seen:
            earlier = unlike(context.pairs, context.open_earlier())
            self.kept = tuple(self.choose(replace(context, pairs=earlier))) if earlier else ()
            self.seen = len(earlier)
        self.keep(context.still_counted(self.kept))
        return self.kept

    def keep(self, places: Sequence[int]) -> None:
        """Leaves out all pairs but those at these places; what was withdrawn is not learned again."""
        self.kept = tuple(self.kept[place] for place in places)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        self.kept = tuple(self.choose(context))
        self.seen += len(context.pairs)

    def notes(self) -> list[str]:
        return [f"{len(self.kept)} pairs are kept for replay, of {self.seen} seen."]

    def carried(self) -> State:
        if not self.seen:
            return State()
        return State(facts={MEMORY: {"pairs": [asdict(pair) for pair in self.kept], "seen": self.seen}})

    def carry(self, state: State) -> None:
        kept = state.facts.get(MEMORY, {"pairs": [], "seen": 0})
        self.kept = stored_pairs(kept["pairs"])
        self.seen = int(kept["seen"])


def remember(strategy: Strategy, memory: AnyMemory) -> AnyMemory:
    """Makes a memory a part of a strategy, which replays as its options say; returns it."""
    strategy.replay = Replay(memory.options.replay)
    return strategy.add(memory)


def unlike(pairs: Sequence[TrainingPair], others: Sequence[TrainingPair]) -> list[TrainingPair]:
    """Returns those of others that are not among the pairs."""
    own = set(pairs)
    return [pair for pair in others if pair not in own]


def _memory_of(strategy: Strategy) -> ReplayMemory:
    strategy.replay = Replay(strategy.options.replay)
    return ReplayMemory(strategy.options)


def with_er(kind: type[Strategy], differs: str = "") -> type[Strategy]:
    """Makes ``<name>+er`` of a strategy: the same, with a uniform sample of the old pairs among the new ones.

    `differs` is a sentence on how this memory is not the one that the strategy's paper has.

    Raises:
        ValueError: the strategy has a memory of its own.
    """
    if kind.replay is not Replay.NONE:
        raise ValueError(
            f"{kind.name} replays already ({kind.replay.value}); a second memory would hide the first"
        )
    longer = "epochs longer by the memory"
    return extended(
        kind,
        f"{kind.__name__}WithEr",
        _memory_of,
        __doc__=f"`{kind.name}` with a reservoir of the pairs it was taught.\n\n{_page(differs)}",
        name=f"{kind.name}+er",
        summary=f"As {kind.name}, and trains again on a random sample of the pairs of earlier chunks.",
        paper="; ".join(filter(None, [kind.paper, "ER as in CTP (ICCV 2023) and IncCLIP (ECCV 2022)"])),
        keeps=also(kind.keeps, "a sample of the pairs"),
        overhead=longer if kind.overhead == "none" else f"{kind.overhead}; {longer}",
        family=Family.MEMORY if kind.family is Family.BOUNDS else kind.family,
        replay=Replay.JOINED,
        Options=make_dataclass(
            f"{kind.Options.__name__}WithMemory", [], bases=(MemoryOptions, kind.Options), frozen=True
        ),
    )


def _page(differs: str) -> str:
    """Returns what this module says of the memory, and of what it is not."""
    said = inspect.cleandoc(__doc__ or "").partition("\n\n")[2]
    return said.replace("Where we differ:", f"Where we differ: {differs}" if differs else "Where we differ:")


def _through_reservoir(
    kept: Sequence[TrainingPair], seen: int, context: UpdateContext, size: int
) -> list[TrainingPair]:
    pool = [*kept, *context.pairs]
    reservoir = Reservoir(size, context.seed, seen, list(range(len(kept))))
    reservoir.offer_all(range(len(kept), len(pool)))
    return [pool[place] for place in reservoir.items]


def _sampled(pairs: Sequence[TrainingPair], count: int, draw: random.Random) -> Sequence[TrainingPair]:
    """Returns up to so many of the pairs, drawn alike; which slot of a reservoir a pair is in says when it came."""
    return pairs if len(pairs) <= count else draw.sample(list(pairs), count)
