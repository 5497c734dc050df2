"""Teaching a language through the token table alone: what cll-clip, teir and language-tables share.

Both towers stay frozen; pictures and English captions come as cached features, so a step costs one text
forward. The losses are CLL-CLIP's (AAAI 2024, section 3): ``L = g1 * L_cm + g2 * L_cl`` with
L_cm the contrastive loss between picture and text under a learned temperature that starts anew at 0.07, and
L_cl the mean over all elements of the squared difference to the English caption's raw feature.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ingest.pair import BASE_LANGUAGE
from model_updates.byte_pairs import Merge, learn_merges
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption, ForeignTokenizer
from model_updates.losses import element_mse, multi_positive_info_nce
from model_updates.pairs import Batch
from model_updates.parts.own_rows import close_rows, open_rows
from model_updates.parts.token_table import ScaledRows, start_new_rows
from model_updates.prospect import Prospect
from model_updates.strategy import (
    Epochs,
    ParameterGroup,
    Schedule,
    Strategy,
    UpdateContext,
    check_run,
)
from model_updates.towers import is_small, resize_token_table, token_table, why_fixed
from model_updates.vocabulary import Growth, Vocabulary

PAPER_CROSS_MODAL = 0.01
EPOCHS = 15
# Tried on invented languages (docs/log.md): held-out captions found among ten 53 % at 1e-3, 60 at 9e-3, 61 at 2e-2,
# 60 at 4e-2; twice the epochs find no more of them.
FOREIGN_EPOCHS, FOREIGN_RATE = 3, 2e-2
FIRST_TEMPERATURE = 0.07
TEMPERATURES = (0.001, 0.5)


@dataclass(frozen=True)
class TeachingOptions:
    """Options of every strategy that trains the token table.

    Attributes:
        epochs: passes over the chunk; 0 means the default for the encoder. The paper takes 3 on 616,767 captions;
            small chunks need more, 15; where the body is foreign and rows start from translations, 3 will do, and 10
            where they start from nothing.
        batch_size: pairs per step (paper: 128).
        learning_rate: 0 means the default for the encoder's size (5e-5 in the paper for ViT-B/16).
        weight_decay: on rows that may move (paper: 0.05).
        cross_modal: weight of the picture-text term (paper: 0.01).
        cross_lingual: weight of the term towards the English caption (paper: 1).
        vocabulary: BPE entries learned on a language's captions (paper: 10,000).
    """

    epochs: int = 0
    batch_size: int = 128
    learning_rate: float = 0.0
    weight_decay: float = 0.05
    cross_modal: float = PAPER_CROSS_MODAL
    cross_lingual: float = 1.0
    vocabulary: int = 10_000

    def __post_init__(self) -> None:
        check_run(self.epochs or 1, self.batch_size, self.learning_rate, self.weight_decay)
        if self.cross_modal < 0 or self.cross_lingual < 0 or self.cross_modal + self.cross_lingual == 0:
            raise BadStrategyOption(
                "cross_modal and cross_lingual are weights: not negative, and at least one above zero; got "
                f"{self.cross_modal} and {self.cross_lingual}"
            )
        if self.vocabulary <= 512:
            raise BadStrategyOption(f"vocabulary counts the 512 byte symbols too; got {self.vocabulary}")


class LanguageTeaching(Strategy):
    """Base of the strategies that train rows of the token table and nothing else.

    Attributes:
        grows_shared: whether new words join the table that all languages share.
    """

    Options = TeachingOptions
    quick = {"epochs": 2, "batch_size": 8, "vocabulary": 560}
    options: TeachingOptions
    grows_shared: ClassVar[bool] = True
    _in_update = False
    _rows: ScaledRows | None = None  # of the table that trains; None where none does

    @property
    def touches_image(self) -> bool:
        """Never: the image tower is frozen, the generation stays valid."""
        return False

    @property
    def touches_text(self) -> bool:
        """Always: token rows move."""
        return True

    # ------------------------------------------------------- what subclasses say

    @abstractmethod
    def grow(
        self, vocabulary: Vocabulary, merges: dict[str, tuple[Merge, ...]], context: UpdateContext
    ) -> Growth:
        """Grows the vocabulary by each language's merges and says where the new rows start from."""

    @abstractmethod
    def row_scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns the gradient and decay scale of each row, (rows,) float32 each."""

    def merges(self, context: UpdateContext) -> dict[str, tuple[Merge, ...]]:
        """Returns a BPE learned on the captions of each language of the chunk."""
        return {
            language: learn_merges(sorted(texts), size=self.options.vocabulary)
            for language, texts in sorted(context.texts_by_language().items())
        }

    def first_values(self, table: Tensor) -> tuple[float, float]:
        """Returns mean and standard deviation of rows that start from nothing (CLL-CLIP: 0 and 0.02)."""
        return 0.0, 0.02

    def start_rows(self, table: nn.Parameter, growth: Growth, generator: torch.Generator) -> None:
        """Fills the new rows in place: a copy of the row each overlaps, else drawn around `first_values`."""
        mean, std = self._first
        start_new_rows(table, growth, mean=mean, std=std, generator=generator)

    def own_rows(self) -> Tensor | None:
        """Returns the rows (o,) that alone may move, so that they alone cost moments; None: `row_scales` decide."""
        return None

    @property
    def apply_to(self) -> str:
        """Whether row scales act on the gradient or on the step."""
        return "grad"

    # ------------------------------------------------------------------- hooks

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a tokenizer that is not ours to grow, and a chunk in the base's language alone."""
        vocabulary = prospect.encoder.vocabulary
        if vocabulary is None or token_table(prospect.encoder.model) is None:
            return _foreign(self.name, prospect.encoder)
        if self.grows_shared and vocabulary.segmenter is not None:
            return vocabulary.cannot_grow
        return self.no_language(prospect)

    def no_language(self, prospect: Prospect) -> str | None:
        """Says that a chunk is in the base's language alone; None where it is not."""
        if prospect.languages <= {BASE_LANGUAGE}:
            return (
                f"this chunk has captions in {BASE_LANGUAGE} alone, the language that every encoder begins with, so "
                f"{self.name} has no language to teach. Leave the strategy out, and one that fits is chosen"
            )
        return None

    def before_update(self, context: UpdateContext) -> None:
        """Freezes the towers, grows vocabulary and table, and decides how far each row may move."""
        encoder, vocabulary = context.encoder, context.encoder.vocabulary
        if vocabulary is None:
            raise ForeignTokenizer(_foreign(self.name, encoder))
        self._encoder = encoder
        encoder.model.requires_grad_(False)
        before = token_table(encoder.model)
        if before is None:
            raise ForeignTokenizer(f"{encoder.architecture} has no token table to train")
        self._first = self.first_values(before)
        growth = self.grow(vocabulary, self.merges(context), context)
        table = resize_token_table(encoder.model, vocabulary.size)
        self.start_rows(table, growth, torch.Generator().manual_seed(context.seed))
        encoder.forget_fingerprints()
        self.new_rows = len(growth.new_rows)
        self.begin(encoder, of_unit_length=vocabulary.segmenter is not None)
        table.requires_grad_(True)
        self._train(table)

    def begin(self, encoder: Encoder, *, of_unit_length: bool) -> None:
        """Starts the temperature anew and says how much the terms count.

        Args:
            encoder: the candidate.
            of_unit_length: whether the text tower gives out unit vectors.
        """
        self._encoder = encoder
        self._scale = nn.Parameter(torch.tensor(math.log(1 / FIRST_TEMPERATURE), device=encoder.device))
        self._in_update = True
        # The weights are the paper's, for CLIP's raw features. Of unit vectors the terms count in full, and the squared
        # distance is summed and halved (1 - cosine) and not averaged over the elements.
        self._factors = (1 / PAPER_CROSS_MODAL, encoder.dim / 2) if of_unit_length else (1.0, 1.0)

    def _train(self, table: nn.Parameter) -> None:
        gradient_scale, decay_scale = self.row_scales(len(table))
        own = self.own_rows()
        if own is not None:
            table.requires_grad_(False)
            table = open_rows(self._encoder.model, own)
            gradient_scale, decay_scale = gradient_scale[own], decay_scale[own]
        self._table = table
        self._rows = ScaledRows(
            table,
            gradient_scale=gradient_scale,
            decay_scale=decay_scale,
            weight_decay=self.options.weight_decay,
            apply_to=self.apply_to,
        )

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the table (its decay is applied row by row) and the temperature of this update."""
        table = [] if self._rows is None else [ParameterGroup([self._table], weight_decay=0.0)]
        return [*table, ParameterGroup([self._scale], weight_decay=0.0)]

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns a constant rate after warm-up (paper); small encoders take a larger one, foreign bodies a cosine."""
        small = is_small(encoder.dim)
        if encoder.vocabulary is not None and encoder.vocabulary.segmenter is not None:
            epochs, rate, decay = FOREIGN_EPOCHS, FOREIGN_RATE, "cosine"
        else:
            epochs, rate, decay = EPOCHS, 2e-3 if small else 5e-5, "constant"
        return Schedule(
            epochs=self.options.epochs or epochs,
            batch_size=self.options.batch_size,
            learning_rate=self.options.learning_rate or rate,
            weight_decay=self.options.weight_decay,
            decay=decay,
        )

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the cross-modal term and, where English captions are known, the cross-lingual one."""
        text = self.text_features(batch)
        terms = {"cross-modal": self.cross_modal(text, batch)}
        if batch.has_english is not None:
            terms["cross-lingual"] = self.cross_lingual(text, batch, batch.has_english)
        return terms

    def text_features(self, batch: Batch) -> Tensor:
        """Returns raw (b, dim) features of the batch's texts under the table as it is now."""
        return self._encoder.forward_tokens(batch.tokens, batch.languages).float()

    def cross_modal(self, text: Tensor, batch: Batch) -> Tensor:
        """Returns the weighted contrastive loss between texts and pictures."""
        similarities = normalize(batch.image_features, dim=-1) @ normalize(text, dim=-1).T
        contrast = multi_positive_info_nce(
            similarities, self._scale.exp(), batch.image_index, batch.image_index
        )
        return self._factors[0] * self.options.cross_modal * contrast

    def cross_lingual(self, text: Tensor, batch: Batch, chosen: Tensor) -> Tensor:
        """Returns the weighted distance of some rows (b,) to their English captions' features.

        Zero, not absent, in a batch without an English caption: an average over batches stays one.
        """
        if batch.english_features is None:
            raise ValueError("this batch holds no English features")
        return (
            self._factors[1] * self.options.cross_lingual * element_mse(text, batch.english_features, chosen)
        )

    def after_backward(self) -> None:
        """Scales gradients and decay row by row."""
        if self._rows is not None:
            self._rows.after_backward(self.learning_rate)

    def after_step(self) -> None:
        """Scales the step where asked, and keeps the temperature in its range."""
        if self._rows is not None:
            self._rows.after_step()
        with torch.no_grad():
            self._scale.clamp_(math.log(1 / TEMPERATURES[1]), math.log(1 / TEMPERATURES[0]))

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Ends the update; the next one starts with a temperature of its own."""
        close_rows(self._encoder.model)
        self._in_update = False

    def progress(self) -> dict[str, Tensor]:
        """Returns the temperature, which the next update resets."""
        return {"log_scale": self._scale.detach().clone()} if self._in_update else {}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes the temperature back."""
        with torch.no_grad():
            self._scale.copy_(progress["log_scale"])


def _foreign(strategy: str, encoder: Encoder) -> str:
    return (
        f"the text tower of {encoder.architecture} {why_fixed(encoder.model)}, so its vocabulary cannot grow, and "
        f"{strategy} grows it. Use finetune or c-clip, or an encoder with a text tower built like CLIP's"
    )
