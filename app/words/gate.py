"""A gate report as people read it: verdicts in words, a line per slice, captions that moved; a terminal's view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.words.messages import grid, plain, table
from ingest.sentence import joined, phrase
from model_updates.gate.report import (
    GateReport,
    GateRow,
    QueryChange,
    RuleResult,
    Verdict,
    owed,
    points,
    worst,
)
from model_updates.recalls import LABELS

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

VERDICTS = {
    "promote": phrase("Passed"),
    "review": phrase("Needs your decision"),
    "reject": phrase("Rejected"),
}
MARKS = {"promote": "✓", "review": "?", "reject": "✗"}
VIEWS = {
    "own": phrase("own: held-out captions look among their domain's held-out pictures, language told."),
    "mixed": phrase(
        "mixed: the same captions look among pictures of all domains, language detected, as people search."
    ),
    "memory": phrase("memory: captions that were trained on look among all."),
}
"""The views a slice is measured in, explained."""
ROLES = {"new": phrase("What was taught"), "kept": phrase("What was known")}
_UNCHANGED = phrase("unchanged")
_SEVERITY = list(Verdict)


@dataclass(frozen=True)
class JudgedSlice:
    """One slice with its views side by side."""

    slice: str  # language and domain, `de/photo`
    role: str  # `new` for what was taught, `kept` for what was known
    things: int  # different held-out things, of the own gallery where that was measured
    views: Mapping[str, GateRow]  # the report's rows by view
    verdict: Verdict  # the strictest of them
    # why, of the rows that decided: each with the views that matter for it, which may be none
    notes: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def is_unchanged(self) -> bool:
        """Whether no rank differs in any view."""
        return all(map(is_unchanged, self.views.values()))

    @property
    def first(self) -> float | None:
        """The worst change in R@1 of all views, points; None when none was measured."""
        found = [row.first_difference for row in self.views.values() if row.first_difference is not None]
        return min(found, default=None)

    @property
    def lowest(self) -> GateRow | None:
        """The row that stands furthest below its high water; None when no other version was ever better."""
        found = [row for row in self.views.values() if row.water_difference is not None]
        return min(found, key=lambda row: row.water_difference or 0.0, default=None)

    def said(self, say: Callable[[str], str] = str) -> str:
        """Returns the verdict as a mark with its notes: `? perhaps lost (mixed)`."""
        notes = [
            say(note) + (f" ({', '.join(map(say, views))})" if views else "") for note, views in self.notes
        ]
        return f"{MARKS[self.verdict]} {', '.join(notes) or say(self.verdict)}"


def slice_lines(report: GateReport, role: str) -> list[JudgedSlice]:
    """Returns a line per slice of one role, what decides first."""
    by_slice: dict[str, list[GateRow]] = {}
    for row in report.rows:
        if row.role == role:
            by_slice.setdefault(row.slice, []).append(row)
    lines = [_line(name, role, rows) for name, rows in by_slice.items()]
    return sorted(lines, key=lambda line: (-_SEVERITY.index(line.verdict), line.is_unchanged, line.slice))


def _line(name: str, role: str, rows: Iterable[GateRow]) -> JudgedSlice:
    views = {row.view: row for row in sorted(rows, key=lambda row: _place(row.view))}
    verdict = worst(row.verdict for row in views.values())
    notes: dict[str, list[str]] = {}
    for row in views.values():
        if row.verdict is verdict and row.note:
            notes.setdefault(row.note, []).append(row.view)
    # What passed is said once; of what did not, the view matters.
    said = [
        (note, () if verdict is Verdict.PROMOTE or seen == ["own"] else tuple(seen))
        for note, seen in notes.items()
        if verdict is not Verdict.PROMOTE or note != _UNCHANGED or len(notes) == 1
    ]
    return JudgedSlice(name, role, next(iter(views.values())).images, views, verdict, tuple(said))


def _place(view: str) -> int:
    known = list(VIEWS)
    return known.index(view) if view in known else len(known)


def opening(report: GateReport) -> str:
    """Returns the sentence that decided."""
    return report.first_reason or phrase("No rule gave a reason.")


def rules(report: GateReport) -> list[RuleResult]:
    """Returns the rules, those that decided first."""
    return sorted(report.rules, key=lambda rule: -_SEVERITY.index(rule.verdict))


def legend(report: GateReport) -> str:
    """Says what the numbers of a table of slices are."""
    metric = LABELS.get(report.policy.metric, phrase("the mean of R@1, R@5 and R@10"))
    return joined(
        (
            phrase("Points of {metric}, text to image: the change, and what it is at least.", metric=metric),
            phrase("R@1: the worst change of the views."),
            phrase("Best: against the best version so far."),
            *VIEWS.values(),
        )
    )


def is_unchanged(row: GateRow) -> bool:
    """Whether no rank differs."""
    return row.note == _UNCHANGED


def change(row: GateRow | None) -> str:
    """Returns the change and what it is at least: `−0.4 ≥−2.1`; a dash where nothing was measured."""
    if row is None:
        return "–"
    return _UNCHANGED if is_unchanged(row) else f"{points(row.difference)} ≥{points(row.low)}"


def below_best(line: JudgedSlice) -> str:
    """Returns the change against the high water and the version that set it: `−2.0 v3`; else a dash."""
    row = line.lowest
    if row is None or row.water_difference is None:
        return "–"
    return f"{points(row.water_difference)} {(row.water_version or '').split('-')[0]}".rstrip()


def places(moved: QueryChange) -> str:
    """Returns where the picture of a caption stood and stands: `1 → 34`."""
    return f"{moved.live_rank} → {moved.candidate_rank}"


def slice_and_view(moved: QueryChange) -> str:
    """Returns `de/photo`, with the view unless that is the own gallery."""
    return moved.slice if moved.view == "own" else f"{moved.slice} ({moved.view})"


def debts(report: GateReport) -> list[str]:
    """Returns what is `owed` in words, a line per slice and view."""
    return [joined((row.slice, f"{_where(row)} {points(-lost)}"), "") for row, lost in owed(report)]


def _where(row: GateRow) -> str:
    return "" if row.view == "own" else f" ({row.view})"


ROOMY = 100
"""Columns from which a slice takes one line; below, its cells take two."""
MOST_QUERIES = 10
_MOST_REASONS = 3
_MOST_NAMED = 6
_ID_SHOWN = 12
_SLICE_HEADER = ("slice", "things", *VIEWS, "R@1", "best", "verdict")


def gate_parts(report: GateReport, width: int) -> list[RenderableType]:
    """Returns verdict, rules, tables, captions that moved and next steps, to be printed one after another.

    `width` is that of the terminal, in columns.
    """
    parts: list[Any] = [f"Verdict: {report.verdict}", plain(opening(report)), "", _rules(report)]
    if report.attempts > 1:
        said = "times it was judged whether something may follow this live version; all share the error rate."
        parts.append(f"{report.attempts} {said}")
    for role, title in ROLES.items():
        parts += _slices(title, slice_lines(report, role), is_roomy=width >= ROOMY)
    if report.rows:
        parts.append(legend(report))
    parts += [*_moved("Lost most", report.lost), *_moved("Won most", report.won)]
    debt = debts(report)
    if debt:
        parts += ["", plain("Promoting it in spite of this accepts to lose: " + "; ".join(debt) + ".")]
    if report.next_steps:
        parts += ["", "What to do next:", _listed(report.next_steps)]
    return parts


def _rules(report: GateReport) -> Table:
    """Each rule with its verdict and its first sentences; those that decided come first."""
    rows = []
    for rule in rules(report):
        shown = list(rule.reasons[:_MOST_REASONS])
        left = len(rule.reasons) - len(shown)
        if left:
            shown.append(f"… and {left} more; --json has all.")
        for position, reason in enumerate(shown or ["Not checked."]):
            head = ("", "") if position else (f"{MARKS[rule.verdict]} {rule.verdict}", rule.rule)
            rows.append((*head, plain(reason)))
    return grid(rows)


def _slices(title: str, lines: Sequence[JudgedSlice], *, is_roomy: bool) -> Iterable[RenderableType]:
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


def _cells(line: JudgedSlice, between: str) -> list[str]:
    views = [change(line.views.get(view)).replace(" ", between) for view in VIEWS]
    first = "–" if line.first is None else points(line.first)
    best = below_best(line).replace(" ", between)
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
            places(one),
            slice_and_view(one),
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
