"""How a decoded picture becomes the input of an image tower."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PIL import Image
from torch import Tensor


@dataclass(frozen=True)
class Preprocessing:
    """How a decoded RGB picture becomes a tower's input (open_clip's preprocess configuration)."""

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"

    def transform(self) -> Callable[[Image.Image], Tensor]:
        """Returns open_clip's evaluation transform: one picture to a (3, size, size) float32 tensor."""
        from open_clip.transform import PreprocessCfg, image_transform_v2

        config = PreprocessCfg(
            size=self.size,
            mean=self.mean,
            std=self.std,
            interpolation=self.interpolation,
            resize_mode=self.resize_mode,
        )
        transform: Callable[[Image.Image], Tensor] = image_transform_v2(config, is_train=False)
        return transform
