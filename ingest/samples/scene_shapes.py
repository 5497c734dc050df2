"""Subjects as outlines in a unit box (x right, y down, feet at y = 1), without any style.

Every style fills and outlines the same shapes in its own manner, so a subject is recognisable in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
XY = tuple[float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One outline.

    Attributes:
        points: (n, 2) float64, in the unit box of the subject or of the picture.
        tone: name of its colour: ``main``, ``light`` and ``dark`` follow the subject, others are fixed.
        line: stroke width as a share of the box; 0 means a closed, filled outline.
        plain: never outlined or hatched (small details, far things).
    """

    points: Points
    tone: str
    line: float = 0.0
    plain: bool = False


def poly(points: Sequence[XY], tone: str, *, plain: bool = False) -> Shape:
    """A closed shape with straight edges."""
    return Shape(np.asarray(points, dtype=np.float64), tone, plain=plain)


def box(left: float, top: float, right: float, bottom: float, tone: str, *, plain: bool = False) -> Shape:
    """An upright rectangle."""
    return poly([(left, top), (right, top), (right, bottom), (left, bottom)], tone, plain=plain)


def oval(
    cx: float, cy: float, rx: float, ry: float, tone: str, *, turn: float = 0.0, plain: bool = False
) -> Shape:
    """An ellipse, turned clockwise by ``turn`` degrees."""
    angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
    x, y = rx * np.cos(angle), ry * np.sin(angle)
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    return Shape(np.stack([cx + x * c - y * s, cy + x * s + y * c], axis=1), tone, plain=plain)


def blob(points: Sequence[XY], tone: str, *, plain: bool = False) -> Shape:
    """A closed smooth outline through the points (Catmull-Rom)."""
    return Shape(smooth(points, closed=True), tone, plain=plain)


def stroke(points: Sequence[XY], tone: str, width: float, *, plain: bool = False) -> Shape:
    """An open smooth line through the points."""
    return Shape(smooth(points, closed=False), tone, line=width, plain=plain)


def smooth(points: Sequence[XY], *, closed: bool, steps: int = 7) -> Points:
    """Catmull-Rom spline through the points, (n * steps, 2)."""
    knots = np.asarray(points, dtype=np.float64)
    if closed:
        padded = np.concatenate([knots[-1:], knots, knots[:2]])
    else:
        padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    t = np.linspace(0, 1, steps, endpoint=False)[:, None]
    pieces = []
    for a, b, c, d in zip(padded, padded[1:], padded[2:], padded[3:], strict=False):
        pieces.append(
            0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
        )
    if not closed:
        pieces.append(knots[-1:])
    return np.concatenate(pieces)


def _house() -> list[Shape]:
    return [
        box(0.68, 0.10, 0.80, 0.40, "dark"),
        box(0.12, 0.44, 0.88, 1.00, "main"),
        poly([(0.01, 0.50), (0.50, 0.05), (0.99, 0.50)], "dark"),
        box(0.41, 0.66, 0.59, 1.00, "wood"),
        box(0.20, 0.58, 0.34, 0.75, "glass"),
        box(0.66, 0.58, 0.80, 0.75, "glass"),
        oval(0.50, 0.35, 0.07, 0.07, "glass"),
    ]


def _boat() -> list[Shape]:
    hull = [(0.01, 0.68), (0.99, 0.68), (0.93, 0.83), (0.82, 0.96), (0.22, 0.96), (0.09, 0.84)]
    return [
        box(0.475, 0.06, 0.515, 0.70, "wood"),
        poly([(0.54, 0.09), (0.74, 0.32), (0.93, 0.61), (0.54, 0.61)], "light"),
        poly([(0.45, 0.17), (0.45, 0.61), (0.12, 0.61), (0.30, 0.40)], "main"),
        poly(hull, "main"),
        poly([(0.03, 0.73), (0.97, 0.73), (0.95, 0.78), (0.06, 0.78)], "dark", plain=True),
        poly([(0.515, 0.01), (0.66, 0.05), (0.515, 0.09)], "dark"),
    ]


