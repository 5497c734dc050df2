"""The drawings of a benchmark's report: inline SVG that takes its colours from the page, light or dark."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from operator import itemgetter

from app.bench.figures import Curves

WIDE = 330
"""Of a small drawing, in pixels: what a telephone shows."""
_LETTER = 6.6
"""About how wide a letter of the drawings' small type is, in pixels."""
_SHADES = 20
_Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in pixels."""


@dataclass(frozen=True)
class _Plot:
    """A plot in its drawing, in pixels, and the percentages at its foot and its head."""

    left: float
    top: float
    right: float
    bottom: float
    highest: float
    lowest: float = 0.0

    def up(self, value: float) -> float:
        """Returns the height at which a percentage stands."""
        return self.bottom - (self.bottom - self.top) * (value - self.lowest) / (self.highest - self.lowest)

    def lines(self) -> Iterator[str]:
        """Draws a line for every few percent, and its number."""
        step = next(step for step in (2, 5, 10, 20, 25, 50) if (self.highest - self.lowest) / step <= 5)
        value = self.lowest
        while value <= self.highest:
            y = self.up(value)
            yield f'<path class="grid" d="M{self.left} {y:.1f}H{self.right}"/>'
            yield _text(self.left - 4, y + 3.5, f"{value:g}", "end")
            value += step


def heatmap(names: Sequence[str], rows: Sequence[Sequence[float | None]], highest: float, said: str) -> str:
    """Draws a matrix of recalls, slices down and steps across; numbers stand in it where there is room.

    `rows` has for each slice its recall after every step, percent, None before it was known; `highest` is what the
    darkest shade stands for, and `said` what the drawing shows, for those who cannot see it.
    """
    steps = len(rows[0])
    names = [_short(name, 17) for name in names]
    left, top = max(map(len, names)) * _LETTER + 6, 16
    wide = min(40.0, (WIDE - left) / steps)
    tall = max(11.0, min(22.0, wide))
    parts = [_text(left - 5, top + (n + 0.5) * tall + 3.5, name, "end") for n, name in enumerate(names)]
    parts += [
        _text(left + (step + 0.5) * wide, top - 5, str(step), "middle")
        for step in range(0, steps, max(1, math.ceil(18 / wide)))
    ]
    cells = [
        (left + step * wide, top + row * tall, value)
        for row, values in enumerate(rows)
        for step, value in enumerate(values)
        if value is not None
    ]
    parts += _shaded(cells, wide, tall, highest)
    if wide >= 22:
        parts += [
            _text(
                x + wide / 2,
                y + tall / 2 + 3.5,
                f"{value:.0f}",
                "middle",
                "on" if value > 0.55 * highest else "in",
            )
            for x, y, value in cells
        ]
    return _svg(WIDE, top + tall * len(names) + 4, parts, said)


def _shaded(
    cells: Iterable[tuple[float, float, float]], wide: float, tall: float, highest: float
) -> Iterator[str]:
    """One path for each shade: a matrix of a thousand cells stays small."""
    by_shade: dict[int, list[str]] = {}
    for x, y, value in cells:
        shade = round(_SHADES * min(1.0, value / highest)) if highest else 0
        by_shade.setdefault(shade, []).append(f"M{x:.1f} {y + tall / 2:.1f}h{wide - 0.6:.1f}")
    for shade, squares in sorted(by_shade.items()):
        opacity = 0.05 + 0.95 * shade / _SHADES
        yield (
            f'<path class="cells" stroke-width="{tall - 0.6:.1f}" stroke-opacity="{opacity:.2f}" '
            f'd="{"".join(squares)}"/>'
        )


_TALL, _LEFT, _BOTTOM, _TOP, _RIGHT = 168, 26, 20, 6, 8
"""Of a drawing of curves: its height and the margins of its plot."""


def backdrop(name: str, all_of_them: Sequence[Curves], highest: float) -> str:
    """Returns everybody's averages in grey, once for the page, for `curves` to stand before."""
    steps = max(1, max(len(one.average) for one in all_of_them) - 1)
    lines = "".join(_line(one.average, "other", steps, highest) for one in all_of_them)
    return f'<svg width="0" height="0" aria-hidden="true"><defs><g id="{name}">{lines}</g></defs></svg>'


def curves(own: Curves, behind: str, highest: float, said: str) -> str:
    """Draws one strategy's curves before a backdrop, which is called by its name."""
    steps = max(1, len(own.average) - 1)
    parts = list(_plot_of_curves(highest).lines())
    parts += [
        _text(_across(step, steps), _TALL - 5, str(step), "middle")
        for step in range(0, steps + 1, max(1, math.ceil(steps / 12)))
    ]
    parts.append(f'<use href="#{behind}"/>')
    parts += [_line(own.first, "first", steps, highest), _line(own.average, "own", steps, highest)]
    return _svg(WIDE, _TALL, parts, said)


