"""The twelve subjects as outlines in a unit box (feet at y = 1).

Every style fills and outlines the same shapes in its own manner, so a subject is recognisable in all of them.
Those that follow no rule are in `scene_subjects.json`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ingest.samples.scene_shapes import XY, Shape, blob, box, oval, poly, stroke


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

    edge = [(0.86, 0.44), (0.74, 0.50), (0.62, 0.44), (0.50, 0.50), (0.38, 0.44), (0.26, 0.50), (0.14, 0.44)]
    handle = [(0.50, 0.44), (0.50, 0.68), (0.50, 0.90), (0.56, 0.985), (0.65, 0.95), (0.66, 0.87)]
    middle = [*reversed(rib(0.26)), *rib(0.74)[1:], *edge[2:5]]
    return [
        stroke(handle, "wood", 0.04),
        stroke([(0.50, 0.02), (0.50, 0.10)], "wood", 0.035),
        poly([*reversed(rib(0.0)), *rib(1.0)[1:], *edge], "main"),
        poly(middle, "light"),
    ]


def _butterfly() -> list[Shape]:
    def wing(side: int, *points: XY) -> list[XY]:
        return [(0.50 + side * x, y) for x, y in points]

    upper = [(0.02, 0.44), (0.12, 0.20), (0.34, 0.04), (0.49, 0.12), (0.44, 0.38), (0.24, 0.52)]
    lower = [(0.02, 0.50), (0.24, 0.50), (0.40, 0.64), (0.36, 0.86), (0.20, 0.92), (0.07, 0.74)]
    shapes: list[Shape] = []
    for side in (-1, 1):
        shapes += [blob(wing(side, *lower), "dark"), blob(wing(side, *upper), "main")]
        shapes.append(oval(0.50 + side * 0.32, 0.23, 0.075, 0.075, "light", plain=True))
        shapes.append(oval(0.50 + side * 0.24, 0.72, 0.060, 0.060, "light", plain=True))
        antenna = wing(side, (0.01, 0.26), (0.06, 0.12), (0.13, 0.07))
        shapes.append(stroke(antenna, "ink", 0.016, plain=True))
    return [*shapes, oval(0.50, 0.52, 0.035, 0.28, "ink")]


def _shape(draw: str, at: list[Any], tone: str, **drawn: Any) -> Shape:
    place = at if draw in ("box", "oval") else [at]  # four numbers, or one list of points
    return _DRAW[draw](*place, tone, **drawn)


@cache
def subject_shapes(subject: str) -> tuple[Shape, ...]:
    """The outlines of a subject, back to front.

    Raises:
        KeyError: the subject is not one of `SUBJECTS`.
    """
    if subject in _COMPUTED:
        return tuple(_COMPUTED[subject]())
    return tuple(_shape(**shape) for shape in _OUTLINES[subject])


_OUTLINES = json.loads(Path(__file__).with_name("scene_subjects.json").read_text(encoding="utf-8"))
_DRAW: dict[str, Callable[..., Shape]] = {
    "box": box,
    "oval": oval,
    "poly": poly,
    "blob": blob,
    "stroke": stroke,
}
_COMPUTED = {"flower": _flower, "umbrella": _umbrella, "butterfly": _butterfly}
# These hang in the air; everything else stands on the ground.
FLOATING = frozenset({"balloon", "butterfly", "fish"})
