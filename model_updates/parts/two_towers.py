"""Training both towers whole on new pairs: what finetune and the methods that add a term to it share.

The loss is the symmetric InfoNCE (CLIP, 2021) with several captions of one picture as positives, under the model's own
temperature. AdamW with a cosine schedule; vectors and the temperature do not decay.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.encoder import Encoder
from model_updates.losses import LARGEST_LOG_SCALE, multi_positive_info_nce
from model_updates.pairs import Batch
from model_updates.strategy import ParameterGroup, Schedule, Strategy, UpdateContext, check_run
from model_updates.towers import is_small


@dataclass(frozen=True)
class TwoTowerOptions:
    """Options of every strategy that trains both towers.

    Attributes:
        epochs: passes over the chunk.
        batch_size: pairs per step.
        learning_rate: of the peak; 0 means the default for the encoder's size.
        weight_decay: on matrices; vectors and the temperature have none.
    """

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 0.0
    weight_decay: float = 0.05

    def __post_init__(self) -> None:
        check_run(self.epochs, self.batch_size, self.learning_rate, self.weight_decay)


class TwoTowers(Strategy):
    """Base of the strategies that train every parameter."""

    Options = TwoTowerOptions
    options: TwoTowerOptions

    @property
    def touches_image(self) -> bool:
        """Always: the image tower trains."""
        return True

    @property
    def touches_text(self) -> bool:
        """Always: the text tower trains."""
        return True

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter of the model train; inserts of routes stay as they are."""
        self._encoder = context.encoder
        context.encoder.model.requires_grad_(True)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns matrices with the schedule's decay; vectors and the temperature without."""
        return groups_of(self._encoder)

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns a cosine schedule; small encoders take a larger rate."""
        return Schedule(
            epochs=self.options.epochs,
            batch_size=self.options.batch_size,
            learning_rate=self.options.learning_rate or (3e-4 if is_small(encoder.dim) else 1e-5),
            weight_decay=self.options.weight_decay,
            decay="cosine",
        )

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term."""
        return {"contrastive": self.contrastive(batch)}

    def contrastive(self, batch: Batch, encoder: Encoder | None = None) -> Tensor:
        """Returns the contrastive loss of the batch under both towers as they are now, or under another encoder's."""
        if encoder is None or encoder is self._encoder:
            return self.contrast(*self.unit_features(batch), batch)
        own, self._encoder = self._encoder, encoder
        try:
            return self.contrast(*self.unit_features(batch), batch)
        finally:
            self._encoder = own

    def unit_features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns the (b, dim) unit image and text features of the batch under both towers as they are now."""
        image, text = self.raw_features(batch)
        return normalize(image, dim=-1), normalize(text, dim=-1)

    def raw_features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Returns the (b, dim) float32 image and text features of the batch, not normalised."""
        if batch.images is None:
            raise ValueError(f"{self.name} trains the image tower and needs pictures in its batches")
        image = self._encoder.forward_images(batch.images, batch.domains).float()
        return image, self._encoder.forward_tokens(batch.tokens, batch.languages).float()

    def contrast(self, image: Tensor, text: Tensor, batch: Batch) -> Tensor:
        """Returns the contrastive loss of (b, dim) unit features of the batch, under the model's temperature."""
        return multi_positive_info_nce(image @ text.T, self.scale, batch.image_index, batch.image_index)

    @property
    def scale(self) -> Tensor:
        """The model's inverse temperature."""
        scale: Tensor = self._encoder.model.logit_scale  # type: ignore[assignment]
        return scale.exp()

    def after_step(self) -> None:
        """Keeps the temperature in CLIP's range."""
        clamp_scale(self._encoder)


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
