"""The captions behind a verdict: which lost their picture, and which found it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from app.desk.probes import DOMAIN
from app.home.workspace import Workspace
from app.learning.gained_words import gained_words
from model_updates.gate.report import GateReport, GateRow, QueryChange, Verdict
from model_updates.measurement import HeldOut, Results, Side, first_pictures

MOST = 10  # lost ones, and won ones
DEPTH = 10  # among so many a picture counts as found


@dataclass(frozen=True)
class CaptionMove:
    """One caption of a slice whose picture moved."""

    held_out: HeldOut
    number: int
    live_rank: int
    candidate_rank: int

    @property
    def times(self) -> float:
        """How many times further down its picture stands (or up, below 0), in log."""
        return math.log((self.candidate_rank + 1) / (self.live_rank + 1))

    @property
    def caption(self) -> tuple[str, str]:
        """Id of its picture, and its text."""
        return self.held_out.captions[self.number]


def with_examples(
    workspace: Workspace,
    report: GateReport,
    slices: Sequence[HeldOut],
    live: Results,
    candidate: Results,
    side: Side,
) -> GateReport:
    """Returns a report with the captions that lost and won most, each in one view, and what those that won share.

    Captions of the built-in checks come last, which are nobody's own. Of the others, lost ones of slices that decided
    the verdict come first, won ones of what was taught; within these, those whose picture moved by the largest factor.
    """
    decided = {
        (row.slice, row.view, row.role)
        for row in report.rows
        if row.verdict is report.verdict and row.verdict is not Verdict.PROMOTE
    }
    moved = [change for one in slices for change in changes(one, live, candidate)]

    def is_built_in(change: CaptionMove) -> bool:
        return change.held_out.key.domain == DOMAIN

    def decides(change: CaptionMove) -> bool:
        one = change.held_out
        return (str(one.key), str(one.view), "new" if one.is_new else "kept") in decided

    lost = sorted(
        (change for change in moved if change.times > 0),
        key=lambda change: (is_built_in(change), not decides(change), -change.times, change.caption),
    )
    won = sorted(
        (change for change in moved if change.times < 0),
        key=lambda change: (is_built_in(change), not change.held_out.is_new, change.times, change.caption),
    )
    return replace(
        report,
        rows=_with_words(report.rows, slices, live, candidate),
        lost=described(workspace, first_each(lost), side),
        won=described(workspace, first_each(won), side),
    )


def _with_words(
    rows: Sequence[GateRow], slices: Sequence[HeldOut], live: Results, candidate: Results
) -> tuple[GateRow, ...]:
    words = {}
    for one in slices:
        before, after = live.get(one.measured), candidate.get(one.measured)
        if before is not None and after is not None:
            texts = [text for _, text in one.captions]
            role = "new" if one.is_new else "kept"
            words[str(one.key), str(one.view), role] = gained_words(
                texts, before.text_ranks < DEPTH, after.text_ranks < DEPTH, one.key.language
            )
    return tuple(replace(row, words=words.get((row.slice, row.view, row.role), ())) for row in rows)


def changes(held_out: HeldOut, live: Results, candidate: Results) -> Iterable[CaptionMove]:
    """Yields the captions of a slice whose picture stands elsewhere under a candidate than under live."""
    before, after = live.get(held_out.measured), candidate.get(held_out.measured)
    if before is None or after is None:
        return
    for number in (before.text_ranks != after.text_ranks).nonzero()[0].tolist():
        yield CaptionMove(held_out, number, int(before.text_ranks[number]), int(after.text_ranks[number]))


def first_each(changes: Iterable[CaptionMove]) -> list[CaptionMove]:
    """Returns the first few, each caption of a picture once."""
    chosen: dict[tuple[str, tuple[str, str]], CaptionMove] = {}
    for change in changes:
        chosen.setdefault((change.held_out.key.language, change.caption), change)
        if len(chosen) == MOST:
            break
    return list(chosen.values())


def described(workspace: Workspace, changes: Sequence[CaptionMove], side: Side) -> tuple[QueryChange, ...]:
    """Returns changes as reports tell them, with the picture that a version puts first now."""
    firsts: dict[int, str] = {}
    for held_out in {id(change.held_out): change.held_out for change in changes}.values():
        mine = [n for n, change in enumerate(changes) if change.held_out is held_out]
        numbers = [changes[n].number for n in mine]
        found = first_pictures(side, held_out, numbers, workspace.load_image, workspace.features)
        firsts |= dict(zip(mine, found, strict=True))
    return tuple(
        QueryChange(
            slice=str(change.held_out.key),
            view=str(change.held_out.view),
            text=change.caption[1],
            language=change.held_out.key.language,
            image_id=change.caption[0],
            live_rank=change.live_rank + 1,
            candidate_rank=change.candidate_rank + 1,
            first_image=firsts[n],
        )
        for n, change in enumerate(changes)
    )
