"""The contract of a continual-learning strategy: data flow, not a training loop.

For a batch a strategy returns named, already weighted loss terms; the trainer sums, steps, logs each by name
and saves. The hooks run in this order::

    before_update → parameter_groups → [prepare_batch → terms → (backward, clip) → after_backward
                                        → (optimizer step) → after_step]* → after_update

All that must survive a restart goes through `state_dict`: within an update (queues, moments of a moving
teacher) and between updates (Fisher, counts, memories). `before_update` is run again when an interrupted
update resumes, so it must be deterministic for its context; the saved state is loaded on top.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from PIL import Image
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption

BASE_LANGUAGE = "en"


@dataclass(frozen=True)
class TrainingPair:
    """One picture and one text to learn from; `english` is an English caption of the same picture."""

    image_id: str
    text: str
    language: str
    domain: str
    english: str | None = None


@dataclass(frozen=True)
class UpdateContext:
    """What a strategy may look at before and after an update.

    Attributes:
        encoder: the candidate; strategies train it in place.
        pairs: the training pairs of the chunk.
        learned_languages: languages that the live encoder has learned, the base's included.
        open_anchor: opens the encoder that this line of versions started from (theta_0), frozen.
        open_previous: opens the encoder as it was before this update (theta_{t-1}), frozen.
        seed: of every random choice of the update.
        update_number: 1 for the first update of the line.
        load_image: gives the picture of an id, for passes over pictures and for replay; None without a gallery.
        open_earlier: gives the training pairs of the chunks learned before, in the order they were learned.
    """

    encoder: Encoder
    pairs: Sequence[TrainingPair]
    learned_languages: frozenset[str]
    open_anchor: Callable[[], Encoder]
    open_previous: Callable[[], Encoder]
    seed: int = 0
    update_number: int = 1
    load_image: Callable[[str], Image.Image] | None = None
    open_earlier: Callable[[], Sequence[TrainingPair]] = tuple

    def texts_by_language(self) -> dict[str, list[str]]:
        """Returns the training texts of each language of the chunk."""
        grouped: dict[str, list[str]] = {}
        for pair in self.pairs:
            grouped.setdefault(pair.language, []).append(pair.text)
        return grouped


@dataclass(frozen=True)
class Batch:
    """What a strategy sees of b pairs; features are raw (not normalised) and come from frozen towers.

    Attributes:
        tokens: (b, longest) int64 rows of the texts under the candidate's vocabulary.
        image_index: (b,) int64, equal where two pairs show the same picture.
        images: (b, 3, size, size) float32, only when the strategy trains the image tower.
        image_features: (b, dim) of the image tower before this update.
        text_features: (b, dim) of the text tower before this update, only when the strategy asks (`needs`).
        english_features: (b, dim) teacher features of the English caption; rows without one are zero.
        has_english: (b,) bool, which rows of `english_features` are real.
        replayed: (b,) bool, pairs that come from a memory.
    """

    tokens: Tensor
    image_index: Tensor
    image_features: Tensor
    images: Tensor | None = None
    text_features: Tensor | None = None
    english_features: Tensor | None = None
    has_english: Tensor | None = None
    replayed: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """Returns the batch with every tensor on the device."""
        moved = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return replace(self, **{k: v.to(device) for k, v in moved.items() if v is not None})


@dataclass(frozen=True)
class Schedule:
    """How the trainer optimises: AdamW with a linear warm-up, then constant or cosine."""

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-4
    weight_decay: float = 0.05
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-6
    warmup: float = 0.1
    decay: str = "constant"
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        check_run(self.epochs, self.batch_size, self.learning_rate, self.weight_decay)
        if self.decay not in {"constant", "cosine"}:
            raise BadStrategyOption(f"decay is 'constant' or 'cosine', got {self.decay!r}")


def check_run(epochs: int, batch_size: int, learning_rate: float, weight_decay: float) -> None:
    """Refuses a training run that cannot work; a learning rate of 0 stands for the strategy's default.

    Raises:
        BadStrategyOption: the sentence names the value.
    """
    if epochs < 1 or batch_size < 2:
        raise BadStrategyOption(
            f"an update needs at least 1 epoch and batches of 2, got epochs={epochs}, batch_size={batch_size}"
        )
    if not (0 <= learning_rate < math.inf and 0 <= weight_decay < math.inf):
        raise BadStrategyOption(
            "learning_rate and weight_decay are finite and not negative, "
            f"got {learning_rate} and {weight_decay}"
        )


@dataclass
class ParameterGroup:
    """Parameters that share a learning-rate factor and a weight decay (None: the schedule's)."""

    parameters: list[torch.nn.Parameter] = field(default_factory=list)
    rate_factor: float = 1.0
    weight_decay: float | None = None


class Strategy(ABC):
    """One continual-learning method; a frozen `Options` dataclass is its only configuration.

    Attributes:
        learning_rate: of the coming step; the trainer sets it, for strategies that apply a decay of their
            own.
    """

    learning_rate: float = 0.0

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    Options: ClassVar[type[Any]]
    needs: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, options: Any = None) -> None:
        self.options = self.Options() if options is None else options

    # What it touches decides what must be re-embedded and which features are cached; checked by fingerprint.
    @property
    @abstractmethod
    def touches_image(self) -> bool:
        """True when the image tower may change, so that the gallery must be embedded again."""

    @property
    @abstractmethod
    def touches_text(self) -> bool:
        """True when any text vector may change."""

    @abstractmethod
    def before_update(self, context: UpdateContext) -> None:
        """Prepares the encoder: grows the vocabulary, inserts adapters, marks what trains."""

    @abstractmethod
    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns what the optimizer trains."""

    @abstractmethod
    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the default schedule for this encoder, with this strategy's options applied."""

    def prepare_batch(self, batch: Batch) -> Batch:
        """Adds what the strategy needs to a batch, such as replayed pairs."""
        return batch

    @abstractmethod
    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns named scalar loss terms, already weighted; the trainer adds them up."""

    def after_backward(self) -> None:  # noqa: B027 - a hook that most strategies leave empty
        """Edits gradients, after unscaling and clipping."""

    def after_step(self) -> None:  # noqa: B027
        """Runs after each optimizer step: averages, clips norms, pushes queues."""

    def after_update(self, context: UpdateContext) -> None:  # noqa: B027
        """Ends the update on the chosen weights: merges adapters, counts, remembers."""

    def notes(self) -> list[str]:
        """Returns sentences for the update report, such as how much of the old text is segmented anew."""
        return []

    def state_dict(self) -> dict[str, Tensor]:
        """Returns what must survive a restart and the next update."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:  # noqa: B027
        """Takes what `state_dict` returned."""


