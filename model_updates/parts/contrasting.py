"""Running both towers on a batch and contrasting what they give out: what every strategy shares that moves both.

The loss is the symmetric InfoNCE (CLIP, 2021) with several captions of one picture as positives, under the model's own
temperature.
"""

from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from model_updates.encoder import Encoder
from model_updates.losses import multi_positive_info_nce
from model_updates.pairs import Batch


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
    """Returns the contrastive loss of (b, dim) unit features of a batch, under the model's temperature.

    `smoothing` is the share of the targets that all columns of a row get alike.
    """
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
