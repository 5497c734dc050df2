"""TEIR: CLL-CLIP with token rows that start alike and move less the more languages share them.

Idea: start new rows from the distribution of the trained table; let a row move and decay by ``lambda_j = 1 /
(c_j + 1)`` when its token occurs in this chunk, and not at all when it does not, where c_j counts the earlier
updates whose texts contained it (the base vocabulary counts once). Start and end never move.

Formula: ``theta_j <- (1 - lr * beta * lambda_j) * theta_j - lr * lambda_j * grad_j``. Source: CLL-CLIP with
TEIR (AAAI 2024), eq. 5 and 6: tasks are counted, not occurrences; overlap is judged by occurrence after
segmentation; mean and deviation are scalars. Where we differ: under AdamW the scaled gradient hardly shortens
a step, so ``apply_to=update`` (not the default) scales the finished step instead.

Kept between updates: the counts c, one per row. They count the updates of `teir` alone: rows that another
strategy taught in between start at 0, so do not alternate it with `cll-clip` on one line of versions.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.errors import BadStrategyOption
from model_updates.families import Family
from model_updates.parts.language_teaching import LanguageTeaching, TeachingOptions, merge_into_shared
from model_updates.parts.token_table import occurring_rows, table_statistics, teir_scale
from model_updates.strategy import Epochs, State, UpdateContext
from model_updates.vocabulary import Growth, Merge, Vocabulary


@dataclass(frozen=True)
class TeirOptions(TeachingOptions):
    """Adds TEIR's parts to the teaching options; each can be switched off (Table 3 of the paper).

    Attributes:
        initialise: start new rows from the trained table's mean and deviation.
        scale_gradient: lambda on the gradient (or the step).
        scale_decay: lambda on the weight decay.
        apply_to: "grad" as in the paper, or "update" to scale Adam's step.
    """

    initialise: bool = True
    scale_gradient: bool = True
    scale_decay: bool = True
    apply_to: str = "grad"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.apply_to not in {"grad", "update"}:
            raise BadStrategyOption(f"apply_to is 'grad' or 'update', got {self.apply_to!r}")


class Teir(LanguageTeaching):
    """CLL-CLIP with identical-distribution start and regularised rows.

    Attributes:
        counts: (rows,) int64, c: the updates so far whose texts held the row's token.
        lambdas: (rows,) float32, how far each row may move in this update.
    """

    name = "teir"
    summary = "CLL-CLIP that holds back the words other languages use; forgets less than cll-clip."
    paper = "CLL-CLIP with TEIR, AAAI 2024, eq. 5 and 6"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "how often each token was seen"
    overhead = "2 % (paper: 0.2 h of 11 h)"
    Options = TeirOptions
    options: TeirOptions

    def __init__(self, options: TeirOptions | None = None) -> None:
        super().__init__(options)
        self.counts = torch.zeros(0, dtype=torch.int64)
        self.lambdas = torch.zeros(0)

    def first_values(self, table: Tensor) -> tuple[float, float]:
        """Returns the scalar mean and deviation of the trained table, or CLL-CLIP's when switched off."""
        return table_statistics(table) if self.options.initialise else super().first_values(table)

    @property
    def apply_to(self) -> str:
        """Where lambda acts."""
        return self.options.apply_to

    def grow(
        self, vocabulary: Vocabulary, merges: dict[str, tuple[Merge, ...]], context: UpdateContext
    ) -> Growth:
        """Appends each language's merges to the shared table and marks the rows that its texts use."""
        before = vocabulary.size
        if len(self.counts) == 0:
            self.counts = torch.ones(before, dtype=torch.int64)  # the base vocabulary has been seen once
        growth, self._resegmented = merge_into_shared(vocabulary, merges, context)
        # Rows that another strategy appended in between are new to TEIR: they count as never seen.
        self.counts = torch.cat(
            [self.counts, torch.zeros(vocabulary.size - len(self.counts), dtype=torch.int64)]
        )
        sequences = [
            sequence
            for language, texts in sorted(context.texts_by_language().items())
            for sequence in vocabulary.encode(texts, language)
        ]
        self._occurs = occurring_rows(sequences, vocabulary.size, vocabulary.special_rows)
        self.lambdas = teir_scale(self._occurs, self.counts)
        return growth

    def row_scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns lambda for the gradient and for the decay, or ones for a part that is switched off."""
        ones = torch.ones(rows)
        return (
            self.lambdas if self.options.scale_gradient else ones,
            self.lambdas if self.options.scale_decay else ones,
        )

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Counts this update for every row that its texts used."""
        super().after_update(context, batches)
        self.counts = self.counts + self._occurs.long()

    def notes(self) -> list[str]:
        """Says how much English text is segmented anew, and how many rows could move."""
        return [self._resegmented, f"{int(self._occurs.sum())} of {len(self.counts)} token rows could move."]

    def carried(self) -> State:
        """Returns the counts."""
        return State({"counts": self.counts}) if len(self.counts) else State()

    def carry(self, state: State) -> None:
        """Takes the counts of the updates so far."""
        self.counts = state.tensors["counts"].clone()
