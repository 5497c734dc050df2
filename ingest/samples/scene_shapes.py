"""Outlines in a unit square (x right, y down), without any style: polygons, ellipses, smooth lines."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
XY = tuple[float, float]
_ANGLES = np.linspace(0, 2 * np.pi, 32, endpoint=False)
_CIRCLE: Points = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One outline."""

    points: Points  # (n, 2) float64, in the unit box of the subject or of the picture
    tone: str  # name of its colour: ``main``, ``light`` and ``dark`` follow the subject, others are fixed
    line: float = 0.0  # stroke width as a share of the box; 0 means a closed, filled outline
    plain: bool = False  # never outlined or hatched (small details, far things)


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
    x, y = (_CIRCLE * (rx, ry)).T
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    return Shape(np.stack([cx + x * c - y * s, cy + x * s + y * c], axis=1), tone, plain=plain)


def blob(points: Sequence[XY], tone: str, *, plain: bool = False) -> Shape:
    """A closed smooth outline through the points (Catmull-Rom)."""
    return Shape(smooth(points, closed=True), tone, plain=plain)


def stroke(points: Sequence[XY], tone: str, width: float, *, plain: bool = False) -> Shape:
    """An open smooth line through the points."""
    return Shape(smooth(points, closed=False), tone, line=width, plain=plain)


def smooth(points: Sequence[XY], *, closed: bool) -> Points:
    """Catmull-Rom spline through the points, about seven points a knot: (m, 2)."""
    knots = np.asarray(points, dtype=np.float64)
    if len(knots) == 2:
        return knots
    if closed:
        padded = np.concatenate([knots[-1:], knots, knots[:2]])
    else:
        padded = np.concatenate([2 * knots[:1] - knots[1:2], knots, 2 * knots[-1:] - knots[-2:-1]])
    windows = np.stack([padded[:-3], padded[1:-2], padded[2:-1], padded[3:]], axis=1)  # (pieces, 4, 2)
    curve = (_SPLINE @ windows).reshape(-1, 2)
    return curve if closed else np.concatenate([curve, knots[-1:]])


def _spline_weights(steps: int) -> Points:
    """How much of four neighbouring knots each point of a Catmull-Rom piece takes, (steps, 4)."""
    t = np.linspace(0, 1, steps, endpoint=False)
    powers = np.stack([np.ones_like(t), t, t**2, t**3], axis=1)
    basis = np.array([[0, 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]], dtype=np.float64)
    weights: Points = 0.5 * (powers @ basis)
    return weights


_SPLINE = _spline_weights(7)
