"""What a terminal shows of releases: their lineage, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.releases import Node
from app.words.gate import MARKS
from app.words.messages import plain

_WHEN = 16


def lineage_lines(nodes: Sequence[Node]) -> list[str]:
    """Returns a drawing of lanes with what happened to each release beside it, newest first."""
    if not nodes:
        return ["There are none yet. Run `perennial init`."]
    lanes = 1 + max(max([node.lane, *node.passes, *node.joins]) for node in nodes)
    return [f"{_graph(node, lanes)} {plain(_said(node))}".rstrip() for node in nodes]


def _graph(node: Node, lanes: int) -> str:
    marks = dict.fromkeys(node.passes, "│") | dict.fromkeys(node.joins, "╯")
    marks[node.lane] = "●" if node.is_live else "○"
    return " ".join(marks.get(lane, " ") for lane in range(lanes))


def _said(node: Node) -> str:
    made = node.strategy or "base encoder" if node.is_new_version else "pictures added"
    verdict = f" {MARKS[node.verdict]}" if node.is_new_version and node.verdict in MARKS else ""
    made += f", pruned {_moment(node.pruned)}" if node.pruned else ""
    if not node.periods:
        return f"{node.release} {made}{verdict}, never live"
    last = node.periods[-1]
    until = "" if last.until is None else f" to {_moment(last.until)}"
    why = f": {last.why}" if last.why else ""
    return (
        f"{node.release} {made}{verdict}, live {_moment(last.since)}{until}, {last.reason} by {last.by}{why}"
    )


def _moment(time: str) -> str:
    return time[:_WHEN].replace("T", " ")
