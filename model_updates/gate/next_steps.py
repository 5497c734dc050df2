"""What a verdict's numbers suggest to do next: more held-out pairs, a smaller change, another strategy, or nothing."""

from __future__ import annotations

import math
from dataclasses import replace

from model_updates.gate.report import GateReport, GateRow, Verdict

TOO_MANY = 5_000
"""Held-out things that nobody will collect."""


def next_steps(report: GateReport) -> GateReport:
    """Returns the report with what its numbers suggest; nothing where it passed."""
    if report.verdict is Verdict.PROMOTE:
        return report
    steps: list[str] = []
    decided = {rule.rule: rule.verdict for rule in report.rules}
    for row in report.rows:
        if row.role == "new" and row.view == "own" and row.verdict is not Verdict.PROMOTE:
            steps.append(_to_show_learning(row, report.policy.minimum_images))
    if decided.get("visible", Verdict.PROMOTE) is not Verdict.PROMOTE:
        steps.append(
            "What was taught is hardly found among all pictures: let the update learn beside old pictures (the "
            "strategy `evergreen` does; its adapters' option `visibility` says how much they count)."
        )
    if {decided.get("kept"), decided.get("worst slice")} & {Verdict.REVIEW, Verdict.REJECT}:
        steps += _to_keep(report)
    if decided.get("canaries") is Verdict.REJECT:
        steps.append("Look at the pinned queries that changed; remove the pins that are no longer wanted.")
    return replace(report, next_steps=tuple(dict.fromkeys(steps)))


def _to_show_learning(row: GateRow, needed: int) -> str:
    if row.images < needed:
        return (
            f"Hold out more of {row.slice}: {row.images} different things are measured and {needed} are needed; upload "
            f"{needed - row.images} or more pairs with split=test."
        )
    if row.difference <= 0 or row.note == "no better than guessing":
        found = "got worse" if row.difference < 0 else "was not learned"
        return (
            f"{row.slice} {found}: look whether its captions belong to their pictures (`check` shows what is "
            "doubtful, `withdraw` takes the chunk out), or teach it longer or with another strategy."
        )
    # The bound lies `difference - low` below the estimate and comes nearer with the root of the sample.
    wanted = math.ceil(row.images * ((row.difference - row.low) / row.difference) ** 2 * 1.1)
    if wanted > TOO_MANY:
        return f"{row.slice} gained {row.difference:.1f} points, so little that no test of reasonable size shows it."
    return f"With about {wanted} held-out things instead of {row.images} a gain as on {row.slice} would be certain."


def _to_keep(report: GateReport) -> list[str]:
    policy = report.policy
    steps = []
    doubtful = [
        row
        for row in report.rows
        if row.role == "kept" and row.verdict is Verdict.REVIEW and -row.difference < policy.slice_drop
    ]
    if doubtful:
        row = min(doubtful, key=lambda row: row.low)
        room, found = policy.slice_drop + row.difference, row.difference - row.low
        wanted = math.ceil(row.images * (found / room) ** 2) if room > 0 else TOO_MANY + 1
        if row.images < wanted <= TOO_MANY:
            steps.append(
                f"Most in doubt is {row.slice} ({row.view}): about {wanted} held-out things instead of {row.images} "
                "would show whether it was kept."
            )
    if any(row.role == "kept" and row.difference < 0 for row in report.rows):
        steps.append(
            "What was known moved: `evergreen` teaches without touching it; with strategies that change the towers, "
            "merge less of the update (option `merge` of c-clip), or use a lower rate or fewer epochs."
        )
    return steps
