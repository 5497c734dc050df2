"""The contract of a continual-learning strategy: data flow, not a training loop.

For a batch a strategy returns named, already weighted loss terms; the trainer sums, steps, logs each by name
and saves. The hooks run in this order::

    fits → memory → before_update → take → parameter_groups
      → [before_epoch → [terms → (backward, clip) → after_backward → (optimizer step) → after_step]*]*
      → after_update

What a strategy keeps is of two kinds. *Carried* state lives between updates (Fisher, counts, memories): it is saved
with the version that the update makes, says which update it is of, and only updates read it. *Progress* lives within
one update (queues, a moving teacher, a temperature): it is saved with each checkpoint, kept with the epoch that is
kept, and dropped at the end. `before_update` runs again when an interrupted update resumes, so it must be
deterministic for its context; progress is loaded on top.

What stays in the encoder for good is an insert (`model_updates.inserts`), appended to `encoder.inserts`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import torch
from PIL import Image
from timm.optim.lamb import Lamb
from torch import Tensor, nn

from model_updates.checked import BatchSize, Checked, Count, NotNegative, OneOf
from model_updates.encoder import Encoder
from model_updates.errors import NothingToLearn
from model_updates.pair_sets import Batch, UpdateData
from model_updates.pairs import Fold, TrainingPair
from model_updates.prospect import Prospect
from model_updates.strategy_facts import Family as Family
from model_updates.strategy_facts import Replay as Replay

AnyPart = TypeVar("AnyPart", bound="Part")


@dataclass(frozen=True)
class State:
    """What a strategy keeps between updates."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)  # by name
    facts: Mapping[str, Any] = field(default_factory=dict)  # plain JSON values, such as the pairs of a memory
    # number of the update it was made in; 0 before the first. With strategies that alternate, later updates may have
    # moved weights and grown the token table since
    update: int = 0


def no_reference(chunk: str) -> Sequence[TrainingPair]:
    """Refuses, where a context has no catalog to take a reference chunk from."""
    raise NothingToLearn(f"this update was given no reference chunks, and {chunk!r} was asked for")


def all_places(pairs: Sequence[TrainingPair]) -> list[int]:
    """Returns every place, where nothing is ever withdrawn."""
    return list(range(len(pairs)))


@dataclass(frozen=True)
class UpdateContext:
    """What a strategy may look at before and after an update.

    While an update runs both teachers are copies of their own on the candidate's device, in eval mode, without
    gradients; the same copy each time it is opened. An update whose teacher has moved at its end fails.
    """

    encoder: Encoder  # the candidate; strategies train it in place
    pairs: Sequence[TrainingPair]  # the training pairs of the chunk
    learned_languages: frozenset[str]  # languages that the live encoder has learned, the base's included
    open_anchor: Callable[[], Encoder]  # opens the encoder that this line of versions started from (theta_0)
    open_previous: Callable[[], Encoder]  # opens the encoder as it was before this update (theta_{t-1})
    # domains of the chunk that the encoder knows: they have an adapter, or their captions find them
    learned_domains: frozenset[str] = frozenset()
    seed: int = 0  # of every random choice of the update
    update_number: int = 1  # 1 for the first update of the line
    # gives the picture of an id, for passes over pictures; None without a gallery
    load_image: Callable[[str], Image.Image] | None = None
    # gives the training pairs of the chunks learned before, in the order they were learned
    open_earlier: Callable[[], Sequence[TrainingPair]] = tuple
    # gives training pairs of pictures in the gallery, learned or not, but none in a language that the chunk teaches its
    # picture: what people find today, in the learned languages, in a fixed order
    open_known: Callable[[], Sequence[TrainingPair]] = tuple
    # gives the pairs of any chunk by its id, one kept outside the gallery too, for methods that distil on reference
    # data
    open_reference: Callable[[str], Sequence[TrainingPair]] = no_reference
    # gives the places of those pairs of a memory that still count: others were withdrawn after they were learned
    still_counted: Callable[[Sequence[TrainingPair]], list[int]] = all_places

    def texts_by_language(self) -> dict[str, list[str]]:
        """Returns the training texts of each language of the chunk."""
        grouped: dict[str, list[str]] = {}
        for pair in self.pairs:
            grouped.setdefault(pair.language, []).append(pair.text)
        return grouped


@dataclass(frozen=True)
class Foresight:
    """What an update would do, before it is prepared."""

    epochs: int  # over the chunk
    reads_pictures: bool  # whether a step runs the image tower
    moves_pictures: bool  # whether pictures get other vectors
    domains: frozenset[str] | None = None  # whose; None means all pictures


BOTH_TOWERS = frozenset({"image", "text"})


@dataclass(frozen=True)
class Tolerance:
    """How far below the best validation score an epoch may be: the larger of the two."""

    errors: float = 1.0  # standard errors of the best score
    # validation pictures' worth of it; where all of a few are found, their standard error is nothing
    pictures: float = 0.0

    def __or__(self, other: Tolerance) -> Tolerance:
        """Returns the larger of both, each in itself."""
        return Tolerance(max(self.errors, other.errors), max(self.pictures, other.pictures))