def _tree() -> list[Shape]:
    crown = [(0.50, 0.01), (0.72, 0.07), (0.86, 0.20), (0.95, 0.38), (0.88, 0.58), (0.68, 0.68)]
    crown += [(0.50, 0.66), (0.32, 0.69), (0.11, 0.59), (0.05, 0.40), (0.14, 0.20), (0.29, 0.07)]
    return [
        poly([(0.44, 0.55), (0.57, 0.55), (0.58, 0.86), (0.66, 1.0), (0.35, 1.0), (0.43, 0.86)], "wood"),
        stroke([(0.51, 0.72), (0.60, 0.64), (0.66, 0.56)], "wood", 0.045),
        blob(crown, "main"),
        oval(0.34, 0.26, 0.15, 0.12, "light", turn=-25, plain=True),
        oval(0.66, 0.47, 0.13, 0.10, "dark", turn=-20, plain=True),
        oval(0.32, 0.52, 0.09, 0.07, "dark", turn=10, plain=True),
        oval(0.62, 0.19, 0.08, 0.06, "light", plain=True),
    ]


def _car() -> list[Shape]:
    body = [(0.01, 0.64), (0.06, 0.55), (0.20, 0.52), (0.33, 0.29), (0.68, 0.29), (0.82, 0.53)]
    body += [(0.95, 0.57), (0.99, 0.68), (0.98, 0.84), (0.02, 0.84)]
    return [
        poly(body, "main"),
        poly([(0.27, 0.53), (0.36, 0.35), (0.48, 0.35), (0.48, 0.53)], "glass"),
        poly([(0.53, 0.35), (0.65, 0.35), (0.75, 0.53), (0.53, 0.53)], "glass"),
        box(0.03, 0.72, 0.97, 0.77, "dark", plain=True),
        oval(0.95, 0.64, 0.030, 0.045, "lamp"),
        oval(0.24, 0.85, 0.135, 0.135, "ink"),
        oval(0.76, 0.85, 0.135, 0.135, "ink"),
        oval(0.24, 0.85, 0.060, 0.060, "cream", plain=True),
        oval(0.76, 0.85, 0.060, 0.060, "cream", plain=True),
    ]


def _fish() -> list[Shape]:
    body = [(0.01, 0.52), (0.14, 0.34), (0.36, 0.25), (0.58, 0.33), (0.76, 0.48)]
    body += [(0.76, 0.55), (0.58, 0.71), (0.36, 0.79), (0.14, 0.70)]
    return [
        blob([(0.28, 0.30), (0.40, 0.10), (0.62, 0.18), (0.60, 0.36)], "dark"),
        blob([(0.34, 0.72), (0.42, 0.92), (0.56, 0.86), (0.54, 0.70)], "dark"),
        poly([(0.70, 0.51), (0.99, 0.22), (0.91, 0.51), (0.99, 0.82)], "dark"),
        blob(body, "main"),
        stroke([(0.30, 0.33), (0.36, 0.51), (0.30, 0.72)], "dark", 0.03, plain=True),
        stroke([(0.48, 0.34), (0.53, 0.51), (0.48, 0.70)], "light", 0.05, plain=True),
        stroke([(0.60, 0.39), (0.64, 0.51), (0.60, 0.65)], "light", 0.04, plain=True),
        oval(0.17, 0.46, 0.060, 0.060, "cream"),
        oval(0.165, 0.46, 0.030, 0.030, "ink", plain=True),
    ]


def _bird() -> list[Shape]:
    body = [(0.16, 0.26), (0.26, 0.10), (0.44, 0.11), (0.53, 0.27), (0.70, 0.42), (0.83, 0.56)]
    body += [(0.74, 0.72), (0.52, 0.80), (0.30, 0.74), (0.18, 0.54)]
    return [
        stroke([(0.44, 0.76), (0.43, 0.97)], "beak", 0.035),
        stroke([(0.56, 0.76), (0.57, 0.97)], "beak", 0.035),
        stroke([(0.33, 0.98), (0.43, 0.96), (0.49, 0.98)], "beak", 0.03, plain=True),
        stroke([(0.48, 0.98), (0.57, 0.96), (0.63, 0.98)], "beak", 0.03, plain=True),
        poly([(0.70, 0.50), (0.99, 0.46), (0.97, 0.60), (0.76, 0.66)], "dark"),
        poly([(0.18, 0.22), (0.00, 0.30), (0.18, 0.35)], "beak"),
        blob(body, "main"),
        oval(0.29, 0.56, 0.10, 0.13, "light", turn=20, plain=True),
        blob([(0.42, 0.42), (0.58, 0.38), (0.74, 0.52), (0.82, 0.64), (0.60, 0.66), (0.46, 0.56)], "dark"),
        oval(0.29, 0.24, 0.035, 0.040, "ink", plain=True),
        oval(0.28, 0.23, 0.012, 0.014, "cream", plain=True),
    ]


