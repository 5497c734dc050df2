"""Training both towers whole on new pairs: what finetune and the methods that add a term to it share.

The loss is the symmetric InfoNCE (CLIP, 2021) with several captions of one picture as positives, under the model's own
temperature. AdamW with a cosine schedule; vectors and the temperature do not decay.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from model_updates.checked import BatchSize, Checked, Count, NotNegative
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.losses import LARGEST_LOG_SCALE, multi_positive_info_nce
from model_updates.pair_sets import Batch
from model_updates.prospect import Prospect
from model_updates.strategy import ParameterGroup, Schedule, Strategy, UpdateContext
from model_updates.towers import is_small


def contrastive(encoder: Encoder, batch: Batch, *, smoothing: float = 0.0) -> Tensor:
    """Returns the contrastive loss of a batch under both towers as they are now."""
    return contrast(encoder, *unit_features(encoder, batch), batch, smoothing=smoothing)


def unit_features(encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Returns the (b, dim) unit image and text features of a batch under both towers as they are now."""
    image, text = raw_features(encoder, batch)
    return normalize(image, dim=-1), normalize(text, dim=-1)


def raw_features(encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Returns the (b, dim) float32 image and text features of a batch, not normalised."""
    if batch.images is None:
        raise ValueError("the image tower is to run, and there are no pictures in the batch")
    image = encoder.forward_images(batch.images, batch.domains).float()
    return image, encoder.forward_tokens(batch.tokens, batch.languages).float()


def contrast(
    encoder: Encoder, image: Tensor, text: Tensor, batch: Batch, *, smoothing: float = 0.0
) -> Tensor:
    """Returns the contrastive loss of (b, dim) unit features; all columns of a row share `smoothing` of its target."""
    scale, similarities = inverse_temperature(encoder), image @ text.T
    sharp = multi_positive_info_nce(similarities, scale, batch.image_index, batch.image_index)
    if not smoothing:
        return sharp
    return (1 - smoothing) * sharp + smoothing * even_cross_entropy(scale * similarities)


def inverse_temperature(encoder: Encoder) -> Tensor:
    """Returns the model's inverse temperature, which may train."""
    scale: Tensor = encoder.model.logit_scale  # type: ignore[assignment]
    return scale.exp()


def even_cross_entropy(logits: Tensor) -> Tensor:
    """Returns the cross-entropy of rows and of columns against even targets, averaged: what smooths labels."""
    rows, columns = log_softmax(logits, dim=1).mean(), log_softmax(logits, dim=0).mean()
    return -(rows + columns) / 2


@dataclass(frozen=True)
class RunOptions(Checked):
    """Options of strategies whose rate falls in a cosine."""

    epochs: Count = 10  # passes over the chunk.
    batch_size: BatchSize = 128  # pairs per step.
    learning_rate: NotNegative = 0.0  # of the peak; 0 means the default for the encoder's size.

    def cosine(self, encoder: Encoder, *, small: float, large: float, **more: Any) -> Schedule:
        """Returns a cosine schedule; small encoders take a larger rate by default."""
        rate = self.learning_rate or (small if is_small(encoder.dim) else large)
        return Schedule(self.epochs, self.batch_size, rate, decay="cosine", **more)


@dataclass(frozen=True)
class TwoTowerOptions(RunOptions):
    """Options of every strategy that trains both towers."""

    weight_decay: NotNegative = 0.05  # on matrices; vectors and the temperature have none.


class TwoTowers(Strategy):
    """Base of the strategies that train every parameter; `before_update` sets the encoder."""

    options: TwoTowerOptions
    _encoder: Encoder

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses an encoder that compares pictures with texts of two spaces."""
        return two_spaces(self.name, prospect.encoder)

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter of the model train; inserts of routes stay as they are.

        Raises:
            BadStrategyOption: the encoder compares pictures with texts of two spaces.
        """
        require_one_space(self.name, context.encoder)
        self._encoder = context.encoder
        context.encoder.model.requires_grad_(True)
        super().before_update(context)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns matrices with the schedule's decay; vectors and the temperature without."""
        return groups_of(self._encoder)

    def schedule(self, encoder: Encoder) -> Schedule:
        return self.options.cosine(encoder, small=3e-4, large=1e-5, weight_decay=self.options.weight_decay)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term, the distance to the old features where there is one, and the parts' terms."""
        new = raw_features(self._encoder, batch)
        image, text = (normalize(rows, dim=-1) for rows in new)
        terms = {"contrastive": contrast(self._encoder, image, text, batch)}
        kept = self.distillation(new, batch)
        if kept is not None:
            terms["distillation"] = kept
        return terms | super().terms(batch)

    def distillation(self, new: tuple[Tensor, Tensor], batch: Batch) -> Tensor | None:
        """Returns a weighted term that compares raw image and text features, (b, dim) each, with old ones."""
        return None

    def after_step(self) -> None:
        clamp_scale(self._encoder)
        super().after_step()


def two_spaces(strategy: str, encoder: Encoder) -> str | None:
    """Says that texts lie in two spaces, one of which no training reaches, and what to do; None where they do not."""
    if encoder.second is None:
        return None
    return (
        f"{strategy} trains one text tower beside the image tower, and {encoder.architecture} reads texts by two. Use "
        "evergreen, language-tables for a language, or ridge-heads for pictures"
    )


def require_one_space(strategy: str, encoder: Encoder) -> None:
    """Refuses what `two_spaces` says.

    Raises:
        BadStrategyOption: texts lie in two spaces.
    """
    reason = two_spaces(strategy, encoder)
    if reason is not None:
        raise BadStrategyOption(reason)


def groups_of(encoder: Encoder) -> list[ParameterGroup]:
    """Returns every parameter of a model: matrices with the schedule's decay, vectors and the temperature without."""
    parameters = list(encoder.model.parameters())
    return [
        ParameterGroup([p for p in parameters if p.ndim >= 2]),
        ParameterGroup([p for p in parameters if p.ndim < 2], weight_decay=0.0),
    ]


def clamp_scale(encoder: Encoder) -> None:
    """Keeps the temperature in CLIP's range."""
    scale: Tensor = encoder.model.logit_scale  # type: ignore[assignment]
    with torch.no_grad():
        scale.clamp_(0, LARGEST_LOG_SCALE)