@dataclass(frozen=True)
class Schedule(Checked):
    """How the trainer optimises: AdamW, SGD with momentum or LAMB; a linear warm-up, then constant or cosine."""

    epochs: Count = 10
    batch_size: BatchSize = 128
    learning_rate: NotNegative = 1e-4
    weight_decay: NotNegative = 0.05
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    warmup: float = 0.1
    decay: Annotated[str, OneOf("constant", "cosine")] = "constant"
    clip_norm: float = 1.0
    # "adamw", "sgd" (momentum is the first of `betas`) or "lamb" (timm's)
    optimizer: Annotated[str, OneOf("adamw", "sgd", "lamb")] = "adamw"
    # the latest epoch is kept that scores no further than this below the best
    tolerance: Tolerance = Tolerance()

    def over(self, trained: Sequence[ParameterGroup]) -> torch.optim.Optimizer:
        """Returns the optimizer that it names, over what a strategy trains."""
        groups = [
            {
                "params": group.parameters,
                "rate_factor": group.rate_factor,
                "weight_decay": self.weight_decay if group.weight_decay is None else group.weight_decay,
            }
            for group in trained
            if group.parameters
        ] or [{"params": []}]  # nothing trains where all is solved in closed form
        rate, decay = self.learning_rate, self.weight_decay
        if self.optimizer == "sgd":
            return torch.optim.SGD(groups, lr=rate, momentum=self.betas[0], weight_decay=decay)
        adam: dict[str, Any] = {"lr": rate, "betas": self.betas, "eps": self.eps, "weight_decay": decay}
        if self.optimizer == "lamb":
            return Lamb(groups, **adam)
        # Fused: one pass over each tensor instead of a dozen, a tenth of a step on a processor (docs/log.md).
        return torch.optim.AdamW(groups, **adam, fused=True)


class Epochs(Protocol):
    """The chunk's batches, an epoch at a time; `Batches` is one."""

    def epoch(self, seed: int) -> Iterator[Batch]:
        """Yields one epoch in the order that the seed gives."""
        ...


@dataclass
class ParameterGroup:
    """Parameters that share a learning-rate factor and a weight decay (None: the schedule's)."""

    parameters: list[nn.Parameter] = field(default_factory=list)
    rate_factor: float = 1.0
    weight_decay: float | None = None


