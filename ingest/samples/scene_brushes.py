"""The four styles: each paints the same composition with its own brush.

Every brush works on a supersampled canvas of ``px`` pixels a side with Pillow's C drawing; numpy only makes
the low-resolution textures. Textures are cached per canvas size and shifted by the seed, so a picture costs
milliseconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from ingest.samples.scene_backdrop import Composition, Placed
from ingest.samples.scene_palette import RGB, SKIES, mix, place_tones, subject_tones
from ingest.samples.scene_shapes import Points, Shape

PAPER: RGB = (247, 241, 226)
INK: RGB = (44, 42, 56)
BOARD: RGB = (42, 54, 52)


@dataclass(frozen=True, slots=True)
class Canvas:
    """What a brush needs to know about the picture.

    Attributes:
        px: side of the supersampled canvas in pixels.
        colour: the subject's colour.
        time: the time of day.
    """

    px: int
    colour: str
    time: str


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

    @abstractmethod
    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Everything behind the subjects."""

    @abstractmethod
    def figure(self, image: Image.Image, placed: Placed) -> None:
        """One subject."""

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

    def fill(
        self, pens: tuple[ImageDraw.ImageDraw, ImageDraw.ImageDraw], points: Points, shape: Shape
    ) -> None:
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


class Gouache(Brush):
    """Soft opaque paint: gradients, a glow round the sun, rounded shading, brush mottling and paper grain."""

    def sky(self, composition: Composition) -> Image.Image:
        """A vertical gradient with a glow round the sun or moon."""
        grid = (np.arange(64) + 0.5) / 64
        stops = np.asarray(SKIES[self.time], dtype=np.float32)
        where = np.clip(grid / composition.horizon, 0, 1)
        column = np.stack([np.interp(where, (0, 0.55, 1), stops[:, c]) for c in range(3)], axis=1)
        x, y = composition.sun
        distance = np.hypot(grid[None, :] - x, grid[:, None] - y)
        strength = {"day": 0.75, "sunset": 0.8, "night": 0.38}[self.time]
        glow = strength * np.exp(-((distance / 0.24) ** 2))[..., None]
        warm = np.asarray(self.place["moon" if self.time == "night" else "sun"], dtype=np.float32)
        small = column[:, None, :] * (1 - glow) + warm * glow
        return to_image(small).resize((self.px, self.px), Image.Resampling.BICUBIC)

    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Filled shapes, then depth (the ground darkens towards us) and brush mottling over all of them."""
        pen = ImageDraw.Draw(image)
        for shape in composition.backdrop:
            fill_plain(pen, shape, self.place[shape.tone], self.px)
        grid = (np.arange(48) + 0.5) / 48
        below = np.clip((grid - composition.horizon) / (1 - composition.horizon), 0, 1)[:, None]
        light = 1.0 - 0.16 * below + 0.05 * (self.rng.random((48, 48)) - 0.5) * (0.5 + below)
        shade = to_image(np.clip(light, 0, 1) * 255).resize(image.size, Image.Resampling.BICUBIC)
        image.paste(ImageChops.multiply(image, Image.merge("RGB", (shade, shade, shade))))

    def shadow(self, image: Image.Image, placed: Placed) -> None:
        """A blurred pool of dark under the subject, away from the light."""
        small = 48
        mask = Image.new("L", (small, small))
        cx, ry = (placed.left + placed.width * 0.55) * small, 0.10 * placed.width * small
        rx, y = 0.46 * placed.width * small, placed.ground * small
        ImageDraw.Draw(mask).ellipse((cx - rx, y - ry, cx + rx, y + ry), fill=130)
        mask = mask.filter(ImageFilter.GaussianBlur(1.1)).resize(image.size, Image.Resampling.BICUBIC)
        image.paste((20, 20, 50), mask=mask)

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """The subject with light from the upper left."""
        colours, mask, corner = self.tile(placed)
        shading = round_shading(colours.width)
        image.paste(ImageChops.multiply(colours, shading), corner, mask)
        highlight = Image.new("RGB", colours.size, (255, 250, 236))
        image.paste(highlight, corner, ImageChops.multiply(mask, sheen(colours.width)))

    def finish(self, image: Image.Image) -> Image.Image:
        """Paper grain."""
        return with_grain(image, self.rng, strength=0.09, coarse=2)


class Flat(Brush):
    """A poster: few flat colours, bands of sky, hard half shadows."""

    def sky(self, composition: Composition) -> Image.Image:
        """Three bands and a ring round the sun."""
        image = Image.new("RGB", (self.px, self.px), SKIES[self.time][0])
        pen = ImageDraw.Draw(image)
        for share, stop in ((0.42, 1), (0.76, 2)):
            pen.rectangle(
                (0, round(share * composition.horizon * self.px), self.px, self.px), SKIES[self.time][stop]
            )
        x, y = composition.sun
        for radius, share in ((0.26, 0.12), (0.18, 0.28)):
            ring = tuple(round((v + s * radius) * self.px) for v, s in ((x, -1), (y, -1), (x, 1), (y, 1)))
            colour = image.getpixel((round(x * self.px), min(self.px - 1, round(y * self.px))))
            pen.ellipse(ring, fill=mix(_rgb(colour), self.place["sun"], share))
        return image

    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Flat fills."""
        pen = ImageDraw.Draw(image)
        for shape in composition.backdrop:
            fill_plain(pen, shape, self.place[shape.tone], self.px)

    def shadow(self, image: Image.Image, placed: Placed) -> None:
        """A hard ellipse."""
        cx, y = (placed.left + placed.width * 0.54) * self.px, placed.ground * self.px
        rx, ry = 0.44 * placed.width * self.px, 0.055 * placed.width * self.px
        mask = Image.new("L", image.size)
        ImageDraw.Draw(mask).ellipse((cx - rx, y - ry, cx + rx, y + ry), fill=80)
        image.paste((24, 22, 56), mask=mask)

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """Flat fills with the right side in shade."""
        colours, mask, corner = self.tile(placed)
        image.paste(colours, corner, mask)
        half = Image.new("L", mask.size)
        side = mask.width
        ImageDraw.Draw(half).polygon(
            [(0.62 * side, 0), (side, 0), (side, side), (0.46 * side, side)], fill=44
        )
        image.paste((20, 16, 60), corner, ImageChops.multiply(mask, half))


