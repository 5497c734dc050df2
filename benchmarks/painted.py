"""Pictures as features: what the frozen image tower of `perennial-photo` sees, painted for a small tower to read.

Training behind a tower of its size would take hours a cell. The 1,280 pooled features of a picture are painted into the
64 x 64 pixels that `perennial-tiny` takes, 80 into each of its sixteen patches, as an upload's picture. Its tower then
learns from photographs what a head on frozen features would, and every strategy that trains both towers runs on them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from model_updates.photo.image_tower import PhotoTower
from model_updates.photo.model import preprocessing
from model_updates.photo.weights import image_weights

SIDE, PATCH, CHANNELS = 64, 16, 3
HIGHEST = 4.0  # hardly a feature is above


def painted(picture: Image.Image) -> Image.Image:
    """Returns a picture's features as a picture of 64 x 64 pixels."""
    pixels = torch.from_numpy(preprocessing().pixels([picture]))
    with torch.inference_mode():
        return Image.fromarray(_laid_out(_tower()(pixels)[0].numpy()))


@cache
def _tower() -> PhotoTower:
    tower = PhotoTower()
    own = {name: torch.from_numpy(value) for name, value in image_weights().items()}
    tower.load_state_dict(
        {name.removeprefix("visual."): own[name] for name in own if name.startswith("visual.")}
    )
    return tower.eval()


def _laid_out(features: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Returns (64, 64, 3) of (1280,) features; their roots, since most are near zero."""
    levels = np.round(255 * np.sqrt(np.clip(features / HIGHEST, 0, 1))).astype(np.uint8)
    side, numbers = SIDE // PATCH, PATCH * PATCH * CHANNELS
    own = levels.reshape(side * side, -1)
    patches = np.zeros((side * side, numbers), np.uint8)
    times = numbers // own.shape[1]
    patches[:, : times * own.shape[1]] = np.repeat(own, times, axis=1)
    rows = patches.reshape(side, side, PATCH, PATCH, CHANNELS).transpose(0, 2, 1, 3, 4)
    return rows.reshape(SIDE, SIDE, CHANNELS)
