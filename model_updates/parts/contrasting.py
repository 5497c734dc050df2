"""Running both towers on a batch and contrasting what they give out: what every strategy shares that moves both.

The loss is the symmetric InfoNCE (CLIP, 2021) with several captions of one picture as positives, under the model's own
temperature.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from model_updates.encoder import Encoder
from model_updates.losses import multi_positive_info_nce
from model_updates.pairs import Batch
from model_updates.strategy import Strategy


class Contrasting(Strategy):
    """Base of the strategies that run both towers at each step; `before_update` sets the encoder."""

    _encoder: Encoder

    @property
    def touches_image(self) -> bool:
        """Always: the image side trains."""
        return True

    @property
    def touches_text(self) -> bool:
        """Always: the text side trains."""
        return True

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

    def contrast(self, image: Tensor, text: Tensor, batch: Batch, *, smoothing: float = 0.0) -> Tensor:
        """Returns the contrastive loss of (b, dim) unit features of the batch, under the model's temperature.

        Args:
            image: unit image features.
            text: unit text features.
            batch: says which belong together.
            smoothing: share of the targets that all columns of a row get alike.
        """
        similarities = image @ text.T
        sharp = multi_positive_info_nce(similarities, self.scale, batch.image_index, batch.image_index)
        if not smoothing:
            return sharp
        return (1 - smoothing) * sharp + smoothing * even_cross_entropy(self.scale * similarities)

    @property
    def scale(self) -> Tensor:
        """The model's inverse temperature."""
        scale: Tensor = self._encoder.model.logit_scale  # type: ignore[assignment]
        return scale.exp()


def even_cross_entropy(logits: Tensor) -> Tensor:
    """Returns the cross-entropy of rows and of columns against even targets, averaged: what smooths labels."""
    rows, columns = log_softmax(logits, dim=1).mean(), log_softmax(logits, dim=0).mean()
    return -(rows + columns) / 2
