"""TEIR's rows: what any strategy that trains the shared token table gains by it (AAAI 2024, eq. 5 and 6).

New rows start from the distribution of the trained table; row j moves and decays by ``lambda_j = 1 / (c_j + 1)`` when
its token occurs in this update, and not at all when it does not, where c_j counts the earlier updates whose chunk
contained it (the base vocabulary counts once). Start and end never move.

`with_teir` makes ``teir+<name>`` of a strategy: both sets of options in one, and the state of both, kept apart. Where
the strategy replays pairs, tokens of the memory may move too, by the same lambda; the reference then also raises c by
the languages in the memory, which would count a replayed language again in every update: we count the chunk alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Annotated

import torch
from torch import Tensor

from model_updates.checked import OneOf
from model_updates.pairs import TrainingPair
from model_updates.parts.extended import Extended, also, extended
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.shared_table import SharedRows, SharedTableOptions
from model_updates.parts.table_rows import occurring_rows, table_statistics, teir_scale
from model_updates.strategy import Epochs, State, Strategy, UpdateContext
from model_updates.vocabulary import Growth, Vocabulary

COUNTS = "counts"
PAPER = "CLL-CLIP with TEIR, AAAI 2024, eq. 5 and 6"


@dataclass(frozen=True)
class TeirOptions(SharedTableOptions):
    """Adds TEIR's parts to the teaching options; each can be switched off (Table 3 of the paper)."""

    initialise: bool = True  # start new rows from the trained table's mean and deviation.
    scale_gradient: bool = True  # lambda on the gradient (or the step).
    scale_decay: bool = True  # lambda on the weight decay.
    # "grad" as in the paper, or "update" to scale Adam's step.
    apply_to: Annotated[str, OneOf("grad", "update")] = "grad"


class TeirRows(SharedRows):
    """Decides how new rows of the shared table start and how far each may move.

    `replayed` gives the pairs that are replayed beside the chunk's, where any are.
    """

    options: TeirOptions
    needs_table = True  # rows are all that TEIR is about, also before a strategy that could do without

    def __init__(
        self, options: TeirOptions, replayed: Callable[[UpdateContext], Sequence[TrainingPair]] | None = None
    ) -> None:
        super().__init__(options)
        self.apply_to = options.apply_to
        self.counts = torch.zeros(0, dtype=torch.int64)  # (rows,) c: the updates whose texts held a token
        self.lambdas = torch.zeros(0)  # (rows,) how far each row may move in this update
        self._replayed = replayed

    def first_values(self, table: Tensor) -> tuple[float, float]:
        """Returns the scalar mean and deviation of the trained table, or CLL-CLIP's when switched off."""
        return table_statistics(table) if self.options.initialise else super().first_values(table)

    def grow(self, vocabulary: Vocabulary, context: UpdateContext) -> Growth:
        """Grows the vocabulary, and marks the rows that this update's texts use."""
        before = vocabulary.size
        if len(self.counts) == 0:
            self.counts = torch.ones(before, dtype=torch.int64)  # the base vocabulary has been seen once
        growth = super().grow(vocabulary, context)
        # Rows that another strategy appended in between are new to TEIR: they count as never seen.
        self.counts = torch.cat(
            [self.counts, torch.zeros(vocabulary.size - len(self.counts), dtype=torch.int64)]
        )
        replayed = () if self._replayed is None else self._replayed(context)
        self._occurs = _rows_of(vocabulary, context.pairs)
        self._moves = self._occurs | _rows_of(vocabulary, replayed)
        self.lambdas = teir_scale(self._moves, self.counts)
        return growth

    def scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns lambda for the gradient and for the decay, or ones for a part that is switched off."""
        ones = torch.ones(rows)
        return (
            self.lambdas if self.options.scale_gradient else ones,
            self.lambdas if self.options.scale_decay else ones,
        )

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Counts this update for every row that its chunk used."""
        self.counts = self.counts + self._occurs.long()

    def notes(self) -> list[str]:
        moved, alone = int(self._moves.sum()), int((self._moves & ~self._occurs).sum())
        said = f"{moved} of {len(self.counts)} token rows could move"
        return [said + (f", {alone} of them for replayed pairs alone, which do not count." if alone else ".")]

    def carried(self) -> State:
        return State({COUNTS: self.counts}) if len(self.counts) else State()

    def carry(self, state: State) -> None:
        self.counts = state.tensors[COUNTS].clone()


def _rows_of_host(strategy: Extended) -> TeirRows:
    rows = strategy.host.rows = TeirRows(strategy.options, strategy.host.memory)
    return rows


def with_teir(kind: type[LanguageTeaching]) -> type[Strategy]:
    """Makes ``teir+<name>`` of a strategy that trains the shared token table."""
    name = f"teir+{kind.name}"
    return extended(
        kind,
        f"Teir{kind.__name__}",
        _rows_of_host,
        prefix="host.",
        __doc__=f"{name}: {kind.name} with TEIR's rows.\n\n{_page(kind)}",
        name=name,
        summary=f"{kind.name} that holds back the words other languages use, as teir does.",
        paper=f"{kind.paper}; with {PAPER}",
        keeps=also(kind.keeps, "how often each token was seen"),
        Options=make_dataclass(
            f"Teir{kind.Options.__name__}", [], bases=(TeirOptions, kind.Options), frozen=True
        ),
    )


def _page(kind: type[LanguageTeaching]) -> str:
    return (
        f"What {kind.name} trains, replays and keeps is as it is there; on the token table new rows start from the "
        "trained rows' distribution, and a row moves and decays by lambda, as in teir. Source: CLL-CLIP with TEIR "
        "(AAAI 2024), Table 2. Carried between updates: TEIR's counts, and apart from them what the strategy carries."
    )


def _rows_of(vocabulary: Vocabulary, pairs: Sequence[TrainingPair]) -> Tensor:
    grouped: dict[str, list[str]] = {}
    for pair in pairs:
        grouped.setdefault(pair.language, []).append(pair.text)
    sequences = [s for language, texts in sorted(grouped.items()) for s in vocabulary.encode(texts, language)]
    return occurring_rows(sequences, vocabulary.size, vocabulary.special_rows)
