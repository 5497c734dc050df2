"""Where a scene happens and how its subjects stand in it: shapes in picture coordinates, without any style.

All shapes live in the unit square of the picture (x right, y down). The same scene and seed give the same
composition in every style.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from ingest.samples.scene_grid import Scene
from ingest.samples.scene_shapes import XY, Points, Shape, blob, box, oval, poly, stroke
from ingest.samples.scene_subjects import FLOATING, subject_shapes

WIDTHS = {1: 0.50, 2: 0.39, 3: 0.31}


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """One subject in the picture: its shapes, the square box that holds it, and where its shadow falls."""

    shapes: tuple[Shape, ...]  # back to front, in picture coordinates
    left: float
    top: float
    width: float
    ground: float  # y of the ground under it (below its feet when it floats)


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """A whole picture before any style: backdrop shapes back to front, then the subjects."""

    horizon: float  # y of the horizon
    sun: XY  # centre of the sun or moon
    backdrop: tuple[Shape, ...]  # shapes behind the subjects
    subjects: tuple[Placed, ...]  # far to near


def compose(scene: Scene, rng: Generator) -> Composition:
    """Lay the picture out: horizon, lights, the place and the subjects."""
    horizon = 0.54 + rng.uniform(-0.03, 0.03)
    side = 0.0 if rng.random() < 0.5 else 1.0
    x = 0.16 + rng.uniform(-0.05, 0.06)
    sun = (x if side == 0.0 else 1 - x, _sun_height(scene.time, horizon, rng))
    backdrop = [*_sky(scene.time, sun, horizon, rng), *_PLACES[scene.place](horizon, sun[0] > 0.5, rng)]
    return Composition(horizon, sun, tuple(backdrop), tuple(_subjects(scene, rng)))


def _subjects(scene: Scene, rng: Generator) -> list[Placed]:
    gap = 1.0 / scene.count
    nearer = int(rng.integers(2))
    placed = []
    for position in range(scene.count):
        width = WIDTHS[scene.count] * rng.uniform(0.92, 1.05)
        spread = 0.10 if scene.count == 1 else 0.02
        centre = gap * (position + 0.5) + rng.uniform(-spread, spread)
        centre = float(np.clip(centre, width / 2 + 0.01, 0.99 - width / 2))
        stagger = 0.0 if scene.count == 1 else 0.11 * ((position + nearer) % 2)
        ground = 0.80 + stagger + rng.uniform(0.0, 0.04) + (0.07 if scene.count == 1 else 0.0)
        lift = rng.uniform(0.05, 0.11) if scene.subject in FLOATING else 0.0
        placed.append(_place(scene.subject, centre, ground, width, lift, bool(rng.random() < 0.5)))
    return sorted(placed, key=lambda one: one.ground)


def _place(subject: str, centre: float, ground: float, width: float, lift: float, mirrored: bool) -> Placed:
    left, top = centre - width / 2, ground - lift - width
    shapes = []
    for shape in subject_shapes(subject):
        points = shape.points
        if mirrored:
            points = points * (-1.0, 1.0) + (1.0, 0.0)
        shapes.append(Shape(points * width + (left, top), shape.tone, shape.line * width, shape.plain))
    return Placed(tuple(shapes), left, top, width, ground)


def _sun_height(time: str, horizon: float, rng: Generator) -> float:
    return horizon - 0.05 if time == "sunset" else 0.17 + float(rng.uniform(-0.04, 0.04))


def _sky(time: str, sun: XY, horizon: float, rng: Generator) -> list[Shape]:
    x, y = sun
    if time == "sunset":
        bands = [
            _cloud(rng.uniform(0.1, 0.9), rng.uniform(0.08, 0.3), 0.14, 0.018, "dusk cloud") for _ in range(4)
        ]
        return [*bands, oval(x, y, 0.12, 0.12, "sun")]
    if time == "night":
        return [*_stars(horizon, rng), _crescent(x, y, 0.085)]
    clouds = [_cloud(1 - x + rng.uniform(-0.12, 0.1), rng.uniform(0.1, 0.2), 0.13, 0.045, "cloud")]
    clouds.append(_cloud(rng.uniform(0.4, 0.6), rng.uniform(0.22, 0.34), 0.09, 0.03, "cloud"))
    return [oval(x, y, 0.085, 0.085, "sun"), *clouds]


def _stars(horizon: float, rng: Generator) -> list[Shape]:
    places = rng.uniform((0.02, 0.02), (0.98, horizon - 0.1), (26, 2))
    sizes = rng.uniform(0.003, 0.0085, 26)
    return [_star(float(x), float(y), float(r)) for (x, y), r in zip(places, sizes, strict=True)]


def _star(x: float, y: float, r: float) -> Shape:
    return poly([(x - r, y), (x, y - 1.3 * r), (x + r, y), (x, y + 1.3 * r)], "star", plain=True)


def _crescent(x: float, y: float, r: float) -> Shape:
    outer = np.linspace(np.radians(60), np.radians(300), 22)
    inner = np.linspace(np.radians(300), np.radians(60), 22)
    round_edge = np.stack([x + r * np.cos(outer), y + r * np.sin(outer)], axis=1)
    hollow = np.stack([x + 0.45 * r + 0.88 * r * np.cos(inner), y + r * np.sin(inner) * 0.99], axis=1)
    hollow[:, 0] = np.minimum(hollow[:, 0], x + 0.52 * r)
    return Shape(np.concatenate([round_edge, hollow]), "moon")


def _cloud(x: float, y: float, rx: float, ry: float, tone: str) -> Shape:
    top = [(x - rx, y), (x - 0.75 * rx, y - 0.7 * ry), (x - 0.3 * rx, y - 0.8 * ry), (x, y - 1.5 * ry)]
    top += [(x + 0.4 * rx, y - 0.9 * ry), (x + 0.8 * rx, y - 0.6 * ry), (x + rx, y)]
    return blob([*top, (x + 0.5 * rx, y + 0.28 * ry), (x - 0.5 * rx, y + 0.28 * ry)], tone, plain=True)


def _ridge(base: float, height: float, waves: float, tone: str, rng: Generator) -> Shape:
    """A smooth line of hills down to the bottom edge."""
    x = np.linspace(-0.02, 1.02, 34)
    phase = rng.uniform(0, 6.3, 2)
    y = base - height * (
        0.55 + 0.3 * np.sin(waves * x + phase[0]) + 0.15 * np.sin(2.3 * waves * x + phase[1])
    )
    line: Points = np.concatenate([np.stack([x, y], axis=1), [[1.02, 1.02], [-0.02, 1.02]]])
    return Shape(line, tone)


def _ground(horizon: float, tone: str, rng: Generator) -> Shape:
    return _ridge(horizon, 0.025, 4.0, tone, rng)


def _meadow(horizon: float, sun_right: bool, rng: Generator) -> list[Shape]:
    shapes = [
        _ridge(horizon, 0.13, 5.0, "far hill", rng),
        _ridge(horizon + 0.02, 0.07, 3.2, "near hill", rng),
    ]
    for x in rng.uniform(0.02, 0.98, 4):
        y = horizon + 0.005
        shapes.append(oval(float(x), y - 0.028, 0.030, 0.034, "bush"))
    shapes.append(_ground(horizon + 0.07, "grass", rng))
    for x, y in rng.uniform((0.0, horizon + 0.10), (1.0, 0.99), (22, 2)):
        for lean in (-0.014, 0.0, 0.014):
            shapes.append(stroke([(x, y), (x + lean, y - 0.035)], "blade", 0.007, plain=True))
    for x, y in rng.uniform((0.02, horizon + 0.12), (0.98, 0.98), (9, 2)):
        shapes.append(oval(x, y, 0.010, 0.008, "daisy", plain=True))
    return shapes


def _beach(horizon: float, sun_right: bool, rng: Generator) -> list[Shape]:
    shore = horizon + 0.14
    shapes = [box(-0.01, horizon, 1.01, 1.02, "sea")]
    for x, y in rng.uniform((0.0, horizon + 0.015), (0.9, shore - 0.03), (12, 2)):
        shapes.append(stroke([(x, y), (x + 0.05, y - 0.006), (x + 0.1, y)], "foam", 0.007, plain=True))
    foam = _ridge(shore, 0.03, 7.0, "foam", rng)
    shapes += [Shape(foam.points, "foam", plain=True), Shape(foam.points + (0.0, 0.022), "sand")]
    x = 0.07 if sun_right else 0.93
    lean = 0.07 if sun_right else -0.07
    top = (x + lean, horizon - 0.26)
    trunk = [(x, shore + 0.12), (x + 0.25 * lean, horizon - 0.02), top]
    shapes.append(stroke(trunk, "wood", 0.026))
    for dx, dy in ((-0.15, 0.03), (-0.12, -0.07), (0.12, -0.07), (0.15, 0.03), (-0.06, 0.10), (0.07, 0.10)):
        tip = (top[0] + dx, top[1] + dy)
        middle = (top[0] + 0.55 * dx, top[1] + 0.5 * dy - 0.045)
        under = (top[0] + 0.5 * dx, top[1] + 0.5 * dy - 0.005)
        shapes.append(blob([top, middle, tip, under], "palm"))
    for px, py in rng.uniform((0.05, 0.74), (0.95, 0.97), (10, 2)):
        shapes.append(oval(px, py, 0.009, 0.006, "pebble", plain=True))
    return shapes


def _snow(horizon: float, sun_right: bool, rng: Generator) -> list[Shape]:
    shapes = []
    for x in sorted(rng.uniform(0.0, 1.0, 3)):
        half, peak = 0.30, horizon - rng.uniform(0.15, 0.24)
        shapes.append(poly([(x - half, horizon + 0.05), (x, peak), (x + half, horizon + 0.05)], "mountain"))
        cap = [(x - 0.09, peak + 0.072), (x, peak), (x + 0.09, peak + 0.072), (x + 0.03, peak + 0.052)]
        shapes.append(poly([*cap, (x, peak + 0.085), (x - 0.035, peak + 0.055)], "peak", plain=True))
    shapes.append(_ridge(horizon + 0.03, 0.05, 4.0, "snow shade", rng))
    for x in rng.uniform(0.02, 0.98, 6):
        shapes += _pine(
            float(x), horizon + 0.045 + float(rng.uniform(0, 0.02)), float(rng.uniform(0.10, 0.15))
        )
    shapes.append(_ground(horizon + 0.08, "snow", rng))
    for x, y in rng.uniform((0.0, horizon + 0.15), (0.9, 0.98), (7, 2)):
        shapes.append(stroke([(x, y), (x + 0.06, y - 0.008), (x + 0.12, y)], "snow shade", 0.008, plain=True))
    for x, y in rng.uniform((0.0, 0.0), (1.0, 1.0), (34, 2)):
        shapes.append(oval(x, y, 0.0065, 0.0065, "flake", plain=True))
    return shapes


def _pine(x: float, foot: float, height: float) -> list[Shape]:
    half = 0.32 * height
    shapes = [box(x - 0.006, foot - 0.15 * height, x + 0.006, foot, "wood", plain=True)]
    for low, high, wide in ((0.12, 0.62, 1.0), (0.36, 0.84, 0.78), (0.60, 1.0, 0.52)):
        base, tip = foot - low * height, foot - high * height
        shapes.append(poly([(x - wide * half, base), (x, tip), (x + wide * half, base)], "pine"))
    tip = foot - height
    shapes.append(
        poly(
            [(x - 0.26 * half, tip + 0.2 * height), (x, tip), (x + 0.26 * half, tip + 0.2 * height)],
            "snow",
            plain=True,
        )
    )
    return shapes


def _desert(horizon: float, sun_right: bool, rng: Generator) -> list[Shape]:
    shapes = []
    for x in (rng.uniform(0.1, 0.35), rng.uniform(0.65, 0.9)):
        top, half = horizon - rng.uniform(0.11, 0.18), rng.uniform(0.09, 0.14)
        slope = [(x - half - 0.05, horizon + 0.04), (x - half, top + 0.05), (x - half + 0.03, top)]
        shapes.append(
            poly(
                [*slope, (x + half - 0.03, top), (x + half, top + 0.05), (x + half + 0.05, horizon + 0.04)],
                "mesa",
            )
        )
    shapes += [
        _ridge(horizon + 0.05, 0.09, 5.5, "far dune", rng),
        _ridge(horizon + 0.12, 0.07, 4.0, "dune", rng),
    ]
    first = 0.10 if sun_right else 0.90
    shapes += _cactus(first, horizon + 0.16, 0.30)
    shapes += _cactus(1.02 - first + float(rng.uniform(-0.05, 0.02)), horizon + 0.08, 0.16)
    for x, y in rng.uniform((0.0, horizon + 0.17), (0.85, 0.97), (9, 2)):
        line = [(x, y), (x + 0.05, y - 0.012), (x + 0.1, y), (x + 0.15, y - 0.008)]
        shapes.append(stroke(line, "ripple", 0.008, plain=True))
    return shapes


def _cactus(x: float, foot: float, height: float) -> list[Shape]:
    wide = 0.20 * height
    left = [
        (x, foot - 0.35 * height),
        (x - 1.5 * wide, foot - 0.38 * height),
        (x - 1.6 * wide, foot - 0.70 * height),
    ]
    right = [
        (x, foot - 0.48 * height),
        (x + 1.5 * wide, foot - 0.5 * height),
        (x + 1.6 * wide, foot - 0.85 * height),
    ]
    return [
        stroke(left, "cactus", 0.65 * wide),
        stroke(right, "cactus", 0.65 * wide),
        stroke([(x, foot), (x, foot - 0.5 * height), (x, foot - height)], "cactus", wide),
    ]


def _city(horizon: float, sun_right: bool, rng: Generator) -> list[Shape]:
    shapes = []
    for tone, low, high, foot in (("far block", 0.20, 0.36, 0.02), ("block", 0.10, 0.26, 0.06)):
        x = -0.03
        while x < 1.0:
            wide = rng.uniform(0.10, 0.16)
            top = horizon - rng.uniform(low, high)
            shapes.append(box(x, top, x + wide, horizon + foot, tone))
            if tone == "block":
                shapes += _windows(x, top, wide, horizon, rng)
            x += wide + rng.uniform(0.0, 0.02)
    shapes.append(box(-0.01, horizon + 0.05, 1.01, 1.02, "street"))
    shapes.append(box(-0.01, horizon + 0.05, 1.01, horizon + 0.09, "kerb"))
    for step in range(4):
        x = step * 0.29 + rng.uniform(-0.02, 0.02)
        shapes.append(
            poly([(x, 0.80), (x + 0.13, 0.80), (x + 0.12, 0.825), (x - 0.01, 0.825)], "lane", plain=True)
        )
    return shapes


def _windows(x: float, top: float, wide: float, horizon: float, rng: Generator) -> list[Shape]:
    shapes = []
    columns = 3 if wide > 0.13 else 2
    cell = wide / columns
    for row in range(int((horizon + 0.02 - top) / 0.05)):
        for column in range(columns):
            left, upper = x + (column + 0.28) * cell, top + 0.02 + 0.05 * row
            tone = "window" if rng.random() < 0.7 else "dark window"
            shapes.append(box(left, upper, left + 0.44 * cell, upper + 0.025, tone, plain=True))
    return shapes


_PLACES = {"meadow": _meadow, "beach": _beach, "snow": _snow, "desert": _desert, "city": _city}