class Ink(Brush):
    """Pen on paper: jittered lines and hatching, colour only as a light wash."""

    def sky(self, composition: Composition) -> Image.Image:
        """Paper with a faint wash; at night it is hatched."""
        image = Image.new("RGB", (self.px, self.px), PAPER)
        pen = ImageDraw.Draw(image)
        share = {"day": 0.22, "sunset": 0.42, "night": 0.40}[self.time]
        bands = 24
        for band in range(bands):
            y = band / bands
            stops = SKIES[self.time]
            sky = mix(stops[0], stops[1], min(1, 2 * y)) if y < 0.5 else mix(stops[1], stops[2], 2 * y - 1)
            top = y * composition.horizon * self.px
            pen.rectangle((0, top, self.px, self.px), fill=mix(PAPER, sky, share))
        gap = {"day": 0.0, "sunset": 0.045, "night": 0.021}[self.time]
        y = gap
        while gap and y < composition.horizon:
            self._line(
                pen,
                np.array([(0.0, y), (0.35, y), (0.7, y), (1.0, y)]) * self.px,
                mix(INK, PAPER, 0.35),
                0.0032,
            )
            y += gap * self.rng.uniform(0.8, 1.2)
        return image

    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Pale washes and thin outlines."""
        pen = ImageDraw.Draw(image)
        bright = {"sun", "moon", "star", "flake", "cloud", "window"}
        share = 0.52 if self.time == "night" else 0.40
        for shape in composition.backdrop:
            points = shape.points * self.px
            wash = PAPER if shape.tone in bright else mix(PAPER, self.place[shape.tone], share)
            if shape.tone == "window" and self.time == "night":
                wash = mix(PAPER, self.place["window"], 0.7)
            if shape.line:
                self._line(pen, points, mix(INK, PAPER, 0.25), min(shape.line, 0.006))
                continue
            pen.polygon(flat(points), fill=wash)
            if shape.tone != "star" and shape.tone != "flake":
                self._line(pen, np.concatenate([points, points[:1]]), INK, 0.0042)

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """A wash inside firm outlines, hatched on the shaded side."""
        colours, mask, corner = self.tile(placed)
        image.paste(colours, corner, mask)

    def shadow(self, image: Image.Image, placed: Placed) -> None:
        """A few strokes under the subject."""
        pen = ImageDraw.Draw(image)
        for step in range(6):
            y = placed.ground + (step - 2) * 0.011
            half = placed.width * (0.46 - 0.05 * abs(step - 2))
            centre = placed.left + placed.width * 0.55
            line = np.array([(centre - half, y), (centre, y + 0.003), (centre + half, y)]) * self.px
            self._line(pen, line, INK, 0.0042)

    def fill(
        self, pens: tuple[ImageDraw.ImageDraw, ImageDraw.ImageDraw], points: Points, shape: Shape
    ) -> None:
        """A wash of the tone under a pen outline."""
        white = (255, 255, 255)
        tone = self.subject[shape.tone]
        wash = INK if shape.tone == "ink" else mix(white, tone, 0.80 if shape.tone == "main" else 0.62)
        colours, mask = pens
        if shape.line:
            draw_line(mask, points, 255, shape.line * self.px + 0.008 * self.px)
            if not shape.plain:
                draw_line(colours, points, INK, shape.line * self.px + 0.008 * self.px)
            draw_line(colours, points, wash, shape.line * self.px)
            return
        mask.polygon(flat(points), fill=255)
        colours.polygon(flat(points), fill=wash)
        if not shape.plain:
            self._hatch(colours, points, mix(wash, INK, 0.55))
            ring = np.concatenate([points, points[:1]])
            self._line(colours, ring, INK, 0.0075)
            draw_line(mask, ring, 255, 0.006 * self.px)

    def _hatch(self, pen: ImageDraw.ImageDraw, points: Points, colour: RGB) -> None:
        """Short slanted strokes along the lower right of the shape."""
        (left, top), (right, bottom) = points.min(axis=0), points.max(axis=0)
        gap = 0.018 * self.px
        if right - left < 5 * gap or bottom - top < 5 * gap:
            return
        y = top + 0.30 * (bottom - top)
        while y < bottom - gap:
            xs = crossings(points, y)
            if len(xs) >= 2:
                end = xs[-1] - 0.2 * gap
                start = max(xs[-2] + gap, end - 0.30 * (right - left) * self.rng.uniform(0.7, 1.1))
                pen.line((start, y, end, y - 0.15 * gap), fill=colour, width=max(1, round(0.0034 * self.px)))
            y += gap

    def _line(self, pen: ImageDraw.ImageDraw, points: Points, colour: RGB, width: float) -> None:
        wobble = self.rng.normal(0, 0.0011 * self.px, points.shape)
        draw_line(pen, points + wobble, colour, max(1.0, width * self.px))

    def finish(self, image: Image.Image) -> Image.Image:
        """Paper grain."""
        return with_grain(image, self.rng, strength=0.06, coarse=3)


class Chalk(Brush):
    """Coloured chalk on a blackboard: broken outlines, scribbled fills, dust."""

    def sky(self, composition: Composition) -> Image.Image:
        """The board, and sky scribbles in the colour of the hour."""
        image = Image.new("RGB", (self.px, self.px), BOARD)
        pen = ImageDraw.Draw(image)
        colours = {
            "day": ((150, 206, 236),) * 2,
            "sunset": ((240, 140, 96), (236, 120, 150)),
            "night": ((74, 92, 170), (60, 74, 140)),
        }[self.time]
        count = {"day": 7, "sunset": 15, "night": 20}[self.time]
        for step in range(count):
            y = (step + self.rng.uniform(0.2, 0.8)) / count * composition.horizon
            x, length = self.rng.uniform(-0.1, 0.5), self.rng.uniform(0.35, 0.7)
            line = np.array([(x, y), (x + length / 2, y + self.rng.normal(0, 0.004)), (x + length, y)])
            draw_line(pen, line * self.px, mix(BOARD, colours[step % 2], 0.62), 0.011 * self.px)
        return image

    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Outlines in pale chalk over a thin dusting of the tone."""
        pen = ImageDraw.Draw(image)
        tones = place_tones("day")
        for shape in composition.backdrop:
            points = shape.points * self.px
            chalk = tones[shape.tone]
            if shape.line:
                draw_line(pen, points, mix(BOARD, chalk, 0.7), max(1.0, min(shape.line, 0.016) * self.px))
                continue
            shining = shape.tone in {"star", "flake", "moon", "sun", "daisy"}
            lit = shape.tone == "window" and self.time == "night"
            share = 0.85 if shining else 0.75 if lit else 0.17
            pen.polygon(flat(points), fill=mix(BOARD, (255, 214, 128) if lit else chalk, share))
            if not shape.plain:
                draw_line(pen, np.concatenate([points, points[:1]]), mix(BOARD, chalk, 0.72), 0.008 * self.px)

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """A scribbled fill under a firm outline in the subject's colour."""
        colours, mask, corner = self.tile(placed)
        image.paste(colours, corner, mask)

    def fill(
        self, pens: tuple[ImageDraw.ImageDraw, ImageDraw.ImageDraw], points: Points, shape: Shape
    ) -> None:
        """Scribble slanted strokes inside the shape, then outline it."""
        colours, mask = pens
        tone = mix(BOARD, (236, 236, 230), 0.25) if shape.tone == "ink" else self.subject[shape.tone]
        bright = mix(tone, (255, 255, 255), 0.16)
        if shape.line:
            draw_line(mask, points, 255, shape.line * self.px)
            draw_line(colours, points, bright, shape.line * self.px)
            return
        mask.polygon(flat(points), fill=255)
        colours.polygon(flat(points), fill=mix(BOARD, tone, 0.90 if shape.plain else 0.62))
        if shape.plain:
            return
        gap, bottom = 0.020 * self.px, points[:, 1].max()
        y = points[:, 1].min() + 0.5 * gap
        while y < bottom:
            xs = crossings(points, y)
            if len(xs) >= 2:
                y_end = y + self.rng.normal(0, 0.2 * gap)
                colours.line(
                    (xs[0], y, xs[-1], y_end), fill=mix(BOARD, tone, 0.95), width=max(1, round(0.6 * gap))
                )
            y += gap
        ring = np.concatenate([points, points[:1]])
        draw_line(mask, ring, 255, 0.013 * self.px)
        draw_line(colours, ring, bright, 0.012 * self.px)

    def finish(self, image: Image.Image) -> Image.Image:
        """Chalk only catches the grain of the board, and dust lies over all."""
        return with_grain(image, self.rng, strength=0.30, coarse=1, floor=BOARD)


