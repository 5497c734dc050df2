"""Plots on the screens: SVG with words on it and colours from the style sheet, light and dark.

They stand in ordinary Markdown, which Gradio sanitizes. It drops `viewBox`, so a plot does not shrink: it is made once
for broad screens and once for telephones, and the style sheet shows one of them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from app.ui.drawn import Markup, tag

BROAD, NARROW = 760, 316
"""Widths of a plot, in pixels."""
LETTER = 6.9
"""Of a letter in the plots' type, in pixels, about."""


def in_both_widths(title: str, draw: Callable[[int], tuple[float, Sequence[Markup]]]) -> Markup:
    """Returns a plot for broad screens and one for telephones.

    Args:
        title: what it shows, in a sentence.
        draw: makes the parts for a width; returns the height with them.
    """
    both = [
        tag("div", _svg(title, width, *draw(width)), class_=kind)
        for kind, width in (("broad", BROAD), ("narrow", NARROW))
    ]
    return tag("div", both, class_="both-widths")


def text(x: float, y: float, words: str, anchor: str = "start", kind: str | None = None) -> Markup:
    """Returns words at a place."""
    return tag("text", words, x=round(x, 1), y=round(y, 1), text_anchor=anchor, class_=kind)


def path(way: str, kind: str) -> Markup:
    """Returns a line; what it looks like is the style sheet's matter."""
    return tag("path", d=way, class_=kind)


def circle(x: float, y: float, radius: float, kind: str) -> Markup:
    """Returns a dot."""
    return tag("circle", cx=round(x, 1), cy=round(y, 1), r=radius, class_=kind)


def wide(words: str) -> float:
    """Returns how wide words are, in pixels, about: a letter of Chinese or Japanese is as wide as two."""
    return LETTER * sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in words)


def short(words: str, pixels: float) -> str:
    """Returns words that fit into a width."""
    room = max(3 * LETTER, pixels)
    if wide(words) <= room:
        return words
    while wide(words) > room - LETTER:
        words = words[:-1]
    return words + "…"


def _svg(title: str, width: float, height: float, parts: Sequence[Markup]) -> Markup:
    return tag("svg", tag("title", title), list(parts), class_="chart", width=width, height=round(height))
