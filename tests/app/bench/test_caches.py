"""Pictures that are decoded and resized once give the towers the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from app.bench.caches import resized_once
from model_updates.preprocessing import Preprocessing

MEAN = (0.48, 0.46, 0.41)
STD = (0.27, 0.26, 0.28)


class _Shelf:
    """Pictures of several shapes, which counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def load(self, image_id: str) -> Image.Image:
        self.asked += 1
        width, height = (int(part) for part in image_id.split("x"))
        pixels = np.random.default_rng(width).integers(0, 256, (height, width, 3), dtype=np.uint8)
        return Image.fromarray(pixels)


@pytest.mark.parametrize("mode", ["shortest", "longest", "squash"])
@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
def test_the_towers_input_is_the_same_to_the_bit(mode: str, interpolation: str) -> None:
    shelf = _Shelf()
    preprocessing = Preprocessing(32, MEAN, STD, interpolation, mode)
    load = resized_once(shelf.load, preprocessing)
    config = PreprocessCfg(size=32, mean=MEAN, std=STD, interpolation=interpolation, resize_mode=mode)
    transform = image_transform_v2(config, is_train=False)
    for image_id in ("128x128", "90x61", "20x50", "32x32"):
        expected = transform(shelf.load(image_id))
        assert torch.equal(transform(load(image_id)), expected), image_id
        ours = preprocessing.pixels([shelf.load(image_id), load(image_id)])
        assert torch.equal(torch.from_numpy(ours), torch.stack([expected, expected])), image_id


def test_a_picture_is_decoded_once_while_there_is_room() -> None:
    shelf = _Shelf()
    load = resized_once(shelf.load, Preprocessing(32, MEAN, STD), most_bytes=3 * 32**2)
    for _ in range(3):
        load("64x64")
    assert shelf.asked == 1
    for _ in range(3):
        load("40x40")
    assert shelf.asked == 4
