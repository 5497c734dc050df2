"""How a decoded picture becomes the input of an image tower: by pillow and numpy, bit for bit as open_clip does it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class Preprocessing:
    """How a decoded RGB picture becomes a tower's input (open_clip's preprocess configuration)."""

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"  # or "squash", or "longest": all of the picture, black around it

    def pixels(self, images: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Returns (n, 3, size, size) float32, resized, cropped and normalised."""
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        rows = np.empty((len(images), 3, self.size, self.size), dtype=np.float32)
        for row, image in zip(rows, images, strict=True):
            values = np.asarray(self.resized(image), dtype=np.float32) / 255
            row[:] = ((values - mean) / std).transpose(2, 0, 1)
        return rows

    def resized(self, image: Image.Image) -> Image.Image:
        """Returns a picture as it is before it becomes numbers: of the tower's size, RGB; such a one stays as it is."""
        width, height = self._sides(*image.size)
        image = image.resize((width, height), Image.Resampling[self.interpolation.upper()]).convert("RGB")
        if self.resize_mode == "longest":
            whole = Image.new("RGB", (self.size, self.size))
            whole.paste(image, ((self.size - width) // 2, (self.size - height) // 2))
            return whole
        left, top = round((width - self.size) / 2), round((height - self.size) / 2)
        return image.crop((left, top, left + self.size, top + self.size))

    def _sides(self, width: int, height: int) -> tuple[int, int]:
        if self.resize_mode == "squash":
            return self.size, self.size
        if self.resize_mode == "longest":
            ratio = max(width / self.size, height / self.size)
            return round(width / ratio), round(height / ratio)
        short = min(width, height)
        return int(self.size * width / short), int(self.size * height / short)
