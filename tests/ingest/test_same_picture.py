from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance

from ingest.same_picture import detail_of, same_picture
from ingest.samples.scenes import Scene, all_scenes, draw
from tests.ingest.material import resaved

Change = Callable[[Image.Image], Image.Image]

SCENE = Scene("boat", "red", 2, "beach", "sunset")

RESAVED: dict[str, Change] = {
    "jpeg 40": lambda image: resaved(image, "JPEG", quality=40),
    "webp 40": lambda image: resaved(image, "WEBP", quality=40),
    "half": lambda image: resaved(image, "PNG", scale=0.5),
    "half, jpeg 60": lambda image: resaved(image, "JPEG", scale=0.5, quality=60),
    "cropped": lambda image: image.crop((3, 0, image.width, image.height - 3)),
    "cropped all around": lambda image: image.crop((2, 2, image.width - 2, image.height - 2)),
    "darker": lambda image: ImageEnhance.Brightness(image).enhance(0.88),
    "more contrast": lambda image: ImageEnhance.Contrast(image).enhance(1.15),
    "paler": lambda image: ImageEnhance.Color(image).enhance(0.8),
    "warmer": lambda image: Image.blend(image, Image.new("RGB", image.size, (255, 200, 120)), 0.06),
}


def same(one: Image.Image, other: Image.Image) -> bool:
    answers = {same_picture(detail_of(a), detail_of(b)) for a, b in ((one, other), (other, one))}
    assert len(answers) == 1  # the answer does not depend on which came first
    return answers.pop()


def clock(hour: int) -> Image.Image:
    image = Image.new("RGB", (288, 288), "white")
    pen = ImageDraw.Draw(image)
    pen.ellipse((12, 12, 276, 276), fill="#eef", outline="#345", width=16)
    angle = np.pi * hour / 6
    pen.line((144, 144, 144 + 72 * np.sin(angle), 144 - 72 * np.cos(angle)), fill="#222", width=14)
    pen.line((144, 144, 144, 44), fill="#222", width=10)
    return image.resize((96, 96), Image.Resampling.LANCZOS)


def flag(*colours: str) -> Image.Image:
    image = Image.new("RGB", (96, 64))
    for n, colour in enumerate(colours):
        image.paste(colour, (n * 96 // len(colours), 0, (n + 1) * 96 // len(colours), 64))
    return image


@pytest.mark.parametrize("change", RESAVED)
@pytest.mark.parametrize("style", ["flat", "gouache", "ink"])
def test_a_picture_saved_again_is_the_same(style: str, change: str) -> None:
    image = draw(SCENE, style, size=160, seed=3)
    assert same(image, RESAVED[change](image))


@pytest.mark.parametrize("number", [8, 25, 31])
def test_fine_lines_are_laid_over_each_other_though_a_side_is_cut_off(number: int) -> None:
    image = draw(list(all_scenes())[::61][number], "ink", size=160, seed=number)
    assert same(image, image.crop((3, 0, 160, 157)))


@pytest.mark.parametrize("change", ["jpeg 40", "webp 40", "half", "darker", "paler"])
def test_a_small_drawing_saved_again_is_the_same(change: str) -> None:
    assert same(clock(4), RESAVED[change](clock(4)))


@pytest.mark.parametrize("hour", range(1, 12))
def test_another_clock_hand_makes_another_picture(hour: int) -> None:
    assert not same(clock(hour), clock(hour + 1))


def test_another_colour_makes_another_picture() -> None:
    france, italy = flag("#0055a4", "white", "#ef4135"), flag("#008c45", "white", "#cd212a")
    assert not same(france, italy)
    assert not same(flag("#fff", "#e06060"), flag("#fff", "#6090f0"))
    assert same(france, resaved(france, "JPEG", quality=60))


@pytest.mark.parametrize(
    "other",
    [
        Scene("boat", "red", 3, "beach", "sunset"),
        Scene("boat", "yellow", 2, "beach", "sunset"),
        Scene("boat", "red", 2, "beach", "day"),
        Scene("fish", "red", 2, "beach", "sunset"),
    ],
)
def test_a_scene_that_differs_in_one_thing_is_another_picture(other: Scene) -> None:
    assert not same(draw(SCENE, "flat", size=160, seed=3), draw(other, "flat", size=160, seed=3))


def test_the_same_scene_painted_anew_is_another_picture() -> None:
    assert not same(draw(SCENE, "flat", size=160, seed=3), draw(SCENE, "flat", size=160, seed=4))


def test_one_small_thing_more_makes_another_picture() -> None:
    image = draw(SCENE, "gouache", size=160, seed=3)
    other = image.copy()
    other.paste((40, 40, 40), (72, 72, 80, 80))
    difference = np.asarray(image.convert("L"), float) - np.asarray(other.convert("L"), float)
    assert difference.std() < 0.2 * np.asarray(image.convert("L")).std()  # little on the whole
    assert not same(image, other)


def test_one_thing_of_another_colour_but_as_bright_makes_another_picture() -> None:
    image, other = (draw(SCENE, "gouache", size=160, seed=3) for _ in range(2))
    image.paste((180, 60, 60), (60, 60, 90, 90))
    other.paste((60, 121, 60), (60, 60, 90, 90))
    assert not same(image, other)


def test_all_in_another_light_is_another_picture() -> None:
    def lit(levels: int) -> Image.Image:
        light, blue, red = draw(SCENE, "ink", size=160, seed=3).convert("YCbCr").split()
        return Image.merge("YCbCr", (light, blue.point(lambda v: min(255, v + levels)), red)).convert("RGB")

    assert same(lit(0), lit(8))
    assert not same(lit(0), lit(20))
