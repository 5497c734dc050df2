"""Two styles that draw lines: pen and ink on paper, chalk on a blackboard."""

import numpy as np
from numpy.random import Generator
from PIL import Image, ImageDraw

from ingest.samples.scene_backdrop import Composition, Placed
from ingest.samples.scene_brush import Brush, Canvas, Pens, draw_line, flat, with_grain
from ingest.samples.scene_palette import RGB, SKIES, mix, place_tones, subject_tones
from ingest.samples.scene_shapes import Points, Shape

PAPER: RGB = (247, 241, 226)
INK: RGB = (44, 42, 56)
BOARD: RGB = (45, 62, 58)


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
        for ray in sun_rays(composition, self.time):
            self._line(pen, ray * self.px, INK, 0.005)
        bright = {"sun", "moon", "star", "flake", "cloud", "window"}
        share = 0.52 if self.time == "night" else 0.40
        for shape in composition.backdrop:
            points = shape.points * self.px
            wash = PAPER if shape.tone in bright else mix(PAPER, self.place[shape.tone], share)
            if shape.tone == "window" and self.time == "night":
                wash = mix(PAPER, self.place["window"], 0.75)
            if shape.line:
                self._line(pen, points, mix(INK, PAPER, 0.25), min(shape.line, 0.006))
                continue
            pen.polygon(flat(points), fill=wash)
            if shape.tone != "star" and shape.tone != "flake":
                self._line(pen, np.concatenate([points, points[:1]]), INK, 0.0042)

    def shadow(self, image: Image.Image, placed: Placed) -> None:
        """A few strokes under the subject."""
        pen = ImageDraw.Draw(image)
        for step in range(6):
            y = placed.ground + (step - 2) * 0.011
            half = placed.width * (0.46 - 0.05 * abs(step - 2))
            centre = placed.left + placed.width * 0.55
            line = np.array([(centre - half, y), (centre, y + 0.003), (centre + half, y)]) * self.px
            self._line(pen, line, INK, 0.0042)

    def fill(self, pens: Pens, points: Points, shape: Shape) -> None:
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
        width = max(1, round(0.0034 * self.px))
        for y, start, end in spans(points, np.arange(top + 0.30 * (bottom - top), bottom - gap, gap)):
            edge = end - 0.2 * gap
            reach = 0.30 * (right - left) * self.rng.uniform(0.7, 1.1)
            pen.line((max(start + gap, edge - reach), y, edge, y - 0.15 * gap), fill=colour, width=width)

    def _line(self, pen: ImageDraw.ImageDraw, points: Points, colour: RGB, width: float) -> None:
        wobble = self.rng.normal(0, 0.0011 * self.px, points.shape)
        draw_line(pen, points + wobble, colour, max(1.0, width * self.px))

    def finish(self, image: Image.Image) -> Image.Image:
        """Paper grain."""
        return with_grain(image, self.rng, strength=0.05, coarse=3)


class Chalk(Brush):
    """Coloured chalk on a blackboard: broken outlines, scribbled fills, dust."""

    def __init__(self, canvas: Canvas, rng: Generator) -> None:
        super().__init__(canvas, rng)
        # Chalk has the same colour at any hour; only the sky tells the time.
        self.subject = subject_tones(canvas.colour, "day")

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
        for ray in sun_rays(composition, self.time):
            draw_line(pen, ray * self.px, mix(BOARD, tones["sun"], 0.85), 0.010 * self.px)
        for shape in composition.backdrop:
            points = shape.points * self.px
            chalk = tones[shape.tone]
            if shape.line:
                draw_line(pen, points, mix(BOARD, chalk, 0.7), max(1.0, min(shape.line, 0.016) * self.px))
                continue
            shining = shape.tone in {"star", "flake", "moon", "sun", "daisy"}
            lit = shape.tone == "window" and self.time == "night"
            share = 0.85 if shining else 0.75 if lit else 0.22
            pen.polygon(flat(points), fill=mix(BOARD, (255, 214, 128) if lit else chalk, share))
            if not shape.plain:
                draw_line(pen, np.concatenate([points, points[:1]]), mix(BOARD, chalk, 0.72), 0.008 * self.px)

    def fill(self, pens: Pens, points: Points, shape: Shape) -> None:
        """Scribble slanted strokes inside the shape, then outline it."""
        colours, mask = pens
        tone = mix(BOARD, (236, 236, 230), 0.25) if shape.tone == "ink" else self.subject[shape.tone]
        bright = mix(tone, (255, 255, 255), 0.16)
        if shape.line:
            draw_line(mask, points, 255, shape.line * self.px)
            draw_line(colours, points, bright, shape.line * self.px)
            return
        mask.polygon(flat(points), fill=255)
        colours.polygon(flat(points), fill=mix(BOARD, tone, 0.92 if shape.plain else 0.70))
        if shape.plain:
            return
        gap, (top, bottom) = 0.020 * self.px, (points[:, 1].min(), points[:, 1].max())
        stroke, width = mix(BOARD, tone, 0.97), max(1, round(0.6 * gap))
        for y, start, end in spans(points, np.arange(top + 0.5 * gap, bottom, gap)):
            colours.line((start, y, end, y + self.rng.normal(0, 0.2 * gap)), fill=stroke, width=width)
        ring = np.concatenate([points, points[:1]])
        draw_line(mask, ring, 255, 0.013 * self.px)
        draw_line(colours, ring, bright, 0.012 * self.px)

    def finish(self, image: Image.Image) -> Image.Image:
        """Chalk only catches the grain of the board, and dust lies over all."""
        return with_grain(image, self.rng, strength=0.30, coarse=2, floor=BOARD)


def spans(points: Points, heights: Points) -> list[tuple[float, float, float]]:
    """(y, first x, last x) of each horizontal line that meets a closed outline."""
    x, y = points[:, 0], points[:, 1]
    next_x, next_y = np.concatenate([x[1:], x[:1]]), np.concatenate([y[1:], y[:1]])
    lines = heights[:, None]
    crossing = (y <= lines) != (next_y <= lines)  # (m, n)
    rise = np.where(next_y == y, 1.0, next_y - y)
    at = x + (lines - y) * (next_x - x) / rise
    first = np.where(crossing, at, np.inf).min(axis=1)
    last = np.where(crossing, at, -np.inf).max(axis=1)
    met = crossing.any(axis=1)
    rows = np.stack([heights, first, last], axis=1)[met]
    return [(float(row[0]), float(row[1]), float(row[2])) for row in rows]


def sun_rays(composition: Composition, time: str) -> list[Points]:
    """Short strokes round the sun by day and at sunset, for the styles that draw lines."""
    if time == "night":
        return []
    inner, outer = (0.105, 0.145) if time == "day" else (0.14, 0.18)
    x, y = composition.sun
    angles = np.arange(12) * np.pi / 6
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return [np.stack([(x, y) + inner * ray, (x, y) + outer * ray]) for ray in around]
