"""The losses of an update as curves, drawn while it runs and kept in its job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.ui.drawn import Markup
from app.ui.plot import in_both_widths, path, short, text, wide
from app.ui.wording import escaped
from app.ui.words import ENGLISH, Words

HEADERS = ("loss", "first", "now")
AXIS = "epochs"
_MOST_TERMS = 6
_TALL, _LEFT, _RIGHT, _TOP, _BOTTOM = 190, 44, 12, 8, 34


def curves_view(progress: Mapping[str, Any], say: Words = ENGLISH) -> str:
    """Returns the curves of a job's progress as Markdown; empty before there are two points."""
    points: Sequence[Mapping[str, Any]] = progress.get("curve") or ()
    terms = list(dict.fromkeys(name for point in points for name in point["terms"]))[:_MOST_TERMS]
    if len(points) < 2 or not terms:
        return ""
    drawing = in_both_widths(
        say("Loss over epochs, a curve for each term"),
        lambda width: _plot(points, terms, width, say.header(AXIS)),
    )
    rows = [f"| {escaped(name)} | {_first(points, name):.3f} | {_last(points, name):.3f} |" for name in terms]
    header = f"| {' | '.join(map(say.header, HEADERS))} |"
    table = "\n".join([header, "|---|---:|---:|", *rows])
    return f"{drawing}\n\n{table}"


def _plot(
    points: Sequence[Mapping[str, Any]], terms: Sequence[str], width: int, axis: str
) -> tuple[float, list[Markup]]:
    values = [float(value) for point in points for value in point["terms"].values()]
    lowest, highest = min(0.0, *values), max(values) or 1.0
    last = max(1.0, float(points[-1]["at"]))
    right, bottom = width - _RIGHT, _TALL - _BOTTOM

    def across(at: float) -> float:
        return _LEFT + at / last * (right - _LEFT)

    def up(value: float) -> float:
        return bottom - (value - lowest) / ((highest - lowest) or 1.0) * (bottom - _TOP)

    parts: list[Markup] = []
    for share in (0.0, 0.5, 1.0):
        value = lowest + share * (highest - lowest)
        parts += [
            path(f"M{_LEFT} {up(value):.1f}H{right}", "grid"),
            text(_LEFT - 6, up(value) + 4, f"{value:.2g}", "end", "faint"),
        ]
    every = max(1, round(last / 8))
    marks = [mark for mark in range(0, int(last) + 1, every) if across(mark) < right - 52]
    parts += [text(across(mark), bottom + 15, str(mark), "middle", "faint") for mark in marks]
    parts.append(text(right, bottom + 15, axis, "end", "faint"))
    x = float(_LEFT)
    for number, name in enumerate(terms):
        way = "L".join(
            f"{across(point['at']):.1f} {up(point['terms'][name]):.1f}"
            for point in points
            if name in point["terms"]
        )
        parts.append(path(f"M{way}", f"curve c{number}"))
        label = short(name, 90)
        parts += [path(f"M{x:.1f} {_TALL - 8}h16", f"curve c{number}"), text(x + 20, _TALL - 4, label)]
        x += 34 + wide(label)
        if x > right - 60:
            break
    return _TALL, parts


def _first(points: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(next(point["terms"][name] for point in points if name in point["terms"]))


def _last(points: Sequence[Mapping[str, Any]], name: str) -> float:
    return _first(points[::-1], name)
