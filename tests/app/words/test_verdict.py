"""The verdict in plain sentences: counts of a person's own test captions, better and worse named alike."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.words.verdict import question, verdict_sentences
from model_updates.gate.report import GateReport, GateRow, Verdict
from tests.app.gate_reports import gate_report

FOUND = {"t2i_r1": 0, "t2i_r5": 0, "t2i_r10": 0}
BASE = gate_report("promote")


def _row(
    name: str, before: tuple[int, int, int], after: tuple[int, int, int], *, of: int = 100, role: str = "kept"
) -> GateRow:
    """A slice of so many captions, with how many find their picture in first place, among five and among ten."""
    shares = [dict(zip(FOUND, (100 * n / of for n in counts), strict=True)) for counts in (before, after)]
    row = replace(BASE.rows[0], slice=name, view="mixed", role=role, captions=of)
    return replace(row, live_recalls=shares[0], candidate_recalls=shares[1])


def _said(*rows: GateRow, report: GateReport = BASE) -> str:
    return " ".join(verdict_sentences(replace(report, rows=rows)))


CZECH = _row("cs/photo", (5, 12, 18), (6, 15, 21), role="new")
SAME = _row("en/photo", (40, 60, 70), (40, 60, 70))


def test_what_is_found_better_is_counted_and_the_rest_is_said_to_be_as_before() -> None:
    assert _said(CZECH, SAME) == (
        "Czech now finds more (21 of your 100 test captions among the first ten, 18 before). "
        "Nothing else changed."
    )
    words = replace(CZECH, words=("pes", "pláž"))
    assert _said(words, SAME).startswith("Czech now finds “pes” and “pláž” better (21 of your 100 test")
    assert _said(replace(CZECH, words=("pes",)), SAME).startswith("Czech now finds “pes” better (21 of")


def test_what_got_worse_is_named_in_the_same_way() -> None:
    german = _row("de/photo", (40, 60, 70), (38, 58, 64))
    assert _said(CZECH, SAME, german) == (
        "Czech now finds more (21 of your 100 test captions among the first ten, 18 before). "
        "German now finds less (64 of your 100 test captions among the first ten, 70 before)."
    )


def test_the_deepest_place_that_moved_the_same_way_is_told() -> None:
    first = _row("cs/photo", (5, 12, 18), (9, 15, 18))
    assert "(9 of your 100 test captions in first place, 5 before)" in _said(first)
    worse = _row("cs/photo", (9, 15, 18), (4, 15, 19))
    assert _said(worse) == "Czech now finds less (4 of your 100 test captions in first place, 9 before)."


def test_captions_of_one_slice_that_were_known_and_taught_count_together() -> None:
    taught, known = (
        _row("de/photo", (1, 2, 3), (4, 5, 6), of=20, role="new"),
        _row("de/photo", (2, 3, 4), (2, 3, 4), of=30),
    )
    assert "10 of your 50 test captions among the first ten, 7 before" in _said(taught, known)


def test_two_domains_of_a_language_are_told_apart() -> None:
    ink = _row("en/ink", (0, 0, 0), (5, 8, 9), role="new")
    assert _said(ink, SAME).startswith("English (ink) now finds more (9 of your 100")


def test_many_languages_are_counted_and_not_listed() -> None:
    many = [_row(f"{tag}/photo", (0, 0, 0), (n, n, n)) for n, tag in enumerate(("de", "fr", "cs", "hi"), 1)]
    said = _said(*many)
    assert said.startswith("Hindi now finds more (4 of your")
    assert said.endswith("So do 2 others.")
    assert _said(*many[:3]).endswith("So does 1 other.")


def test_a_search_among_everything_counts_before_the_own_gallery() -> None:
    own = replace(CZECH, view="own", candidate_recalls=dict.fromkeys(FOUND, 99.0))
    assert "21 of your 100" in _said(own, CZECH)
    assert "99 of your 100" in _said(own)
    memory = replace(CZECH, view="memory")
    assert _said(memory) == "No test captions of your own were measured."


def test_the_built_in_checks_are_told_only_where_they_lost() -> None:
    checks = _row("en/probes", (140, 150, 158), (120, 140, 150), of=160)
    assert "built-in" not in _said(CZECH, checks)
    lost = replace(checks, verdict=Verdict.REJECT)
    assert "The built-in checks lost: 150 of 160 are among the first ten, 158 before." in _said(CZECH, lost)


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        ("promote", "Nothing else changed."),
        ("review", "Some of what was known may be lost."),
        ("reject", "Some of what was known is lost."),
    ],
)
def test_what_is_not_sure_says_why_in_a_sentence(verdict: str, why: str) -> None:
    assert _said(CZECH, SAME, report=gate_report(verdict)).endswith(why)


def test_too_few_test_pictures_are_told_with_how_many_would_do() -> None:
    rules = tuple(
        replace(rule, verdict=Verdict.REVIEW if rule.rule == "learned" else Verdict.PROMOTE)
        for rule in BASE.rules
    )
    few = replace(CZECH, images=24)
    said = _said(few, SAME, report=replace(BASE, rules=rules))
    assert said.endswith("24 test pictures are too few to be sure; 100 would do.")
    assert _said(CZECH, SAME, report=replace(BASE, rules=rules)).endswith("That could be chance.")


def test_a_person_is_asked_where_there_is_something_to_decide() -> None:
    review = gate_report("review")
    assert question(BASE, waits=True) == "Make it live?"
    assert question(review, waits=True) == "Make it live all the same?"
    assert question(BASE, waits=False, is_live=True) == "It is live."
    assert question(gate_report("reject"), waits=False) == "It is not live."


def test_nothing_that_moved_is_said_plainly() -> None:
    assert _said(SAME) == "Nothing is found more often or less often than before."
