"""Plain sequential fine-tuning: both towers, every parameter, the contrastive loss alone.

Idea: keep training the whole model on the new chunk. It learns fastest and forgets most; every other strategy
is measured against it. Loss: symmetric InfoNCE (CLIP, 2021) with several captions of one picture as positives.
Source: the "SeqF" baseline of CTP (ICCV 2023) and the "FT" of C-CLIP (ICLR 2025). It keeps nothing between
updates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.encoder import Encoder
from model_updates.losses import multi_positive_info_nce
from model_updates.pairs import Batch
from model_updates.strategy import ParameterGroup, Schedule, Strategy, UpdateContext, check_run


@dataclass(frozen=True)
class FinetuneOptions:
    """Options of `finetune`; a learning rate of 0 means the default for the encoder's size."""

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 0.0
    weight_decay: float = 0.05

    def __post_init__(self) -> None:
        check_run(self.epochs, self.batch_size, self.learning_rate, self.weight_decay)


class Finetune(Strategy):
    """Trains everything on the new pairs."""

    name = "finetune"
    summary = "Trains both towers on the new pairs and protects nothing; the yardstick for forgetting."
    paper = "sequential fine-tuning, the SeqF baseline of CTP (ICCV 2023)"
    Options = FinetuneOptions
    options: FinetuneOptions

    @property
    def touches_image(self) -> bool:
        """Always: the image tower trains."""
        return True

    @property
    def touches_text(self) -> bool:
        """Always: the text tower trains."""
        return True

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train."""
        self._encoder = context.encoder
        context.encoder.model.requires_grad_(True)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns matrices with the schedule's decay; vectors and the temperature without."""
        parameters = list(self._encoder.model.parameters())
        return [
            ParameterGroup([p for p in parameters if p.ndim >= 2]),
            ParameterGroup([p for p in parameters if p.ndim < 2], weight_decay=0.0),
        ]

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns a cosine schedule; small encoders take a larger rate."""
        small = encoder.dim < 256
        return Schedule(
            epochs=self.options.epochs,
            batch_size=self.options.batch_size,
            learning_rate=self.options.learning_rate or (3e-4 if small else 1e-5),
            weight_decay=self.options.weight_decay,
            decay="cosine",
        )

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term."""
        if batch.images is None:
            raise ValueError("finetune trains the image tower and needs pictures in its batches")
        image = normalize(self._encoder.forward_images(batch.images).float(), dim=-1)
        text = normalize(self._encoder.forward_tokens(batch.tokens).float(), dim=-1)
        scale: Tensor = self._encoder.model.logit_scale  # type: ignore[assignment]
        loss = multi_positive_info_nce(image @ text.T, scale.exp(), batch.image_index, batch.image_index)
        return {"contrastive": loss}

    def after_step(self) -> None:
        """Keeps the temperature in CLIP's range."""
        scale: Tensor = self._encoder.model.logit_scale  # type: ignore[assignment]
        with torch.no_grad():
            scale.clamp_(0, math.log(100))
