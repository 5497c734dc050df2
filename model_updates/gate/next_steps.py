"""What a verdict's numbers suggest to do next: more held-out pairs, a smaller change, another strategy, or nothing."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ingest.sentence import phrase
from model_updates.gate.examined import FEWEST_THINGS, CrossFitted, pairs_that_decide
from model_updates.gate.report import GateReport, GateRow, Verdict

_KEEPS_ALL = frozenset({"evergreen", "language-tables", "domain-adapters", "new-words"})
"""Strategies that move no vector of what was known."""
TOO_MANY = 5_000
"""Held-out things that nobody will collect."""


def next_steps(report: GateReport, strategy: str = "", examined: Sequence[CrossFitted] = ()) -> GateReport:
    """Returns the report with what its numbers suggest to who taught by a strategy; nothing where it passed.

    `examined` is what copies found of all pairs, where that decided what was learned.
    """
    if report.verdict is Verdict.PROMOTE:
        return report
    steps: list[str] = []
    decided = {rule.rule: rule.verdict for rule in report.rules}
    for row in report.rows:
        if examined or row.role != "new" or row.view != "own" or row.verdict is Verdict.PROMOTE:
            continue
        steps.append(_to_show_learning(row, report.policy.minimum_images))
    steps += _to_show_more(report, examined)
    if decided.get("visible", Verdict.PROMOTE) is not Verdict.PROMOTE:
        steps.append(_to_be_visible(strategy))
    if {decided.get("kept"), decided.get("worst slice")} & {Verdict.REVIEW, Verdict.REJECT}:
        steps += _to_keep(report, strategy)
    if decided.get("canaries") is Verdict.REJECT:
        steps.append(
            phrase("Look at the pinned queries that changed; remove the pins that are no longer wanted.")
        )
    return replace(report, next_steps=tuple(dict.fromkeys(steps)))


def _to_show_more(report: GateReport, examined: Sequence[CrossFitted]) -> list[str]:
    """Says how many more pairs would decide where chance is not excluded yet."""
    steps: list[str] = []
    for name in sorted({one.name for one in examined}):
        views = [one for one in examined if one.name == name]
        rows = [row for row in report.rows if row.role == "new" and row.slice == name]
        if all(row.verdict is Verdict.PROMOTE for row in rows):
            continue
        needed = [pairs_that_decide(one.gains) for one in views]
        things = len(views[0].gains)
        if None in needed:
            steps.append(_look_again(name, phrase("was not learned")))
        elif things < (wanted := max(FEWEST_THINGS, *(n for n in needed if n is not None))) <= TOO_MANY:
            steps.append(
                phrase("About {count} more pairs of {slice} would decide.", count=wanted - things, slice=name)
            )
    return steps


def _to_be_visible(strategy: str) -> str:
    if strategy in _KEEPS_ALL:
        return phrase(
            "What was taught is hardly found among all pictures: teach it longer (option `epochs`) or with more pairs, "
            "or let old pictures count more (option `visibility` of `domain-adapters`)."
        )
    return phrase(
        "What was taught is hardly found among all pictures: let the update learn beside old pictures, as the strategy "
        "`evergreen` does."
    )


def _to_show_learning(row: GateRow, needed: int) -> str:
    if row.images < needed:
        return phrase(
            "Hold out more of {slice}: {count} different things are measured and {needed} are needed; upload the chunk "
            "again together with {more} more different pictures that have split=test.",
            slice=row.slice,
            count=row.images,
            needed=needed,
            more=needed - row.images,
        )
    if row.difference <= 0 or row.note == "no better than guessing":
        found = phrase("got worse") if row.difference < 0 else phrase("was not learned")
        return _look_again(row.slice, found)
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


def _look_again(name: str, found: str) -> str:
    return phrase(
        "{slice} {found}: look whether its captions belong to their pictures (`check` shows what is doubtful, "
        "`withdraw` takes the chunk out), or teach it longer or with another strategy.",
        slice=name,
        found=found,
    )


def _to_keep(report: GateReport, strategy: str) -> list[str]:
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
        steps.append(_to_lose_less(strategy))
    return steps


def _to_lose_less(strategy: str) -> str:
    if strategy in _KEEPS_ALL:
        return phrase(
            "No vector of what was known moved: what was lost is read in the new language now, or stands behind new "
            "pictures. The captions that lost most show which."
        )
    if strategy == "c-clip":
        return phrase(
            "What was known moved: merge less of the update (option `merge`), or teach by `evergreen`, which does not "
            "touch it."
        )
    return phrase(
        "What was known moved: `evergreen` teaches without touching it; or use a lower rate or fewer epochs."
    )
