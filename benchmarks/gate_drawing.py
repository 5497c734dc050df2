"""Small charts as SVG text: what docs/gate.md needs and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

WIDTH = 680
INK, PALE, GRID = "#2b2a27", "#8a867d", "#e4e1da"
COLOURS = {"promote": "#41805e", "review": "#c98a1b", "reject": "#b3392f", "plain": "#5f7f9c"}
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif"


@dataclass
class Drawing:
    """An SVG picture, white behind so that it reads on any page."""

    height: int
    says: str
    parts: list[str] = field(default_factory=list)

    def text(
        self, x: float, y: float, words: str, *, size: int = 13, ink: str = INK, anchor: str = "start"
    ) -> None:
        """Writes words at a base line; `anchor` is start, middle or end."""
        how = f'font-size="{size}" fill="{ink}" text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" {how}>{escape(words)}</text>')

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, ink: str = GRID, wide: float = 1, dash: str = ""
    ) -> None:
        """Draws a straight line."""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
        self.parts.append(f'<line {ends} stroke="{ink}" stroke-width="{wide}"{dashes}/>')

    def dot(self, x: float, y: float, *, ink: str, radius: float = 5) -> None:
        """Draws a filled circle."""
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{ink}"/>')

    def box(self, x: float, y: float, wide: float, high: float, *, ink: str) -> None:
        """Draws a filled rectangle."""
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" rx="2" fill="{ink}"/>'
        )

    def path(self, points: Sequence[tuple[float, float]], *, ink: str) -> None:
        """Draws a line through points."""
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{joined}" fill="none" stroke="{ink}" stroke-width="2"/>')

    def write(self, path: Path) -> None:
        """Writes the picture."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{WIDTH}" '
            f'height="{self.height}" font-family="{escape(_FONT)}" role="img" aria-label="{escape(self.says)}">'
        )
        back = f'<rect width="{WIDTH}" height="{self.height}" fill="#ffffff"/>'
        path.write_text("\n".join([head, back, *self.parts, "</svg>"]) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Bound:
    """One line of a chart of changes: what was measured, what it is at least, and the verdict's colour."""

    name: str
    change: float
    low: float
    verdict: str
    note: str


def changes(
    says: str, bounds: Sequence[Bound], *, limit: float, limit_name: str, span: tuple[float, float]
) -> Drawing:
    """Draws changes in points with their lower bounds, beside zero and what the policy allows."""
    drawing = Drawing(70 + 34 * len(bounds), says)
    left, right, top = 150.0, 500.0, 30.0

    def x(value: float) -> float:
        return left + (right - left) * (min(max(value, span[0]), span[1]) - span[0]) / (span[1] - span[0])

    bottom = top + 34 * len(bounds)
    drawing.line(x(0), top - 8, x(0), bottom, ink=PALE)
    drawing.text(x(0), bottom + 18, "no change", size=11, ink=PALE, anchor="middle")
    if limit != 0:
        drawing.line(x(limit), top - 8, x(limit), bottom, ink=COLOURS["reject"], dash="4 3")
        drawing.text(
            x(limit),
            bottom + 32,
            f"{limit:+g} points: {limit_name}".replace("-", "−"),
            size=11,
            ink=COLOURS["reject"],
            anchor="middle",
        )
    for n, bound in enumerate(bounds):
        y, ink = top + 34 * n + 12, COLOURS[bound.verdict]
        drawing.text(left - 12, y + 4, bound.name, anchor="end")
        drawing.line(x(bound.low), y, x(bound.change), y, ink=ink, wide=3)
        drawing.line(x(bound.low), y - 6, x(bound.low), y + 6, ink=ink, wide=2)
        drawing.dot(x(bound.change), y, ink=ink)
        drawing.text(right + 14, y + 4, bound.note, ink=ink, size=12)
    return drawing


def chart(
    says: str, *, height: int, across: tuple[float, float], up: tuple[float, float], labels: tuple[str, str]
) -> tuple[Drawing, Callable[[float, float], tuple[float, float]]]:
    """Returns an empty chart with its axes, and where a point of it lies."""
    drawing = Drawing(height, says)
    left, right, top, bottom = 60.0, 500.0, 20.0, height - 48.0

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            left + (right - left) * (x - across[0]) / (across[1] - across[0]),
            bottom - (bottom - top) * (y - up[0]) / (up[1] - up[0]),
        )

    for step in range(5):
        value = up[0] + (up[1] - up[0]) * step / 4
        _, y = at(across[0], value)
        drawing.line(left, y, right, y)
        drawing.text(left - 8, y + 4, f"{value:g}", size=11, ink=PALE, anchor="end")
    drawing.text((left + right) / 2, height - 10, labels[0], size=12, ink=PALE, anchor="middle")
    drawing.text(left, 12, labels[1], size=12, ink=PALE)
    return drawing, at