def _cat() -> list[Shape]:
    tail = [(0.68, 0.90), (0.90, 0.88), (0.95, 0.66), (0.84, 0.52)]
    body = [(0.50, 0.44), (0.68, 0.56), (0.76, 0.80), (0.72, 0.98), (0.28, 0.98), (0.24, 0.80), (0.32, 0.56)]
    return [
        stroke(tail, "main", 0.10),
        blob(body, "main"),
        oval(0.50, 0.78, 0.12, 0.17, "light", plain=True),
        poly([(0.22, 0.34), (0.23, 0.02), (0.47, 0.17)], "main"),
        poly([(0.78, 0.34), (0.77, 0.02), (0.53, 0.17)], "main"),
        poly([(0.28, 0.22), (0.28, 0.10), (0.38, 0.18)], "dark", plain=True),
        poly([(0.72, 0.22), (0.72, 0.10), (0.62, 0.18)], "dark", plain=True),
        oval(0.50, 0.34, 0.285, 0.225, "main"),
        oval(0.39, 0.32, 0.042, 0.055, "ink", plain=True),
        oval(0.61, 0.32, 0.042, 0.055, "ink", plain=True),
        oval(0.38, 0.30, 0.014, 0.018, "cream", plain=True),
        oval(0.60, 0.30, 0.014, 0.018, "cream", plain=True),
        poly([(0.465, 0.41), (0.535, 0.41), (0.50, 0.45)], "nose", plain=True),
        stroke([(0.34, 0.42), (0.12, 0.38)], "ink", 0.010, plain=True),
        stroke([(0.34, 0.45), (0.13, 0.48)], "ink", 0.010, plain=True),
        stroke([(0.66, 0.42), (0.88, 0.38)], "ink", 0.010, plain=True),
        stroke([(0.66, 0.45), (0.87, 0.48)], "ink", 0.010, plain=True),
        stroke([(0.43, 0.86), (0.42, 0.97)], "dark", 0.018, plain=True),
        stroke([(0.57, 0.86), (0.58, 0.97)], "dark", 0.018, plain=True),
    ]


def _flower() -> list[Shape]:
    shapes = [
        stroke([(0.50, 0.40), (0.52, 0.72), (0.50, 1.0)], "leaf", 0.05),
        blob([(0.51, 0.84), (0.64, 0.66), (0.84, 0.66), (0.70, 0.82)], "leaf"),
        blob([(0.50, 0.92), (0.36, 0.74), (0.16, 0.76), (0.32, 0.90)], "leaf"),
    ]
    for step in range(7):
        angle = 2 * np.pi * (step + 0.25) / 7
        x, y = 0.50 + 0.20 * np.cos(angle), 0.32 + 0.20 * np.sin(angle)
        shapes.append(oval(x, y, 0.145, 0.105, "main", turn=float(np.degrees(angle))))
    return [*shapes, oval(0.50, 0.32, 0.10, 0.10, "core")]


def _umbrella() -> list[Shape]:
    def rib(x: float) -> list[XY]:
        return [
            (0.50 + (x - 0.50) * np.sin(a), 0.50 - 0.42 * np.cos(a)) for a in np.linspace(0, np.pi / 2, 9)
        ]

    canopy = [*reversed(rib(0.0)), *rib(1.0)[1:]]
    canopy += [
        (0.86, 0.44),
        (0.74, 0.50),
        (0.62, 0.44),
        (0.50, 0.50),
        (0.38, 0.44),
        (0.26, 0.50),
        (0.14, 0.44),
    ]
    middle = [*reversed(rib(0.26)), *rib(0.74)[1:], (0.62, 0.44), (0.50, 0.50), (0.38, 0.44)]
    return [
        stroke(
            [(0.50, 0.44), (0.50, 0.68), (0.50, 0.90), (0.56, 0.985), (0.65, 0.95), (0.66, 0.87)],
            "wood",
            0.04,
        ),
        stroke([(0.50, 0.02), (0.50, 0.10)], "wood", 0.035),
        poly(canopy, "main"),
        poly(middle, "light"),
    ]


