"""What a verdict's numbers suggest to do next: more held-out pairs, a smaller change, another strategy, or nothing."""

import math
from dataclasses import replace

from ingest.sentence import phrase
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
            phrase(
                "What was taught is hardly found among all pictures: let the update learn beside old pictures (the "
                "strategy `evergreen` does; its adapters' option `visibility` says how much they count)."
            )
        )
    if {decided.get("kept"), decided.get("worst slice")} & {Verdict.REVIEW, Verdict.REJECT}:
        steps += _to_keep(report)
    if decided.get("canaries") is Verdict.REJECT:
        steps.append(
            phrase("Look at the pinned queries that changed; remove the pins that are no longer wanted.")
        )
    return replace(report, next_steps=tuple(dict.fromkeys(steps)))


def _to_show_learning(row: GateRow, needed: int) -> str:
    if row.images < needed:
        return phrase(
            "Hold out more of {slice}: {count} different things are measured and {needed} are needed; upload {more} or "
            "more pairs with split=test.",
            slice=row.slice,
            count=row.images,
            needed=needed,
            more=needed - row.images,
        )
    if row.difference <= 0 or row.note == "no better than guessing":
        found = phrase("got worse") if row.difference < 0 else phrase("was not learned")
        return phrase(
            "{slice} {found}: look whether its captions belong to their pictures (`check` shows what is doubtful, "
            "`withdraw` takes the chunk out), or teach it longer or with another strategy.",
            slice=row.slice,
            found=found,
        )
    # The bound lies `difference - low` below the estimate and comes nearer with the root of the sample.
    wanted = math.ceil(row.images * ((row.difference - row.low) / row.difference) ** 2 * 1.1)
    if wanted > TOO_MANY:
        return phrase(
            "{slice} gained {points} points, so little that no test of reasonable size shows it.",
            slice=row.slice,
            points=f"{row.difference:.1f}",
        )
    return phrase(
        "With about {wanted} held-out things instead of {count} a gain as on {slice} would be certain.",
        wanted=wanted,
        count=row.images,
        slice=row.slice,
    )


def _to_keep(report: GateReport) -> list[str]:
    policy = report.policy
    steps: list[str] = []
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
                phrase(
                    "Most in doubt is {slice} ({view}): about {wanted} held-out things instead of {count} would show "
                    "whether it was kept.",
                    slice=row.slice,
                    view=row.view,
                    wanted=wanted,
                    count=row.images,
                )
            )
    if any(row.role == "kept" and row.difference < 0 for row in report.rows):
        steps.append(
            phrase(
                "What was known moved: `evergreen` teaches without touching it; with strategies that "
                "change the towers, merge less of the update (option `merge` of c-clip), or use a "
                "lower rate or fewer epochs."
            )
        )
    return steps
