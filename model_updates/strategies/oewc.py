"""oEWC: CLL-CLIP that pays for moving token rows that mattered before.

Idea: after each update measure how much each entry of the token table matters for its loss; in later updates moving an
entry by d costs ``lambda * F * d**2``.

Formula: ``L = L_cll + lambda * sum F (theta - theta*)**2`` without a half, theta* the table before the update, and
``F <- gamma * F + F_new`` after it, with lambda 1000 and gamma 1; rows that this update appends have F = 0. F_new is
the mean over batches of the squared gradient of L_cll in eval mode. Source: Schwarz et al., ICML 2018, as in CLL-CLIP
with TEIR (AAAI 2024), Table 2 (its library).

Where we differ: ``fisher_mode=sample`` squares each text's own gradient before the mean. The square of a batch's mean,
the reference's, is about as many times smaller as a batch has pairs where noise dominates, which ties lambda to the
batch size. A text's own gradient is what reaches the table through that text, so one backward pass a batch is enough.

Carried between updates: F. theta* needs no copy: it is the table before the update.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from model_updates.checked import NotNegative, OneOf, Share
from model_updates.pair_sets import Batch
from model_updates.parts.importance import fitted, mean_of_squared_gradients, quadratic_penalty
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.strategy import Epochs, Family, State, UpdateContext
from model_updates.towers import text_parts

TABLE = "table"


@dataclass(frozen=True)
class OewcOptions(SharedTableOptions):
    """Adds the penalty to the teaching options."""

    # lambda, the weight of the penalty, without a half (1000 in CLL-CLIP's library).
    strength: NotNegative = 1000.0
    gamma: Share = 1.0  # how much of the importance of before stays in each update (1 in CLL-CLIP's library).
    # "batch" squares the gradient of each batch, as the reference does, "sample" that of each text.
    fisher_mode: Annotated[str, OneOf("batch", "sample")] = "batch"


class Oewc(LanguageTeaching):
    """Online elastic weight consolidation of the token table."""

    name = "oewc"
    summary = "Trains the word table and holds back the rows that mattered for earlier languages."
    paper = "Schwarz et al., ICML 2018, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "a Fisher diagonal, as large as the token table"
    overhead = "one more pass over the chunk"
    options: OewcOptions

    def __init__(self, options: OewcOptions | None = None) -> None:
        super().__init__(options)
        self._fisher = torch.zeros(0, 0)

    def before_update(self, context: UpdateContext) -> None:
        """Grows the table as cll-clip does, and remembers where the important entries stand."""
        super().before_update(context)
        self._importance: dict[str, Tensor] = {}
        if len(self._fisher):
            self._importance = {TABLE: fitted(self._fisher, self._table)}
            self._stood = {TABLE: self._table.detach().clone()}

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns CLL-CLIP's terms and, from the second update on, the penalty."""
        terms = super().terms(batch)
        if self._importance:
            moved = quadratic_penalty({TABLE: self._table}, self._stood, self._importance)
            terms["consolidation"] = self.options.strength * moved
        return terms

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Measures what matters for this chunk and adds it to what mattered before."""
        losses = self._losses(batches, context)
        if self.options.fisher_mode == "batch":
            new = mean_of_squared_gradients({TABLE: self._table}, (loss for loss, _ in losses))[TABLE]
        else:
            new = mean_of_squared_sample_gradients(self._table, context.encoder.model, losses)
        before = fitted(self._fisher, new) if len(self._fisher) else torch.zeros_like(new)
        self._fisher = (self.options.gamma * before + new.nan_to_num()).cpu()
        self._importance, self._stood = {}, {}
        super().after_update(context, batches)

    def carried(self) -> State:
        return State({"fisher": self._fisher}) if len(self._fisher) else State()

    def carry(self, state: State) -> None:
        self._fisher = state.tensors["fisher"].clone()

    def _losses(self, batches: Epochs, context: UpdateContext) -> Iterator[tuple[Tensor, int]]:
        """Yields the task loss of each batch, without the penalty, and how many texts it is the mean of."""
        for batch in batches.epoch(context.seed):
            terms = super().terms(batch.to(context.encoder.device))
            yield torch.stack(list(terms.values())).sum(), len(batch.row)


def mean_of_squared_sample_gradients(
    table: Tensor, model: nn.Module, losses: Iterable[tuple[Tensor, int]]
) -> Tensor:
    """Returns the mean over texts of the squared gradient that reaches the table through each text.

    The table is (rows, width), and the model's `token_embedding` looks rows up, once a batch or more. Each batch's mean
    loss, computed as it is asked for, comes with the number of texts it is the mean of.
    """
    total, texts = torch.zeros_like(table), 0
    with _looked_up(model) as seen:
        for loss, count in losses:
            gradients = torch.autograd.grad(loss, [embedded for _, embedded in seen])
            for (tokens, _), gradient in zip(seen, gradients, strict=True):
                _add_squares(total, tokens, count * gradient.detach())
            texts += count
            seen.clear()
    return total / max(1, texts)


def _add_squares(total: Tensor, tokens: Tensor, gradient: Tensor) -> None:
    """Adds, for each text, the square of its gradient at each row: a row that it says twice has one gradient."""
    texts = torch.arange(len(tokens), device=tokens.device)[:, None]
    cells, place = torch.unique(texts * len(total) + tokens, return_inverse=True)
    sums = total.new_zeros(len(cells), total.shape[1])
    sums.index_add_(0, place.flatten(), gradient.flatten(0, 1))
    total.index_add_(0, cells % len(total), sums.square())


@contextmanager
def _looked_up(model: nn.Module) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """Collects the tokens (n, length) and embedded tokens (n, length, width) of every look-up in the block."""
    seen: list[tuple[Tensor, Tensor]] = []

    def keep(_: nn.Module, given: tuple[Any, ...], embedded: Tensor) -> None:
        seen.append((given[0], embedded))

    embedding: nn.Module = text_parts(model).token_embedding  # type: ignore[assignment]
    handle = embedding.register_forward_hook(keep)
    try:
        yield seen
    finally:
        handle.remove()