BRUSHES: dict[str, type[Brush]] = {"gouache": Gouache, "flat": Flat, "ink": Ink, "chalk": Chalk}


def flat(points: Points) -> list[float]:
    """(n, 2) points as Pillow's flat list of coordinates."""
    return [float(value) for value in points.reshape(-1)]


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


def crossings(points: Points, y: float) -> list[float]:
    """Sorted x where the closed outline crosses the horizontal line at ``y``."""
    following = np.roll(points, -1, axis=0)
    crossing = (points[:, 1] <= y) != (following[:, 1] <= y)
    a, b = points[crossing], following[crossing]
    found = a[:, 0] + (y - a[:, 1]) * (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
    return sorted(float(x) for x in found)


def to_image(values: np.ndarray[tuple[int, ...], np.dtype[np.floating]]) -> Image.Image:
    """Floats of 0-255, (h, w) or (h, w, 3), as an L or RGB image."""
    return Image.fromarray(np.clip(values + 0.5, 0, 255).astype(np.uint8))


@lru_cache(maxsize=64)
def round_shading(side: int) -> Image.Image:
    """Light from the upper left as a multiplier: (side, side) RGB, cooler in the shade."""
    grid = (np.arange(32) + 0.5) / 32
    away = np.clip(0.5 * (grid[None, :] + grid[:, None]) * 1.1 - 0.30, 0, 1)[..., None]
    cool = np.asarray((0.62, 0.66, 0.44))
    return to_image((1 - away * cool) * 255).resize((side, side), Image.Resampling.BICUBIC)


@lru_cache(maxsize=64)
def sheen(side: int) -> Image.Image:
    """Where a highlight lies on a subject: (side, side) L, brightest at the upper left."""
    grid = (np.arange(32) + 0.5) / 32
    distance = np.hypot(grid[None, :] - 0.30, grid[:, None] - 0.28)
    return to_image(70 * np.exp(-((distance / 0.20) ** 2))).resize((side, side), Image.Resampling.BICUBIC)


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


def _rgb(pixel: object) -> RGB:
    if not isinstance(pixel, tuple):
        raise TypeError(f"expected an RGB pixel, got {pixel!r}; the canvas must be an RGB image")
    red, green, blue = pixel
    return int(red), int(green), int(blue)
