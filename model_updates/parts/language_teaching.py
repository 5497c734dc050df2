"""Teaching a language through the token table: what every strategy does that grows a vocabulary.

Both towers stay frozen; pictures and English captions come as cached features, so a step costs one text
forward. The losses are CLL-CLIP's (AAAI 2024, section 3): ``L = g1 * L_cm + g2 * L_cl`` with
L_cm the contrastive loss between picture and text under a learned temperature that starts anew at 0.07, and
L_cl the mean over all elements of the squared difference to the English caption's raw feature.

Which rows there are and how far each may move is up to `Rows`. A strategy may give each language a module beside the
table (`LanguageModules`). Behind a foreign text tower, whose table cannot grow, the modules are then all that trains.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.errors import ForeignTokenizer
from model_updates.losses import element_mse, multi_positive_info_nce
from model_updates.pair_sets import Batch
from model_updates.parts.language_modules import LanguageModules
from model_updates.parts.own_rows import close_rows, open_rows
from model_updates.parts.shared_table import SharedRows
from model_updates.parts.table_rows import PAPER_CROSS_MODAL, Rows, ScaledRows, TeachingOptions
from model_updates.parts.text_blocks import no_text_blocks
from model_updates.prospect import Prospect
from model_updates.strategy import Epochs, ParameterGroup, Schedule, Strategy, UpdateContext
from model_updates.towers import is_small, resize_token_table, text_tower, token_table, why_fixed

EPOCHS = 15
# Tried on invented languages (docs/log.md): held-out captions found among ten 53 % at 1e-3, 60 at 9e-3, 61 at 2e-2,
# 60 at 4e-2; twice the epochs find no more of them.
FOREIGN_EPOCHS, FOREIGN_RATE = 3, 2e-2
# Of modules that learn a language without the table: where low-rank deltas are commonly trained, and more for small
# towers, as everywhere. Neither was tuned on captions yet.
MODULES_RATE, SMALL_MODULES_RATE = 1e-3, 1e-2
FIRST_TEMPERATURE = 0.07
TEMPERATURES = (0.001, 0.5)
UNIT_LENGTH = 1e-3
"""How far from 1 a feature's length may lie to count as a unit vector's."""


class LanguageTeaching(Strategy):
    """Base of the strategies that train rows of the token table."""

    touches = frozenset({"text"})
    options: TeachingOptions
    # how the table grows and trains; as in CLL-CLIP where nothing else is said
    rows_kind: ClassVar[type[Rows]] = SharedRows
    modules: LanguageModules | None = None  # of each language, where the strategy gives them any
    _in_update = False
    _scaled: ScaledRows | None = None  # of the table that trains; None where none does

    def __init__(self, options: TeachingOptions | None = None) -> None:
        super().__init__(options)
        self.rows = self.rows_kind(self.options)  # that of this object

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a tokenizer that is not ours to grow, and a chunk in the base's language alone."""
        encoder, vocabulary = prospect.encoder, prospect.encoder.vocabulary
        if self.modules is not None and self.leaves_table(encoder):
            return self.modules.no_place(self.name, encoder) or self.no_language(prospect)
        if vocabulary is None or token_table(encoder.model) is None:
            return _foreign(self.name, encoder)
        if self.rows.grows_shared and vocabulary.segmenter is not None:
            return vocabulary.cannot_grow
        unfit = self.no_language(prospect)
        return unfit if unfit or self.modules is None else no_text_blocks(self.name, encoder)

    def no_language(self, prospect: Prospect) -> str | None:
        """Says that a chunk is in the base's language alone; None where it is not."""
        if prospect.languages <= {BASE_LANGUAGE}:
            return (
                f"this chunk has captions in {BASE_LANGUAGE} alone, the language that every encoder begins with, so "
                f"{self.name} has no language to teach. Leave the strategy out, and one that fits is chosen"
            )
        return None

    def leaves_table(self, encoder: Encoder) -> bool:
        """Whether modules are all that would train, because the table of an encoder cannot grow."""
        return self.modules is not None and not self.rows.needs_table and not has_own_table(encoder)

    def before_update(self, context: UpdateContext) -> None:
        """Freezes the towers, grows vocabulary and table where it can, and decides how far each row may move."""
        encoder = self._encoder = context.encoder
        if self.modules is not None and self.leaves_table(encoder):
            refused = self.modules.no_place(self.name, encoder)
            if refused is not None:
                raise ForeignTokenizer(refused)
            encoder.model.requires_grad_(False)
            self._scaled = None
            self.begin(encoder, of_unit_length=_gives_unit_vectors(encoder))
        else:
            self._grow(context)
        super().before_update(context)

    def _grow(self, context: UpdateContext) -> None:
        encoder, vocabulary = context.encoder, context.encoder.vocabulary
        if vocabulary is None:
            raise ForeignTokenizer(_foreign(self.name, encoder))
        encoder.model.requires_grad_(False)
        before = token_table(encoder.model)
        if before is None:
            raise ForeignTokenizer(f"{encoder.architecture} has no token table to train")
        first = self.rows.first_values(before)
        growth = self.rows.grow(vocabulary, context)
        table = resize_token_table(encoder.model, vocabulary.size)
        self.rows.start(table, growth, torch.Generator().manual_seed(context.seed), first)
        encoder.forget_fingerprints()
        self.begin(encoder, of_unit_length=vocabulary.segmenter is not None)
        table.requires_grad_(True)
        self._train(table)

    def begin(self, encoder: Encoder, *, of_unit_length: bool) -> None:
        """Starts the temperature anew and says how much the terms count."""
        self._encoder = encoder
        self._scale = nn.Parameter(torch.tensor(math.log(1 / FIRST_TEMPERATURE), device=encoder.device))
        self._in_update = True
        # The weights are the paper's, for CLIP's raw features. Of unit vectors the terms count in full, and the squared
        # distance is summed and halved (1 - cosine) and not averaged over the elements.
        self._factors = (1 / PAPER_CROSS_MODAL, encoder.tower_dim / 2) if of_unit_length else (1.0, 1.0)

    def _train(self, table: nn.Parameter) -> None:
        gradient_scale, decay_scale = self.rows.scales(len(table))
        own = self.rows.own()
        if own is not None:
            table.requires_grad_(False)
            table = open_rows(self._encoder.model, own)
            gradient_scale, decay_scale = gradient_scale[own], decay_scale[own]
        self._table = table
        self._scaled = ScaledRows(
            table,
            gradient_scale=gradient_scale,
            decay_scale=decay_scale,
            weight_decay=self.options.weight_decay,
            apply_to=self.rows.apply_to,
        )

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the table, whose decay is applied row by row, the temperature of this update, and the parts'."""
        table = [] if self._scaled is None else [ParameterGroup([self._table], weight_decay=0.0)]
        return [*table, ParameterGroup([self._scale], weight_decay=0.0), *super().parameter_groups()]

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns a constant rate (paper), larger for small encoders; foreign bodies and modules take a cosine."""
        small = is_small(encoder.dim)
        if self.leaves_table(encoder):
            epochs, rate, decay = EPOCHS, SMALL_MODULES_RATE if small else MODULES_RATE, "cosine"
        elif encoder.vocabulary is not None and encoder.vocabulary.segmenter is not None:
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
        """Returns raw (b, dim) features of the batch's texts; a tower without a table of ours reads as in search."""
        if self._scaled is None:
            text_tower(self._encoder.model).eval()
        return self._encoder.forward_tokens(batch.tokens, batch.languages).float()

    def cross_modal(self, text: Tensor, batch: Batch) -> Tensor:
        """Returns the weighted contrastive loss between texts and pictures."""
        similarities = (
            normalize(self._encoder.tower_part(batch.image_features), dim=-1) @ normalize(text, dim=-1).T
        )
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
        english = self._encoder.tower_part(batch.english_features)
        return self._factors[1] * self.options.cross_lingual * element_mse(text, english, chosen)

    def after_backward(self, learning_rate: float) -> None:
        if self._scaled is not None:
            self._scaled.after_backward(learning_rate)

    def after_step(self) -> None:
        """Scales the step where asked, and keeps the temperature in its range."""
        if self._scaled is not None:
            self._scaled.after_step()
        with torch.no_grad():
            self._scale.clamp_(math.log(1 / TEMPERATURES[1]), math.log(1 / TEMPERATURES[0]))

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Ends the update; the next one starts with a temperature of its own."""
        close_rows(self._encoder.model)
        self._in_update = False
        super().after_update(context, batches)

    def notes(self) -> list[str]:
        alone = "The words of this text tower cannot grow, so the modules are all that learned."
        return [*([alone] if self._scaled is None else self.rows.said()), *super().notes()]

    def progress(self) -> dict[str, Tensor]:
        """Returns the temperature, which the next update resets."""
        own = {"log_scale": self._scale.detach().clone()} if self._in_update else {}
        return own | super().progress()

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            self._scale.copy_(progress["log_scale"])
        super().load_progress(progress)


def has_own_table(encoder: Encoder) -> bool:
    """Whether the vocabulary of an encoder is ours to grow."""
    return encoder.vocabulary is not None and encoder.vocabulary.segmenter is None


def _gives_unit_vectors(encoder: Encoder) -> bool:
    with torch.inference_mode():
        (feature,) = encoder.forward_tokens(encoder.tokenize(["a picture"], BASE_LANGUAGE), BASE_LANGUAGE)
    return abs(float(feature.norm()) - 1) < UNIT_LENGTH


def _foreign(strategy: str, encoder: Encoder) -> str:
    return (
        f"the text tower of {encoder.architecture} {why_fixed(encoder.model)}, so its vocabulary cannot grow, and "
        f"{strategy} grows it. Use finetune or c-clip, or an encoder with a text tower built like CLIP's"
    )
