"""How a decoded picture becomes the input of an image tower."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

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

    def resized(self) -> Callable[[Image.Image], Image.Image]:
        """Returns the part of the transform that ends before pictures become numbers: resized and cropped, RGB.

        The whole transform of what it returns is, bit for bit, that of the picture itself.
        """
        from torchvision.transforms import Compose, ToTensor

        steps = cast(Compose, self.transform()).transforms
        before = next(n for n, step in enumerate(steps) if isinstance(step, ToTensor))
        resize: Callable[[Image.Image], Image.Image] = Compose(steps[:before])
        return resize
