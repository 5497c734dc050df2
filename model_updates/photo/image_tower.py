"""EfficientNet-Lite2 as the image tower: pictures in, 1280 pooled features out.

The architecture is timm's `tf_efficientnet_lite2` (Apache-2.0), the weights are the package's (ImageNet-1k).
"""

from __future__ import annotations

from collections.abc import Mapping

import timm
from torch import Tensor, nn

from model_updates.errors import WeightsMismatch

ARCHITECTURE = "tf_efficientnet_lite2"
FEATURES = 1280
CLASSES = 1000
PIXELS = 260
MEAN, DEVIATION = 0.498, 0.502  # of every channel, after division by 255


class ImageTower(nn.Module):
    """Prepared pixels (n, 3, 260, 260) in, pooled features (n, 1280) out.

    The statistics of its batch normalisation are those of ImageNet and stay so: in training mode too, since an
    update sees too few pictures to replace them, and a vector must not depend on its neighbours in a batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.body: nn.Module = timm.create_model(ARCHITECTURE, pretrained=False, num_classes=0)
        self.eval()

    def train(self, mode: bool = True) -> ImageTower:
        """Keeps the tower in evaluation mode whatever is asked; gradients flow all the same."""
        super().train(False)
        return self

    def forward(self, pixels: Tensor) -> Tensor:
        """Returns (n, 1280) features."""
        features: Tensor = self.body(pixels)
        return features


def tower_and_classifier(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Returns the state of an `ImageTower`, and the weight (1000, 1280) and bias (1000,) of ImageNet's classes.

    The package and timm name the layers differently and list them in the order in which they run, so they are
    matched by position; each shape is compared.

    Raises:
        WeightsMismatch: the two lists do not fit.
    """
    *layers, weight, bias = weights.values()
    names = ImageTower().state_dict()
    if len(layers) != len(names) or any(
        ours.shape != theirs.shape for ours, theirs in zip(names.values(), layers, strict=True)
    ):
        raise WeightsMismatch(
            f"timm's {ARCHITECTURE} is laid out differently from the weights of the package; "
            "install the version of timm that the constraints file names"
        )
    return dict(zip(names, layers, strict=True)), weight, bias
