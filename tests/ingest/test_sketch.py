from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from ingest.samples.scenes import Scene, draw
from ingest.sketch import SKETCH_BYTES, as_rows, likely, sketch_of
from tests.ingest.material import resaved


def _boat(**changes: str | int) -> Image.Image:
    values = {"subject": "boat", "colour": "red", "count": 2, "place": "beach", "time": "sunset", **changes}
    return draw(Scene(**values), "flat", size=160, seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("quality", [40, 60, 95])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_picture_saved_again_is_likely_the_same(quality: int, scale: float) -> None:
    again = resaved(_boat(), "JPEG", scale=scale, quality=quality)
    rows = as_rows([sketch_of(_boat()), sketch_of(again)])
    assert likely(rows[:1], rows[1:], 1) == [(0, 0)]


def test_other_pictures_are_not_even_likely() -> None:
    others = [_boat(subject="tree", place="city"), ImageEnhance.Color(_boat()).enhance(0.0)]
    rows = as_rows([sketch_of(image) for image in (_boat(), *others)])
    assert likely(rows[:1], rows[1:], 5) == []


def test_a_flat_or_tiny_picture_has_nothing_to_be_told_by() -> None:
    flat = Image.new("RGB", (64, 64), (200, 30, 30))
    flat.putpixel((3, 3), (210, 40, 30))
    assert sketch_of(flat) == b""
    assert sketch_of(_boat().resize((31, 40))) == b""
    assert len(sketch_of(_boat())) == SKETCH_BYTES == 81


def test_the_nearest_come_first_and_no_more_than_asked_for() -> None:
    rng = np.random.default_rng(0)
    others = np.zeros((300, SKETCH_BYTES), np.float32)
    others[:, 0] = rng.permutation(300) / 150
    rows = np.zeros((2, SKETCH_BYTES), np.float32)
    rows[:, 0] = 0.501, 1.302
    found = likely(rows, others, 4)
    near = {row: np.argsort(np.abs(others[:, 0] - rows[row, 0]))[:4].tolist() for row in (0, 1)}
    assert found == [(row, other) for row in (0, 1) for other in near[row]]


def test_brightness_and_colour_each_have_a_limit() -> None:
    others = np.zeros((4, SKETCH_BYTES), np.float32)
    others[0, 5], others[1, 70] = 1.1, 1.1  # the sum of their squares would pass
    others[2, 5], others[3, 70] = 0.9, 0.9
    assert [other for _, other in likely(np.zeros((1, SKETCH_BYTES), np.float32), others, 9)] == [2, 3]


def test_very_many_pictures_that_look_alike_need_no_more_memory() -> None:
    rows = np.zeros((1500, SKETCH_BYTES), np.float32)
    rows[:, 3] = np.linspace(0, 0.01, 1500)
    tracemalloc.start()
    found = likely(rows, rows, 3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 4500
    assert all(abs(row - other) <= 2 for row, other in found)
    assert peak < 100e6  # all 2.25 million differences would be 729 MB
