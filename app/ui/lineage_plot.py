"""The lineage of releases as a drawing: a line a release, newest first, with what happened to it beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.desk.releases import Node, Period
from app.ui.drawn import Markup
from app.ui.plot import circle, in_both_widths, path, short, text
from app.ui.wording import moment
from app.ui.words import ENGLISH, Words
from app.words.gate import MARKS, VERDICTS
from ingest.sentence import template

MOST_NODES = 40
_ROW, _LANE, _RADIUS = 46, 18, 6
_MADE = {
    "init": template("made by {name}"),
    "promote": template("promoted by {name}"),
    "rollback": template("rolled back to by {name}"),
    "ingest": template("pictures added by {name}"),
}


def lineage_view(nodes: Sequence[Node], say: Words = ENGLISH) -> str:
    """Returns the newest releases as a drawing; empty when there are none."""
    if not nodes:
        return ""
    shown = nodes[:MOST_NODES]
    drawing = in_both_widths(
        say("Lineage: each release below those that were made from it"),
        lambda width: _plot(shown, width, say),
    )
    left_out = len(nodes) - len(shown)
    older = f" {say('{count} older ones are in the table.', count=left_out)}" if left_out else ""
    said = say(
        "Filled: live now. Ring: was live. Small: never live. A line leads down to what a release "
        "was made from."
    )
    return f"## {say('Lineage')}\n\n{drawing}\n\n{said}{older}"


def live_words(periods: Sequence[Period], *, is_live: bool, say: Words = ENGLISH) -> str:
    """Returns since when a release is live, or was last, by whom and why; empty when it never was."""
    if not periods:
        return ""
    last = periods[-1]
    when = (
        say("live since {time}", time=moment(last.since))
        if is_live
        else say("live {since} to {until}", since=moment(last.since), until=moment(last.until))
    )
    times = f" ({say('{count} times', count=len(periods))})" if len(periods) > 1 else ""
    made = say(_MADE[last.reason], name=last.by) if last.reason in _MADE else f"{last.reason}, {last.by}"
    why = f": {last.why}" if last.why else ""
    return f"{when}{times} · {made}{why}"


def _plot(nodes: Sequence[Node], width: int, say: Words) -> tuple[float, list[Markup]]:
    lanes = 1 + max(max([node.lane, *node.passes, *node.joins]) for node in nodes)
    left = lanes * _LANE + 10
    parts: list[Markup] = []
    for number, node in enumerate(nodes):
        parts += _lines(node, number * _ROW, is_last=number == len(nodes) - 1)
    for number, node in enumerate(nodes):
        y = (number + 0.5) * _ROW
        kind = "live" if node.is_live else "was" if node.periods else "never"
        parts.append(circle(_across(node.lane), y, _RADIUS - 2 * (kind == "never"), f"node {kind}"))
        head, tail = _words(node, say)
        parts.append(text(left, y - 4, short(head, 0.88 * (width - left)), kind="strong"))
        parts.append(text(left, y + 13, short(tail, width - left), kind="faint"))
    return len(nodes) * _ROW, parts


def _lines(node: Node, top: float, *, is_last: bool) -> Iterator[Markup]:
    middle, bottom, x = top + _ROW / 2, top + _ROW, _across(node.lane)
    for lane in node.passes:
        yield path(f"M{_across(lane)} {top}V{bottom}", _kind(lane))
    for lane in node.joins:
        start = _across(lane)
        way = f"V{middle}" if start == x else f"C{start} {middle} {start} {middle} {x} {middle}"
        yield path(f"M{start} {top}{way}", _kind(lane))
    if node.goes_on:
        yield path(f"M{x} {middle}V{bottom - (4 if is_last else 0)}", _kind(node.lane))


def _words(node: Node, say: Words) -> tuple[str, str]:
    made = node.strategy or say("base encoder") if node.is_new_version else say("pictures added")
    verdict = (
        f" · {MARKS[node.verdict]} {say.said(VERDICTS[node.verdict])}"
        if node.is_new_version and node.verdict in MARKS
        else ""
    )
    was = live_words(node.periods, is_live=node.is_live, say=say)
    tail = was or say("never live · made {time}", time=moment(node.created))
    if node.pruned:
        tail = f"✂ {say('pruned {time}', time=moment(node.pruned))} · {tail}"
    return f"{node.release.split('-')[0]} · {made}{verdict}", tail


def _across(lane: int) -> float:
    return 10.0 + lane * _LANE


def _kind(lane: int) -> str:
    return "line main" if lane == 0 else "line"
