"""EfficientNet-Lite2 as the image tower: pictures in, 1280 pooled features out.

The architecture is timm's `tf_efficientnet_lite2` (Apache-2.0), the weights are the package's (ImageNet-1k).
"""

from typing import Any

import timm
import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

ARCHITECTURE = "tf_efficientnet_lite2"
FEATURES, CLASSES = 1280, 1000
PIXELS = 260
MEAN, DEVIATION = 0.498, 0.502  # of every channel, after division by 255


class PhotoTower(nn.Module):
    """Prepared pixels (n, 3, 260, 260) in, pooled features (n, 1280) out.

    Batch normalisation is folded into the convolutions before it, which then have a bias: less than half the time on a
    processor, and nothing left whose statistics an update could move or that would let a vector depend on its
    neighbours in a batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self.body = _folded(_unfolded())

    def forward(self, pixels: Tensor) -> Tensor:
        """Returns (n, 1280) features; more than 8 at once wait longer for memory than they compute (docs/log.md)."""
        is_whole = pixels.is_cuda or torch.compiler.is_exporting()
        parts = [pixels.contiguous(memory_format=torch.channels_last)]
        return torch.cat([self.body(part) for part in (parts if is_whole else torch.split(parts[0], 8))])


def _unfolded() -> nn.Module:
    body: nn.Module = timm.create_model(ARCHITECTURE, pretrained=False, num_classes=0)
    return body.eval()


def _folded(body: nn.Module) -> nn.Module:
    """Folds each batch normalisation into its convolution, in place, and keeps the activation that it brings."""
    for module in body.modules():
        layers: dict[str, Any] = dict(module.named_children())  # timm's normalisation brings its activation
        for convolution, normalisation in _LAYOUTS.get(next(iter(layers), ""), ()):
            norm = layers[normalisation]
            setattr(module, convolution, fuse_conv_bn_eval(layers[convolution], norm))
            setattr(module, normalisation, norm.act)
    return body.requires_grad_(False)


# By a block's first layer: which normalisation follows which convolution.
_LAYOUTS = {
    "conv_stem": (("conv_stem", "bn1"), ("conv_head", "bn2")),
    "conv_dw": (("conv_dw", "bn1"), ("conv_pw", "bn2")),
    "conv_pw": (("conv_pw", "bn1"), ("conv_dw", "bn2"), ("conv_pwl", "bn3")),
}
