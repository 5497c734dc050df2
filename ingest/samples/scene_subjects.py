"""The twelve subjects as outlines in a unit box (feet at y = 1).

Every style fills and outlines the same shapes in its own manner, so a subject is recognisable in all of them.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ingest.samples.scene_shapes import XY, Shape, blob, box, oval, poly, stroke


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
    trunk = [(0.44, 0.50), (0.56, 0.50), (0.57, 0.86), (0.68, 1.0), (0.33, 1.0), (0.43, 0.86)]
    return [
        poly(trunk, "wood"),
        stroke([(0.51, 0.80), (0.62, 0.72), (0.72, 0.60)], "wood", 0.05),
        oval(0.26, 0.45, 0.24, 0.20, "main"),
        oval(0.74, 0.45, 0.24, 0.20, "main"),
        oval(0.36, 0.23, 0.23, 0.20, "main"),
        oval(0.64, 0.23, 0.23, 0.20, "main"),
        oval(0.50, 0.38, 0.22, 0.22, "main", plain=True),
        stroke([(0.40, 0.52), (0.46, 0.56), (0.53, 0.52), (0.60, 0.56)], "dark", 0.022, plain=True),
        stroke([(0.44, 0.33), (0.50, 0.37), (0.57, 0.33)], "dark", 0.022, plain=True),
        stroke([(0.24, 0.21), (0.29, 0.14), (0.37, 0.11)], "light", 0.035, plain=True),
        stroke([(0.12, 0.44), (0.15, 0.38), (0.21, 0.34)], "light", 0.030, plain=True),
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
