"""What all drawing styles share: the order of painting, filling a shape, lines and grain.

A brush works on a supersampled canvas with Pillow's C drawing; numpy only makes low-resolution textures,
which are cached per canvas size and shifted by the seed, so a picture costs milliseconds.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

from ingest.samples.scene_backdrop import Composition, Placed
from ingest.samples.scene_palette import RGB, mix, place_tones, subject_tones
from ingest.samples.scene_shapes import Points, Shape

Pens = tuple[ImageDraw.ImageDraw, ImageDraw.ImageDraw]  # of the colours, and of the mask


@dataclass(frozen=True, slots=True)
class Canvas:
    """What a brush needs to know about the picture."""

    px: int  # side of the supersampled canvas in pixels
    colour: str  # the subject's colour
    time: str  # the time of day


class Brush(ABC):
    """A style: it washes the sky, then fills and outlines shapes, far to near."""

    def __init__(self, canvas: Canvas, rng: Generator) -> None:
        self.px = canvas.px
        self.time = canvas.time
        self.rng = rng
        self.place = place_tones(canvas.time)
        self.subject = subject_tones(canvas.colour, canvas.time)

    def paint(self, composition: Composition) -> Image.Image:
        """The whole picture, (px, px) RGB."""
        image = self.sky(composition)
        self.backdrop(image, composition)
        for placed in composition.subjects:
            self.shadow(image, placed)
            self.figure(image, placed)
        return self.finish(image)

    @abstractmethod
    def sky(self, composition: Composition) -> Image.Image:
        """The empty picture with its sky."""

    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Everything behind the subjects, in plain fills."""
        pen = ImageDraw.Draw(image)
        for shape in composition.backdrop:
            fill_plain(pen, shape, self.place[shape.tone], self.px)

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """One subject, as `fill` paints its shapes."""
        colours, mask, corner = self.tile(placed)
        image.paste(colours, corner, mask)

    def shadow(self, image: Image.Image, placed: Placed) -> None:  # noqa: B027, chalk casts none
        """The shadow under a subject; none by default."""

    def finish(self, image: Image.Image) -> Image.Image:
        """What covers the whole picture at the end (paper, grain); nothing by default."""
        return image

    def tile(self, placed: Placed) -> tuple[Image.Image, Image.Image, tuple[int, int]]:
        """A subject alone: its colours (RGB), its mask (L) and the pixel of its upper left corner."""
        margin = 0.03
        left, top = round((placed.left - margin) * self.px), round((placed.top - margin) * self.px)
        side = round((placed.width + 2 * margin) * self.px)
        colours, mask = Image.new("RGB", (side, side), self.subject["edge"]), Image.new("L", (side, side))
        pens = ImageDraw.Draw(colours), ImageDraw.Draw(mask)
        for shape in placed.shapes:
            points = shape.points * self.px - (left, top)
            self.fill(pens, points, shape)
        return colours, mask, (left, top)

    def fill(self, pens: Pens, points: Points, shape: Shape) -> None:
        """Fill one shape on colours and mask, with a thin darker edge."""
        tone = self.subject[shape.tone]
        edge = 0.0 if shape.plain else 0.0085 * self.px
        ring = mix(tone, (40, 30, 56), 0.5)
        self._fill_one(pens[0], points, shape, edge, tone, ring)
        self._fill_one(pens[1], points, shape, edge, 255, 255)

    def _fill_one(
        self,
        pen: ImageDraw.ImageDraw,
        points: Points,
        shape: Shape,
        edge: float,
        inside: RGB | int,
        outline: RGB | int,
    ) -> None:
        if shape.line:
            if edge:
                draw_line(pen, points, outline, shape.line * self.px + edge)
            draw_line(pen, points, inside, shape.line * self.px)
            return
        pen.polygon(flat(points), fill=inside)
        if edge:
            draw_line(pen, np.concatenate([points, points[:2]]), outline, edge)


def flat(points: Points) -> list[float]:
    """(n, 2) points as Pillow's flat list of coordinates."""
    flattened: list[float] = points.reshape(-1).tolist()
    return flattened


def draw_line(pen: ImageDraw.ImageDraw, points: Points, colour: RGB | int, width: float) -> None:
    """A line with round joints and round ends."""
    whole = max(1, round(width))
    pen.line(flat(points), fill=colour, width=whole, joint="curve" if whole > 3 else None)
    if whole > 3:
        radius = whole / 2
        for x, y in (points[0], points[-1]):
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)


def fill_plain(pen: ImageDraw.ImageDraw, shape: Shape, colour: RGB, px: int) -> None:
    """A shape in one colour, without an edge."""
    if shape.line:
        draw_line(pen, shape.points * px, colour, shape.line * px)
    else:
        pen.polygon(flat(shape.points * px), fill=colour)


def to_image(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Image.Image:
    """Floats of 0-255, (h, w) or (h, w, 3), as an L or RGB image."""
    return Image.fromarray(np.clip(values + 0.5, 0, 255).astype(np.uint8))


@lru_cache(maxsize=16)
def _grain(side: int, coarse: int) -> Image.Image:
    """A fixed noise texture in L, twice the side, so that any window of it can be taken."""
    rng = np.random.default_rng(side * 31 + coarse)
    small = rng.random((2 * side // coarse + 1, 2 * side // coarse + 1)) * 255
    return to_image(small).resize((2 * side, 2 * side), Image.Resampling.BILINEAR)


def with_grain(
    image: Image.Image, rng: Generator, *, strength: float, coarse: int, floor: RGB = (0, 0, 0)
) -> Image.Image:
    """Mix ``floor`` into the picture where the grain is high, at most by ``strength``."""
    x, y = (int(v) for v in rng.integers(0, image.width, 2))
    window = _grain(image.width, coarse).crop((x, y, x + image.width, y + image.width))
    mask = window.point([round(value * strength) for value in range(256)])
    covered = image.copy()
    covered.paste(floor, mask=mask)
    return covered