class Part:
    """What takes part in an update: a strategy, or something that strategies are made of.

    A part may have parts of its own. Each hook here runs theirs, in their order, and nothing where there are none.
    """

    parts: tuple[Part, ...] = ()  # what it is made of

    def add(self, part: AnyPart) -> AnyPart:
        """Makes something a part of this one, and returns it."""
        self.parts = (*self.parts, part)
        return part

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the pairs to gather beside the chunk's: kept from earlier updates, or drawn from the context."""
        return tuple(pair for part in self.parts for pair in part.memory(context))

    def trained_beside(self) -> Sequence[TrainingPair]:
        """Returns the pairs that it trains on beside chunk and memory; asked after `take`."""
        return [pair for part in self.parts for pair in part.trained_beside()]

    def before_update(self, context: UpdateContext) -> None:
        """Prepares the encoder: grows the vocabulary, inserts adapters, marks what trains."""
        for part in self.parts:
            part.before_update(context)

    def take(self, data: UpdateData) -> None:
        """Receives the frozen features of the chunk and of the memory, once, before the first step."""
        for part in self.parts:
            part.take(data)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns what the optimizer trains."""
        return [group for part in self.parts for group in part.parameter_groups()]

    def before_epoch(self, epoch: int, batches: Epochs) -> None:
        """Runs before each epoch, counted from 0, with the chunk's batches for a pass of its own."""
        for part in self.parts:
            part.before_epoch(epoch, batches)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns named scalar loss terms, already weighted; the trainer adds them up."""
        return {name: term for part in self.parts for name, term in part.terms(batch).items()}

    def after_backward(self, learning_rate: float) -> None:
        """Edits gradients, after unscaling and clipping; the rate is that of the coming step."""
        for part in self.parts:
            part.after_backward(learning_rate)

    def after_step(self) -> None:
        """Runs after each optimizer step: averages, clips norms, pushes queues."""
        for part in self.parts:
            part.after_step()

    def deployed(self) -> AbstractContextManager[None]:
        """Puts the weights that would be released into the encoder while the block runs: validation sees these.

        For averages and partial merges, which train other weights than they release. What the block leaves behind must
        be the training weights, bit for bit.
        """
        return _all_of([part.deployed() for part in self.parts])

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Ends the update on the weights of the kept epoch: merges, counts, passes over batches, keeps inserts."""
        for part in self.parts:
            part.after_update(context, batches)

    def notes(self) -> list[str]:
        """Returns sentences for the update report, such as how much of the old text is segmented anew."""
        return [note for part in self.parts for note in part.notes()]

    def carried(self) -> State:
        """Returns what the next update of this strategy needs."""
        states = [part.carried() for part in self.parts]
        return State(
            {name: value for state in states for name, value in state.tensors.items()},
            {name: value for state in states for name, value in state.facts.items()},
        )

    def carry(self, state: State) -> None:
        """Takes its own of what an earlier update carried; called before `memory` and `before_update`."""
        for part in self.parts:
            part.carry(state)

    def progress(self) -> dict[str, Tensor]:
        """Returns what an interrupted update needs beside the encoder's tensors; nothing outside an update."""
        return {name: value for part in self.parts for name, value in part.progress().items()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes its own of what `progress` returned in the same update; called after `before_update`."""
        for part in self.parts:
            part.load_progress(progress)


@contextmanager
def _all_of(managers: Sequence[AbstractContextManager[None]]) -> Iterator[None]:
    with ExitStack() as stack:
        for manager in managers:
            stack.enter_context(manager)
        yield


class Strategy(Part, ABC):
    """One continual-learning method; a frozen `Options` dataclass is its only configuration."""

    name: ClassVar[str]  # what people choose it by; also its line in the registry
    summary: ClassVar[str]  # one sentence on what it does and what that costs
    paper: ClassVar[str] = ""  # where it comes from
    family: ClassVar[Family]  # which strategies it is listed with
    trains: ClassVar[str] = "both towers"  # what moves in an update, in a few words
    # what it keeps between updates, in a few words; "nothing" where it keeps nothing
    keeps: ClassVar[str] = "nothing"
    # what an update costs beside plain training of the same parameters, in a few words, the paper's figure where one is
    # printed
    overhead: ClassVar[str] = "none"
    language_at_query: ClassVar[bool] = False  # whether a query is read by its language, chosen or detected
    # whose pictures are embedded again after an update, in a few words, where it is neither all of them (`touches`) nor
    # none
    embeds_again: ClassVar[str] = ""
    Options: ClassVar[type[Any]]  # its dataclass of options, which the annotation of `options` names
    # which towers an update may change: "image", so that the gallery must be embedded again, and "text". Checked by
    # fingerprint; one that an update decides may say less once it has begun
    touches: frozenset[str] = BOTH_TOWERS
    needs: ClassVar[frozenset[str]] = frozenset()  # what else batches must hold: "text_features"
    # how its memory reaches the batches; an option may say otherwise for one of its objects
    replay: Replay = Replay.NONE
    # whether vectors of other languages and domains than those taught may change. If so, the epoch is chosen by what is
    # known, too
    can_forget: ClassVar[bool] = True
    # whether every update trains on all pairs of all chunks so far, as the upper bounds do
    trains_on_all: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        named = get_annotations(cls).get("options")
        if named is not None and "Options" not in vars(cls):
            cls.Options = getattr(sys.modules[cls.__module__], named) if isinstance(named, str) else named

    def __init__(self, options: Any = None) -> None:
        self.options = self.Options() if options is None else options

    @property
    def reads_pictures(self) -> bool:
        """True when batches must hold decoded pictures; a head on cached trunk features needs none."""
        return "image" in self.touches

    def fits(self, prospect: Prospect) -> str | None:
        """Says why an update would be pointless or fail, and what to do instead; None when it fits."""
        return None

    def taught(
        self,
        pairs: Sequence[TrainingPair],
        learned_languages: Collection[str],
        learned_domains: Collection[str],
    ) -> Sequence[TrainingPair]:
        """Returns which pairs of a chunk an update teaches, and is therefore judged by; asked before anything runs.

        Where a text-only strategy finds new languages, captions in learned ones are there to stand beside them (the
        triples of CLL-CLIP): training on those too could only disturb what is known. A strategy of pictures alone
        teaches no language: captions that nobody can read yet stay out.
        """
        new = [pair for pair in pairs if pair.language not in learned_languages]
        if "image" not in self.touches:
            return new or pairs
        if "text" not in self.touches:
            return [pair for pair in pairs if pair.language in learned_languages] or pairs
        return pairs

    @abstractmethod
    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the default schedule for this encoder, with this strategy's options applied."""

    def foreseen(self, context: UpdateContext) -> Foresight:
        """Returns what an update would do; asked before anything is prepared, and changes nothing."""
        epochs = self.schedule(context.encoder).epochs
        return Foresight(epochs, self.reads_pictures, "image" in self.touches)

    def copies(self, folds: Sequence[Fold], train: Callable[[Fold], Encoder]) -> Iterator[Encoder]:
        """Yields for each fold what an update by its training pairs alone would have made of the live encoder.

        The gate examines small chunks by these, one after another. `train` trains such a copy, by a fresh strategy of
        this kind; one that solves all folds at once may yield them without.
        """
        return map(train, folds)