def _cup() -> list[Shape]:
    body = [(0.12, 0.40), (0.72, 0.40), (0.70, 0.66), (0.62, 0.90), (0.22, 0.90), (0.14, 0.66)]
    return [
        stroke([(0.30, 0.27), (0.25, 0.19), (0.33, 0.12), (0.29, 0.03)], "steam", 0.03, plain=True),
        stroke([(0.50, 0.27), (0.45, 0.19), (0.53, 0.12), (0.49, 0.03)], "steam", 0.03, plain=True),
        oval(0.43, 0.92, 0.42, 0.075, "light"),
        stroke([(0.68, 0.48), (0.88, 0.46), (0.93, 0.60), (0.84, 0.73), (0.66, 0.74)], "main", 0.085),
        poly(body, "main"),
        oval(0.42, 0.40, 0.30, 0.075, "light"),
        oval(0.42, 0.41, 0.245, 0.050, "coffee", plain=True),
        oval(0.27, 0.63, 0.045, 0.130, "light", turn=6, plain=True),
    ]


def _balloon() -> list[Shape]:
    body = [(0.50, 0.01), (0.72, 0.07), (0.84, 0.26), (0.78, 0.46), (0.62, 0.60), (0.50, 0.65)]
    body += [(0.38, 0.60), (0.22, 0.46), (0.16, 0.26), (0.28, 0.07)]
    return [
        stroke([(0.50, 0.68), (0.56, 0.78), (0.44, 0.90), (0.50, 1.0)], "string", 0.018, plain=True),
        poly([(0.50, 0.61), (0.58, 0.71), (0.42, 0.71)], "dark"),
        blob(body, "main"),
        oval(0.34, 0.22, 0.070, 0.115, "light", turn=25, plain=True),
    ]


def _butterfly() -> list[Shape]:
    shapes: list[Shape] = []
    for side in (-1, 1):

        def at(x: float, y: float, side: int = side) -> XY:
            return 0.50 + side * x, y

        upper = [
            at(0.02, 0.44),
            at(0.12, 0.20),
            at(0.34, 0.04),
            at(0.49, 0.12),
            at(0.44, 0.38),
            at(0.24, 0.52),
        ]
        lower = [
            at(0.02, 0.50),
            at(0.24, 0.50),
            at(0.40, 0.64),
            at(0.36, 0.86),
            at(0.20, 0.92),
            at(0.07, 0.74),
        ]
        shapes += [blob(lower, "dark"), blob(upper, "main")]
        shapes.append(oval(*at(0.32, 0.23), 0.075, 0.075, "light", plain=True))
        shapes.append(oval(*at(0.24, 0.72), 0.060, 0.060, "light", plain=True))
        shapes.append(stroke([at(0.01, 0.26), at(0.06, 0.12), at(0.13, 0.07)], "ink", 0.016, plain=True))
    return [*shapes, oval(0.50, 0.52, 0.035, 0.28, "ink")]


@cache
def subject_shapes(subject: str) -> tuple[Shape, ...]:
    """The outlines of a subject, back to front.

    Raises:
        KeyError: the subject is not one of `SUBJECTS`.
    """
    return tuple(_DRAWINGS[subject]())


_DRAWINGS = {
    "house": _house,
    "boat": _boat,
    "tree": _tree,
    "car": _car,
    "fish": _fish,
    "bird": _bird,
    "cat": _cat,
    "flower": _flower,
    "umbrella": _umbrella,
    "cup": _cup,
    "balloon": _balloon,
    "butterfly": _butterfly,
}
# These hang in the air; everything else stands on the ground.
FLOATING = frozenset({"balloon", "butterfly", "fish"})
