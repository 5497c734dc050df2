"""The drawing of docs/results/strategies.md: recall against what was lost, with intervals; discs grow with the cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from app.bench.comparison import Criterion, PairedDifference, difference
from app.bench.results import VIEWS, Cell

WIDE, TALL, LEFT, TOP, RIGHT, BOTTOM = 900, 460, 46, 34, 150, 44
"""Of a panel and its margins, in pixels; names have their place at the right."""
OURS, REST, QUIET, INK = "#c2410c", "#1d4ed8", "#9ca3af", "#374151"
LETTER, LONGEST = 12, 25
"""The height of a name's line, in pixels, and the most letters of it."""


@dataclass(frozen=True)
class Dot:
    """A strategy in a panel."""

    label: str  # of the strategy
    recall: PairedDifference  # points, with its interval
    lost: PairedDifference  # transfer: points, negative where something was lost
    cost: float  # processor seconds
    is_named: bool  # whether its name stands beside it


def recall_with_interval(cells: Sequence[Cell], figure: str) -> PairedDifference | None:
    """Returns a figure of what was taught with its interval over seeds and things, against having found nothing."""
    return difference(cells, [_nothing(cell) for cell in cells], Criterion("trained", "told", figure))


def _nothing(cell: Cell) -> Cell:
    slices = []
    for run in cell.slices:
        none = dict.fromkeys(VIEWS, np.zeros(len(run.clusters), dtype=np.bool_))
        slices.append(replace(run, learned=none, last=none, last_ten=none))
    return replace(cell, slices=tuple(slices))


def drawing(panels: Mapping[str, Sequence[Dot]]) -> str:
    """Returns the whole drawing as SVG, a panel below another; white behind it, so that it reads on any page."""
    drawn = [_panel(name, dots, n * TALL) for n, (name, dots) in enumerate(panels.items()) if dots]
    tall = TALL * len(panels)
    said = "; ".join(f"{name}: " + _said(dots) for name, dots in panels.items() if dots)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {tall}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{INK}">\n<title>Recall and loss</title>\n'
        f'<desc>{escape(said)}</desc>\n<rect width="{WIDE}" height="{tall}" fill="#fff"/>\n'
        + "".join(drawn)
        + "</svg>\n"
    )


def _said(dots: Sequence[Dot]) -> str:
    return ", ".join(
        f"{dot.label} {dot.recall.mean:.0f}, lost {abs(dot.lost.mean):.0f}" for dot in dots if dot.is_named
    )


def _panel(name: str, dots: Sequence[Dot], top: float) -> str:
    """Draws the dots of a sequence: what was lost to the right, recall upwards, from 0 to 100."""
    most = 10 * math.ceil(max(1.0, *(-dot.lost.low for dot in dots)) / 10)
    least = 10 * math.floor(min(0.0, *(-dot.lost.high for dot in dots)) / 10)
    right, foot = WIDE - RIGHT, top + TALL - BOTTOM

    def across(lost: float) -> float:
        return LEFT + (right - LEFT) * (lost - least) / (most - least)

    def up(recall: float) -> float:
        return foot - (foot - top - TOP) * min(max(recall, 0), 100) / 100

    parts = [f'<text x="{LEFT}" y="{top + 18}" font-size="14" font-weight="600">{escape(name)}</text>']
    for value in range(0, 101, 20):
        parts.append(
            f'<path d="M{LEFT} {up(value):.1f}H{right}" stroke="#e5e7eb"/>'
            f'<text x="{LEFT - 6}" y="{up(value) + 4:.1f}" text-anchor="end">{value}</text>'
        )
    for value in range(int(least), int(most) + 1, 10):
        parts.append(f'<text x="{across(value):.1f}" y="{foot + 16}" text-anchor="middle">{value}</text>')
    parts.append(
        f'<text x="{(LEFT + right) / 2}" y="{foot + 34}" text-anchor="middle">points lost since taught</text>'
    )
    parts.append(f'<text x="{LEFT - 34}" y="{top + TOP - 8}">R@1, %</text>')
    dearest = max(dot.cost for dot in dots) or 1.0
    places = [(dot, across(-dot.lost.mean), up(dot.recall.mean)) for dot in dots]
    for dot, x, y in sorted(places, key=lambda place: (place[0].is_named, -place[0].cost)):
        ends = across(-dot.lost.high), across(-dot.lost.low), up(dot.recall.low), up(dot.recall.high)
        parts.append(_dot(dot, x, y, ends, 3 + 11 * math.sqrt(dot.cost / dearest)))
    return "\n".join([*parts, *_names([place for place in places if place[0].is_named], right), ""])


def _dot(dot: Dot, x: float, y: float, ends: tuple[float, float, float, float], radius: float) -> str:
    colour = OURS if dot.label.startswith("evergreen") else REST if dot.is_named else QUIET
    few = len(dot.recall.seeds) < 2
    left, right, low, high = ends
    return (
        f'<g stroke="{colour}" fill="{colour}"><title>{escape(dot.label)}</title>'
        f'<path d="M{left:.1f} {y:.1f}H{right:.1f}M{x:.1f} {low:.1f}V{high:.1f}" stroke-width="{0.6 if few else 1.6}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill-opacity=".3"/></g>'
    )


def _names(places: Sequence[tuple[Dot, float, float]], right: float) -> list[str]:
    """Draws names at the right, none over another, each with a line to its dot."""
    lines, last = [], -math.inf
    for dot, x, y in sorted(places, key=lambda place: place[2]):
        at = last = max(y, last + LETTER)
        name = dot.label if len(dot.label) < LONGEST else f"{dot.label[: LONGEST - 2]}…"
        lines.append(
            f'<path d="M{x:.1f} {y:.1f}L{right + 4} {at:.1f}" stroke="{QUIET}" stroke-width=".5"/>'
            f'<text x="{right + 7}" y="{at + 4:.1f}">{escape(name)}</text>'
        )
    return lines
