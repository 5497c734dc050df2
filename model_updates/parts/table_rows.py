"""The rows of a token table in an update: which are new, where they start, and how far each may move."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor, nn

from model_updates.byte_pairs import Merge, learn_merges
from model_updates.checked import BatchSize, Checked, CountOrZero, NotNegative, Within
from model_updates.errors import BadStrategyOption
from model_updates.strategy import Part, UpdateContext
from model_updates.vocabulary import Growth, Vocabulary


def start_new_rows(
    table: nn.Parameter, growth: Growth, *, mean: float, std: float, generator: torch.Generator
) -> None:
    """Fills the rows of a growth in place: a copy of the row to start from, else N(mean, std^2)."""
    with torch.no_grad():
        for row, source in zip(growth.new_rows.tolist(), growth.start_from.tolist(), strict=True):
            if source >= 0:
                table[row] = table[source]
            else:
                drawn = torch.randn(table.shape[1], generator=generator) * std + mean
                table[row] = drawn.to(table)


def table_statistics(table: Tensor) -> tuple[float, float]:
    """Returns the scalar mean and standard deviation over all entries of a table (not per dimension)."""
    values = table.detach().double()
    return float(values.mean()), float(values.std())


def occurring_rows(sequences: Sequence[Sequence[int]], rows: int, special: Sequence[int]) -> Tensor:
    """Returns a (rows,) bool mask of the rows that occur in tokenised texts, start and end excluded."""
    mask = torch.zeros(rows, dtype=torch.bool)
    if sequences:
        mask[torch.tensor([row for sequence in sequences for row in sequence])] = True
    mask[list(special)] = False
    return mask


def teir_scale(occurs: Tensor, counts: Tensor) -> Tensor:
    """Returns lambda, (rows,) float32: 0 where a token does not occur, else 1 / (c + 1) (eq. 6, resolved)."""
    return torch.where(occurs, 1.0 / (counts.float() + 1.0), torch.zeros(len(occurs)))


class ScaledRows:
    """Applies row scales to one token table around the optimizer's step.

    TEIR scales the gradient and the decay of row j by lambda_j (CLL-CLIP paper, eq. 5 and 6). Adam divides a gradient
    by its own size, so a scaled gradient hardly changes the step; ``apply_to="update"`` scales the finished step
    instead, which is what eq. 5 intends. Rows with lambda 0 stay bit-identical either way.

    Put the table in a parameter group with weight decay 0: the decay is applied here, so that it can be scaled too.
    The table is (rows, width); gradient and decay scale are (rows,) factors, and the decay is that of a row with decay
    scale 1.
    """

    def __init__(
        self,
        table: nn.Parameter,
        *,
        gradient_scale: Tensor,
        decay_scale: Tensor,
        weight_decay: float,
        apply_to: str = "grad",
    ) -> None:
        self.table = table
        self.gradient_scale = gradient_scale.to(table.device)[:, None]
        self.decay_scale = decay_scale.to(table.device)[:, None]
        self.weight_decay = weight_decay
        self.apply_to = apply_to
        self._before: Tensor | None = None

    def after_backward(self, learning_rate: float) -> None:
        """Scales the gradient and decays the rows; call after clipping, before the optimizer's step."""
        if self.table.grad is None:
            return
        with torch.no_grad():
            if self.apply_to == "grad":
                self.table.grad.mul_(self.gradient_scale)
            else:
                # A row at 0 must not collect moments either: they would move it once it is trained.
                self.table.grad.mul_(self.gradient_scale > 0)
            self.table.mul_(1 - learning_rate * self.weight_decay * self.decay_scale)
            if self.apply_to == "update":
                self._before = self.table.detach().clone()

    def after_step(self) -> None:
        """Shrinks the step just made to its scaled length (only with ``apply_to="update"``)."""
        if self._before is not None:
            with torch.no_grad():
                step = self.table - self._before
                self.table.copy_(self._before + self.gradient_scale * step)
            self._before = None


PAPER_CROSS_MODAL = 0.01
VocabularySize = Annotated[int, Within("(512, inf)", why=", as it counts the 512 byte symbols too")]


@dataclass(frozen=True)
class TeachingOptions(Checked):
    """Options of every strategy that trains the token table."""

    # passes over the chunk; 0 means the default for the encoder. The paper takes 3 on 616,767 captions; small
    # chunks need more, 15; where the body is foreign and rows start from translations, 3 will do, and 10
    # where they start from nothing.
    epochs: CountOrZero = 0
    batch_size: BatchSize = 128  # pairs per step (paper: 128).
    # 0 means the default for the encoder's size (5e-5 in the paper for ViT-B/16).
    learning_rate: NotNegative = 0.0
    weight_decay: NotNegative = 0.05  # on rows that may move (paper: 0.05).
    cross_modal: NotNegative = PAPER_CROSS_MODAL  # weight of the picture-text term (paper: 0.01).
    cross_lingual: NotNegative = 1.0  # weight of the term towards the English caption (paper: 1).
    vocabulary: VocabularySize = 10_000  # BPE entries learned on a language's captions (paper: 10,000).

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cross_modal + self.cross_lingual == 0:
            raise BadStrategyOption("of cross_modal and cross_lingual at least one is above zero")


class Rows(Part, ABC):
    """How the token table of an encoder grows and trains."""

    grows_shared: ClassVar[bool] = True  # whether new words join the table that all languages share
    needs_table: ClassVar[bool] = False  # whether nothing can be learned without a table that grows
    apply_to: str = "grad"  # whether row scales act on the gradient ("grad") or on the step ("update")

    def __init__(self, options: TeachingOptions) -> None:
        self.options = options

    def merges(self, context: UpdateContext) -> dict[str, tuple[Merge, ...]]:
        """Returns a BPE learned on the captions of each language of the chunk."""
        return {
            language: learn_merges(sorted(texts), size=self.options.vocabulary)
            for language, texts in sorted(context.texts_by_language().items())
        }

    def first_values(self, table: Tensor) -> tuple[float, float]:
        """Returns mean and standard deviation of rows that start from nothing (CLL-CLIP: 0 and 0.02)."""
        return 0.0, 0.02

    @abstractmethod
    def grow(self, vocabulary: Vocabulary, context: UpdateContext) -> Growth:
        """Grows the vocabulary and says where the new rows start from."""

    def start(
        self, table: nn.Parameter, growth: Growth, generator: torch.Generator, first: tuple[float, float]
    ) -> None:
        """Fills the new rows in place: a copy of the row each overlaps, else drawn around the first values."""
        start_new_rows(table, growth, mean=first[0], std=first[1], generator=generator)

    def scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns the gradient and decay scale of each row, (rows,) float32 each."""
        return torch.ones(rows), torch.ones(rows)

    def own(self) -> Tensor | None:
        """Returns the rows (o,) that alone may move, so that they alone cost moments; None: `scales` decide."""
        return None

    def said(self) -> list[str]:
        """Returns what the report says of the rows."""
        return []
