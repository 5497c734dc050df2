"""A forest plot of a gate report: each slice's change with its bounds, beside zero and what may be lost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from app.ui.drawn import Markup
from app.ui.plot import circle, in_both_widths, path, short, text, wide
from app.ui.words import ENGLISH, Words
from app.words import gate as gate_words
from model_updates.gate.report import GateReport, GateRow, Verdict, points

MOST_ROWS = 28
"""The others are in the table below; those that decide come first."""
AXIS = "points"
_ROW, _TOP, _BOTTOM, _GAP = 21, 22, 34, 26
_SEVERITY = list(Verdict)
_MARKS = {Verdict.PROMOTE: "passes", Verdict.REVIEW: "doubts", Verdict.REJECT: "fails"}


def forest_view(report: GateReport, say: Words = ENGLISH) -> str:
    """Returns the plot as Markdown; empty when nothing moved."""
    groups = [(say.said(title), _telling(report, role)) for role, title in gate_words.ROLES.items()]
    groups = [(title, rows) for title, rows in groups if rows]
    if not groups:
        return ""
    left_out = sum(row.role in gate_words.ROLES for row in report.rows) - sum(len(rows) for _, rows in groups)
    drawing = in_both_widths(
        say("Change of each slice in points, with its bounds: the candidate against what is live"),
        lambda width: _plot(groups, report, width, say),
    )
    said = say(
        "Each dot is a change, and its line the range in which it lies. Solid line: no change. Dashed line: "
        "{limit}, the most that an old slice may lose.",
        limit=points(-report.policy.slice_drop),
    )
    rest = say(
        "{count} more slices and views, unchanged or further from a decision, are in the table.",
        count=left_out,
    )
    more = f" {rest}" if left_out else ""
    return f"### {say('What changed')}\n\n{drawing}\n\n{said}{more}"


def _telling(report: GateReport, role: str) -> list[GateRow]:
    rows = [row for row in report.rows if row.role == role and not gate_words.is_unchanged(row)]
    rows.sort(key=lambda row: (-_SEVERITY.index(row.verdict), row.low, row.slice))
    return rows[:MOST_ROWS]


def _plot(
    groups: Sequence[tuple[str, Sequence[GateRow]]], report: GateReport, width: int, say: Words
) -> tuple[float, list[Markup]]:
    names = [_name(row, say) for _, rows in groups for row in rows]
    left = min(0.42 * width, 10 + max(map(wide, names)))
    right = width - 62.0
    low, high = _range([row for _, rows in groups for row in rows], report.policy.slice_drop)

    def across(value: float) -> float:
        return left + (min(max(value, low), high) - low) / (high - low) * (right - left)

    parts: list[Markup] = []
    y = 0.0
    for title, rows in groups:
        parts.append(text(0, y + 14, title, kind="strong"))
        bottom = y + _TOP + _ROW * len(rows)
        parts.append(path(f"M{across(0):.1f} {y + _TOP}V{bottom:.1f}", "axis"))
        if rows[0].role == "kept":
            parts.append(path(f"M{across(-report.policy.slice_drop):.1f} {y + _TOP}V{bottom:.1f}", "limit"))
        for number, row in enumerate(rows):
            parts += _row(
                row,
                _name(row, say),
                y + _TOP + (number + 0.5) * _ROW,
                left,
                width,
                across(row.low),
                across(row.high),
                across(row.difference),
            )
        y = bottom + _GAP
    y += -_GAP
    parts += [
        text(across(mark), y + 15, points(mark).removesuffix(".0") or "0", "middle", "faint")
        for mark in _marks(low, high, most=int((right - left) / 44))
    ]
    parts.append(text((left + right) / 2, y + 30, say.header(AXIS), "middle", "faint"))
    return y + _BOTTOM, parts


def _row(
    row: GateRow, name: str, y: float, left: float, width: int, low: float, high: float, at: float
) -> Iterable[Markup]:
    kind = _MARKS[row.verdict]
    yield text(left - 8, y + 4, short(name, left - 8), "end")
    yield path(f"M{low:.1f} {y:.1f}H{high:.1f}", f"bar {kind}")
    yield circle(at, y, 4.5, f"dot {kind}")
    yield text(width - 56, y + 4, f"{gate_words.MARKS[row.verdict]} {points(row.difference)}")


def _name(row: GateRow, say: Words) -> str:
    return say.said(row.slice) if row.view == "own" else f"{say.said(row.slice)} · {say.said(row.view)}"


def _range(rows: Sequence[GateRow], drop: float) -> tuple[float, float]:
    """Returns what the axis spans: all bounds, zero, and what may be lost."""
    low = min([0.0, *(row.low for row in rows), *(-drop for row in rows if row.role == "kept")])
    high = max([1.0, *(row.high for row in rows)])
    air = 0.04 * (high - low)
    return low - air, high + air


def _marks(low: float, high: float, *, most: int) -> list[float]:
    step = next((step for step in (1, 2, 5, 10, 20, 25, 50) if (high - low) / step <= min(most, 8)), 100)
    return [float(step * n) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]