def _line(values: Sequence[float | None], kind: str, steps: int, highest: float) -> str:
    """Draws a line through the steps that have a value; a dot where only one has."""
    plot = _plot_of_curves(highest)
    points = [
        (_across(step, steps), plot.up(value)) for step, value in enumerate(values) if value is not None
    ]
    if len(points) == 1:
        (x, y), *_ = points
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>'
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{drawn}"/>'


def _plot_of_curves(highest: float) -> _Plot:
    return _Plot(_LEFT, _TOP, WIDE - _RIGHT, _TALL - _BOTTOM, highest)


def _across(step: int, steps: int) -> float:
    return _LEFT + step * (WIDE - _LEFT - _RIGHT) / steps


def scatter(points: Mapping[str, tuple[float, float]], width: int, said: str) -> str:
    """Draws recall over the logarithm of training seconds; what costs nothing stands left of the axis.

    `points` are seconds and recall by label, `width` is in pixels.
    """
    height, none = 380 if width > WIDE else 420, 44
    recalls = [recall for _, recall in points.values()]
    highest = max(10.0, math.ceil(max(recalls) / 10) * 10)
    lowest = max(0.0, math.floor((min(recalls) - 3) / 10) * 10)
    plot = _Plot(30, 10, width - 10, height - 34, highest, lowest)
    paid = [seconds for seconds, _ in points.values() if seconds > 0]
    low, high = (math.log10(min(paid)), math.log10(max(paid))) if paid else (0.0, 1.0)
    low, high = low - 0.1, max(high, low + 0.5) + 0.1

    def across(seconds: float) -> float:
        if seconds <= 0:
            return plot.left + none / 2
        start = plot.left + none
        return start + (math.log10(seconds) - low) / (high - low) * (plot.right - start)

    below = plot.bottom + 14
    parts = list(plot.lines())
    parts += [_text(across(mark), below, f"{mark:g}", "middle") for mark in _log_marks(low, high)]
    parts.append(_text(across(0), below, "none", "middle"))
    parts.append(_text(plot.right, height - 4, "seconds of processor time, all steps", "end"))
    placed = [
        (across(seconds), plot.up(recall), _short(label, 26)) for label, (seconds, recall) in points.items()
    ]
    parts += _labelled(placed, plot)
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y, _ in placed]
    return _svg(width, height, parts, said)


def _labelled(placed: Sequence[tuple[float, float, str]], plot: _Plot) -> Iterator[str]:
    """Writes each label beside its point where nothing else is, further up or down if it must be."""
    taken: list[_Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y, _ in placed]
    shifts = [0.0, *(sign * 12.0 * n for n in range(1, 14) for sign in (1, -1))]
    for x, y, label in sorted(placed, key=itemgetter(1)):
        wide = len(label) * _LETTER
        places = ((start, shift) for shift in shifts for start in (x + 8, x - 8 - wide))
        for start, shift in places:
            box = (start, y + shift - 6, start + wide, y + shift + 6)
            left, top, right, bottom = box
            is_inside = (
                plot.left <= left and right <= plot.right and plot.top <= top and bottom <= plot.bottom
            )
            if is_inside and not any(
                left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
                for other in taken
            ):
                taken.append(box)
                if shift:
                    end = start - 2 if start > x else start + wide + 2
                    yield f'<path class="lead" d="M{x:.1f} {y:.1f}L{end:.1f} {y + shift:.1f}"/>'
                yield _text(start, y + shift + 3.5, label, "start")
                break


def bars(angles: Mapping[str, float], highest: float, said: str) -> str:
    """Draws degrees as bars under one another; the longest possible stands for the highest."""
    left, tall = 8 + _LETTER * max(map(len, angles)), 16
    parts = []
    for number, (name, degrees) in enumerate(angles.items()):
        y, wide = number * tall, (WIDE - left - 40) * degrees / (highest or 1.0)
        parts.append(_text(left - 5, y + 11.5, name, "end"))
        parts.append(
            f'<rect class="fill" x="{left:.1f}" y="{y + 2}" width="{wide:.1f}" height="{tall - 4}"/>'
        )
        parts.append(_text(left + wide + 4, y + 11.5, f"{degrees:.1f}°", "start"))
    return _svg(WIDE, tall * len(angles), parts, said)


def _log_marks(low: float, high: float) -> list[float]:
    wanted = (1, 2, 5) if high - low < 1.2 else (1, 3) if high - low < 2.5 else (1,)
    found = [
        digit * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for digit in wanted
        if low <= math.log10(digit * 10.0**power) <= high
    ]
    return found or [10.0**low]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(text)}</text>'


def _svg(width: float, height: float, parts: Iterable[str], said: str) -> str:
    return (
        f'<svg role="img" aria-label="{escape(said)}" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">{"".join(parts)}</svg>'
    )
