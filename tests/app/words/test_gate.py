"""Claims about verdicts in a terminal: what decided stands first, tables fit, nothing from outside steers it."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from app.words import gate as gate_words
from app.words.gate import gate_parts
from model_updates.gate.report import GateReport, Verdict, points
from tests.app.gate_reports import HOSTILE, gate_report


def shown(report: GateReport, width: int = 100) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    for part in gate_parts(report, width):
        console.print(part)
    return out.getvalue()


@pytest.mark.parametrize("verdict", ["promote", "review", "reject"])
def test_the_verdict_comes_first_with_the_sentence_that_decided(verdict: str) -> None:
    report = gate_report(verdict)
    first, second = shown(report, 200).splitlines()[:2]
    assert first == f"Verdict: {verdict}"
    assert second == report.first_reason
    deciding = next(rule for rule in report.rules if report.first_reason in rule.reasons)
    assert deciding.verdict == verdict


def test_what_decides_is_a_sentence_about_a_loss_and_not_about_what_was_kept() -> None:
    # The rule has sentences of both kinds; those that passed must not stand before the one that did not.
    assert " lost against " in gate_report("reject").first_reason
    assert " perhaps lost against " in gate_report("review").first_reason


@pytest.mark.parametrize("width", [80, 100, 120])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    text = shown(gate_report("reject", unchanged=12), width)
    assert max(map(len, text.splitlines())) <= width


def test_a_slice_takes_one_line_with_its_views_side_by_side() -> None:
    report = gate_report("reject")
    (line,) = [line for line in shown(report, 100).splitlines() if line.startswith(" de/icons")]
    rows = {row.view: row for row in report.rows if row.slice == "de/icons"}
    for row in rows.values():
        assert gate_words.change(row) in line
    assert "v3" in line
    assert "✗ lost (mixed)" in line


def test_slices_without_any_change_are_counted_and_not_listed() -> None:
    text = shown(gate_report("reject", unchanged=12))
    assert "unchanged to the last rank: 13" in text
    assert not any(line.startswith(" l3/icons") for line in text.splitlines())


def test_a_rule_with_many_sentences_says_how_many_are_left() -> None:
    report = gate_report("reject")
    rule = next(rule for rule in report.rules if rule.rule == "worst slice")
    many = replace(rule, reasons=tuple(f"Reason {n}." for n in range(9)))
    report = replace(report, rules=tuple(many if one is rule else one for one in report.rules))
    text = shown(report)
    assert "Reason 2." in text
    assert "Reason 3." not in text
    assert "… and 6 more" in text


def test_captions_that_moved_are_shown_with_places_picture_and_literal_text() -> None:
    text = " ".join(shown(gate_report("reject"), 250).split())
    assert "1 → 34 de/icons aaaaaaaaaaaa bbbbbbbbbbbb ein rotes Boot" in text
    assert HOSTILE in text
    assert "57 → 1" in text
    steering = replace(gate_report("reject").lost[0], text="red\x1b[31m\nline")
    assert "\x1b" not in shown(replace(gate_report("reject"), lost=(steering,)))


def test_next_steps_and_what_a_review_would_accept_to_lose_are_said() -> None:
    report = gate_report("review")
    text = " ".join(shown(report, 200).split())
    assert report.next_steps[0] in text
    row = min((row for row in report.rows if row.view == "mixed"), key=lambda row: row.difference)
    assert f"de/icons (mixed) {points(min(row.difference, row.water_difference or 0))}" in text
    assert "accepts to lose" not in shown(gate_report("reject"))
    assert "accepts to lose" not in shown(gate_report("promote"))


def test_a_report_of_an_older_perennial_is_shown_too() -> None:
    document = gate_report("reject").to_json()
    for row in document["rows"]:
        for name in ("view", "first_difference", "first_low", "water_difference", "water_low", "debt"):
            del row[name]
    document["rows"] = [row for n, row in enumerate(document["rows"]) if n % 2 == 0]
    for name in ("attempts", "next_steps", "lost", "won"):
        del document[name]
    assert "Verdict: reject" in shown(GateReport.from_json(document))


def test_the_strictest_view_decides_a_slices_line() -> None:
    lines = gate_words.slice_lines(gate_report("reject", unchanged=1), "kept")
    assert [(line.slice, line.verdict) for line in lines] == [
        ("de/icons", Verdict.REJECT),
        ("en/icons", Verdict.PROMOTE),
        ("l0/icons", Verdict.PROMOTE),
    ]
    assert [line.is_unchanged for line in lines] == [False, True, True]
    taught = gate_words.slice_lines(gate_report("promote"), "new")
    assert [line.said() for line in taught] == ["✓ learned, visible"]
