"""What an update changed, in one or two plain sentences: how many of a person's own test captions find their picture.

They are counted where people search, among pictures of everything with the language detected, and in their own gallery
where only that was measured. Bounds and rules are for whoever wants to know more (`app.words.gate`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from app.words.language_names import NameOf, english_name
from app.words.own_report import BUILT_IN, shown_report
from ingest.sentence import phrase, template
from model_updates.gate.examined import FEWEST_THINGS
from model_updates.gate.report import GateReport, GateRow, Verdict

MOST_NAMED = 2
"""Languages or domains that are told of each kind; of more the number is."""
_VIEWS = ("mixed", "own")
_COUNTED = {
    "t2i_r10": template("{after} of your {count} test captions among the first ten, {before} before"),
    "t2i_r1": template("{after} of your {count} test captions in first place, {before} before"),
    "t2i_r5": template("{after} of your {count} test captions among the first five, {before} before"),
}
_WHY = {
    ("learned", Verdict.REVIEW): phrase("That could be chance."),
    ("learned", Verdict.REJECT): phrase("What was taught was not learned."),
    ("visible", Verdict.REVIEW): phrase("That could be chance when all pictures are searched."),
    ("visible", Verdict.REJECT): phrase("What was taught is harder to find among all pictures than before."),
    ("kept", Verdict.REVIEW): phrase("Some of what was known may be lost."),
    ("kept", Verdict.REJECT): phrase("Some of what was known is lost."),
    ("worst slice", Verdict.REVIEW): phrase("Some of what was known may be lost."),
    ("worst slice", Verdict.REJECT): phrase("Some of what was known is lost."),
    ("displacement", Verdict.REVIEW): phrase("Some of what was known may stand behind new pictures."),
    ("displacement", Verdict.REJECT): phrase("Some of what was known stands behind new pictures."),
    ("canaries", Verdict.REJECT): phrase("Queries that must keep their answer lose it."),
}


@dataclass(frozen=True)
class CaptionsFound:
    """How many captions of one language and domain find their picture, before and after."""

    name: str  # what people call it
    captions: int  # how many looked
    found: dict[str, tuple[int, int]]  # by recall: how many found it before and after
    words: tuple[str, ...]  # of captions that find it now

    @property
    def step(self) -> int:
        """How many more find it, at all depths together; below zero how many less."""
        return sum(after - before for before, after in self.found.values())

    @property
    def counted(self) -> str:
        """The counts at the deepest place that moved the same way."""
        moved = [
            name for name in _COUNTED if (self._moved(name) > 0) == (self.step > 0) and self._moved(name)
        ]
        before, after = self.found[moved[0]]
        return phrase(_COUNTED[moved[0]], after=after, count=self.captions, before=before)

    def _moved(self, name: str) -> int:
        before, after = self.found[name]
        return after - before


def verdict_sentences(report: GateReport, name_of: NameOf = english_name) -> list[str]:
    """Returns what is found better, what worse, and why it is not sure, where it is not."""
    report = shown_report(report)
    told = _told(report, name_of)
    better = sorted((one for one in told if one.step > 0), key=lambda one: -one.step)
    worse = sorted((one for one in told if one.step < 0), key=lambda one: one.step)
    said = [*_listed(better, _better), *_listed(worse, _worse)]
    if not told:
        said = [phrase("No test captions of your own were measured.")]
    elif not said:
        said = [phrase("Nothing is found more often or less often than before.")]
    elif not worse:
        said.append(_rest([one for one in told if one.step == 0]))
    return [one for one in (*said, _why(report)) if one]


def question(report: GateReport, *, waits: bool, is_live: bool = False) -> str:
    """Returns what is asked of a person, or how it ended."""
    if waits:
        passed = report.verdict is Verdict.PROMOTE
        return phrase("Make it live?") if passed else phrase("Make it live all the same?")
    return phrase("It is live.") if is_live else phrase("It is not live.")


def _told(report: GateReport, name_of: NameOf) -> list[CaptionsFound]:
    by_slice: dict[str, list[GateRow]] = {}
    for row in _rows(report):
        by_slice.setdefault(row.slice, []).append(row)
    spoken = Counter(name.partition("/")[0] for name in by_slice)

    def named(slice_name: str) -> str:
        language, _, domain = slice_name.partition("/")
        if not domain:  # the built-in checks
            return slice_name
        return name_of(language) if spoken[language] == 1 else f"{name_of(language)} ({domain})"

    return [_counted(named(name), rows) for name, rows in by_slice.items()]


def _rows(report: GateReport) -> Iterable[GateRow]:
    """Yields of each slice that was taught or known the view that people search in, if that was measured."""
    seen: set[tuple[str, str]] = set()
    for view in _VIEWS:
        for row in report.rows:
            if row.view == view and (row.slice, row.role) not in seen:
                seen.add((row.slice, row.role))
                yield row


def _counted(name: str, rows: Sequence[GateRow]) -> CaptionsFound:
    """Adds up what was taught anew of a slice and what was known of it: these are different captions."""
    found = {
        recall: (
            sum(round(row.live_recalls[recall] * row.captions / 100) for row in rows),
            sum(round(row.candidate_recalls[recall] * row.captions / 100) for row in rows),
        )
        for recall in _COUNTED
    }
    words = tuple(dict.fromkeys(word for row in rows for word in row.words))
    return CaptionsFound(name, sum(row.captions for row in rows), found, words)


def _listed(told: Sequence[CaptionsFound], say: Callable[[CaptionsFound], str]) -> list[str]:
    said = [say(one) for one in told[:MOST_NAMED]]
    more = len(told) - len(said)
    if more:
        said.append(phrase("So does 1 other.") if more == 1 else phrase("So do {count} others.", count=more))
    return said


def _better(one: CaptionsFound) -> str:
    if len(one.words) > 1:
        return phrase(
            "{language} now finds “{word}” and “{another}” better ({counted}).",
            language=one.name,
            word=one.words[0],
            another=one.words[1],
            counted=one.counted,
        )
    if one.words:
        return phrase(
            "{language} now finds “{word}” better ({counted}).",
            language=one.name,
            word=one.words[0],
            counted=one.counted,
        )
    return phrase("{language} now finds more ({counted}).", language=one.name, counted=one.counted)


def _worse(one: CaptionsFound) -> str:
    if one.name == BUILT_IN:
        before, after = one.found["t2i_r10"]
        return phrase(
            "The built-in checks lost: {after} of {count} are among the first ten, {before} before.",
            after=after,
            count=one.captions,
            before=before,
        )
    return phrase("{language} now finds less ({counted}).", language=one.name, counted=one.counted)


def _rest(others: Sequence[CaptionsFound]) -> str:
    if not others:
        return ""
    is_same = all(before == after for one in others for before, after in one.found.values())
    return phrase("Nothing else changed.") if is_same else phrase("Nothing else is found less often.")


def _why(report: GateReport) -> str:
    """Returns the reason of the strictest rule, in plain words; empty where it passed."""
    if report.verdict is Verdict.PROMOTE:
        return ""
    names = [rule.rule for rule in report.rules if rule.verdict is report.verdict]
    by_copies = any(rule.rule == "displacement" for rule in report.rules)
    needed = FEWEST_THINGS if by_copies else report.policy.minimum_images
    few = [row for row in report.rows if row.role == "new" and row.images < needed]
    if few and names[0] == "learned" and report.verdict is Verdict.REVIEW:
        return phrase(
            "{count} test pictures are too few to be sure; {needed} would do.",
            count=min(row.images for row in few),
            needed=needed,
        )
    return next((_WHY[name, report.verdict] for name in names if (name, report.verdict) in _WHY), "")
