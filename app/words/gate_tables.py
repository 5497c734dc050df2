"""The gate's report in a terminal of 80 columns or more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from app.words import gate as gate_words
from app.words.gate import SliceLine
from app.words.messages import grid, plain, table
from model_updates.gate.report import GateReport, QueryChange, points

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

ROOMY = 100
"""Columns from which a slice takes one line; below, its cells take two."""
MOST_QUERIES = 10
_MOST_REASONS = 3
_MOST_NAMED = 6
_ID_SHOWN = 12
_SLICE_HEADER = ("slice", "things", *gate_words.VIEWS, "R@1", "best", "verdict")


def gate_parts(report: GateReport, width: int) -> list[RenderableType]:
    """Returns verdict, rules, tables, captions that moved and next steps, to be printed one after another.

    Args:
        report: what the gate said.
        width: of the terminal, in columns.
    """
    parts: list[Any] = [f"Verdict: {report.verdict}", plain(gate_words.opening(report)), "", _rules(report)]
    if report.attempts > 1:
        said = "candidates were held against this live version; they share the error rate."
        parts.append(f"{report.attempts} {said}")
    for role, title in gate_words.ROLES.items():
        parts += _slices(title, gate_words.slice_lines(report, role), is_roomy=width >= ROOMY)
    if report.rows:
        parts.append(gate_words.legend(report))
    parts += [*_moved("Lost most", report.lost), *_moved("Won most", report.won)]
    owed = gate_words.debts(report)
    if owed:
        parts += ["", plain("Promoting it in spite of this accepts to lose: " + "; ".join(owed) + ".")]
    if report.next_steps:
        parts += ["", "What to do next:", _listed(report.next_steps)]
    return parts


def _rules(report: GateReport) -> Table:
    """Each rule with its verdict and its first sentences; those that decided come first."""
    rows = []
    for rule in gate_words.rules(report):
        shown = list(rule.reasons[:_MOST_REASONS])
        left = len(rule.reasons) - len(shown)
        if left:
            shown.append(f"… and {left} more; --json has all.")
        for position, reason in enumerate(shown or ["Nothing was asked."]):
            head = ("", "") if position else (f"{gate_words.MARKS[rule.verdict]} {rule.verdict}", rule.rule)
            rows.append((*head, plain(reason)))
    return grid(rows)


def _slices(title: str, lines: Sequence[SliceLine], *, is_roomy: bool) -> Iterable[RenderableType]:
    shown = [line for line in lines if not line.is_unchanged]
    unchanged = [line.slice for line in lines if line.is_unchanged]
    if lines:
        yield ""
    if shown:
        counted = f"{title}: {len(lines)} slices" if len(lines) > 1 else title
        yield _slice_table(counted, [_cells(line, " " if is_roomy else "\n") for line in shown])
    if unchanged:
        named = ", ".join(unchanged[:_MOST_NAMED]) + (" …" if len(unchanged) > _MOST_NAMED else "")
        yield plain(f"{title}, unchanged to the last rank: {len(unchanged)} ({named}).")


def _cells(line: SliceLine, between: str) -> list[str]:
    views = [gate_words.change(line.views.get(view)).replace(" ", between) for view in gate_words.VIEWS]
    first = "–" if line.first is None else points(line.first)
    best = gate_words.below_best(line).replace(" ", between)
    return [plain(line.slice), str(line.things), *views, first, best, plain(line.said())]


def _slice_table(title: str, rows: Iterable[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    built = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0)
    )
    for name in _SLICE_HEADER:
        built.add_column(name, justify="left" if name in {"slice", "verdict"} else "right", overflow="fold")
    for row in rows:
        built.add_row(*map(Text, row))
    return built


def _moved(title: str, moved: Sequence[QueryChange]) -> list[RenderableType]:
    if not moved:
        return []
    rows = [
        (
            gate_words.places(one),
            gate_words.slice_and_view(one),
            one.image_id[:_ID_SHOWN],
            (one.first_image or "–")[:_ID_SHOWN],
            one.text,
        )
        for one in moved[:MOST_QUERIES]
    ]
    shown = f"{title}: {len(rows)} of {len(moved)}" if len(moved) > len(rows) else title
    return ["", table(("place", "slice", "picture", "now first", "caption"), rows, title=shown)]


def _listed(lines: Iterable[str]) -> Table:
    return grid([("-", plain(line)) for line in lines])