def options_of(strategy: type[Strategy], given: Mapping[str, Any]) -> Any:
    """Builds a strategy's options from plain values, converting text to the option's type.

    Raises:
        BadStrategyOption: an unknown option (the text lists the known ones) or an unusable value.
    """
    known = {f.name: f for f in dataclasses.fields(strategy.Options)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise BadStrategyOption(
            f"strategy {strategy.name!r} has no option {', '.join(map(repr, unknown))}; "
            f"it has: {', '.join(known)}"
        )
    defaults = strategy.Options()
    values = {name: _convert(name, value, getattr(defaults, name)) for name, value in given.items()}
    return strategy.Options(**values)


YES, NO = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


def _convert(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, str):
        if isinstance(value, str):
            return value.strip()
        raise BadStrategyOption(f"option {name} is a word such as {default!r}, got {value!r}")
    said = str(value).strip().lower()
    if isinstance(default, bool):
        if said in YES | NO:
            return said in YES
        raise BadStrategyOption(f"option {name} is yes or no, got {value!r}")
    try:
        number = float(said)
    except ValueError as error:
        raise BadStrategyOption(f"option {name} must be a number, got {value!r}") from error
    if not math.isfinite(number):
        raise BadStrategyOption(f"option {name} must be a finite number, got {value!r}")
    if isinstance(default, int):
        if not number.is_integer():
            raise BadStrategyOption(f"option {name} must be a whole number, got {value!r}")
        return int(number)
    return number
