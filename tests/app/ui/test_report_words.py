"""Claims about verdicts and findings on the screens: everything is there, and all of it literally."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from app.desk.verdicts import Gate, Judged
from app.ui import report_words, update_words
from app.words import gate as gate_words
from app.words.verdict import verdict_sentences
from ingest.findings import Example, Outcome
from ingest.records import JobRecord
from model_updates.gate.report import points
from tests.app.gate_reports import HOSTILE, PICTURES, chunk_with_findings, findings, gate_report

BASE = "http://here"


def drawn(markdown: str) -> str:
    """What a browser would be given; raw HTML passes, so that any that is not ours would show."""
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))


def tags(markup: str) -> set[str]:
    return set(re.findall(r"<(\w+)", markup))


def words(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def judged(verdict: str) -> Judged:
    return Judged("j7", "The gate's report of j7.", job="j7", gate=Gate.read(gate_report(verdict).to_json()))


@pytest.mark.parametrize(
    ("verdict", "mark", "asked"),
    [
        ("promote", "✓ Passed", "Make it live?"),
        ("review", "? Needs your decision", "Make it live all the same?"),
        ("reject", "✗ Rejected", "It is not live."),
    ],
)
def test_the_verdict_says_in_large_what_changed_and_asks(verdict: str, mark: str, asked: str) -> None:
    shown = drawn(report_words.verdict_view(judged(verdict), waits=verdict != "reject"))
    (large,) = re.findall("<h2>(.*?)</h2>", shown)
    told = " ".join(verdict_sentences(gate_report(verdict)))
    assert words(large) == f"{told} {asked}"
    assert "Swahili now finds more (200 of your 400 test captions" in told
    assert words(shown).endswith(f"{mark} · The gate's report of j7.")


def test_no_bound_and_no_rule_is_in_the_first_view() -> None:
    for verdict in ("promote", "review", "reject"):
        shown = words(drawn(report_words.verdict_view(judged(verdict), waits=True)))
        for jargon in ("R@", "points", "confidence", "slice", "%", "≥"):
            assert jargon not in shown


def test_what_was_not_judged_says_why() -> None:
    assert (
        words(drawn(report_words.verdict_view(Judged("r2", "r2 went through no gate."))))
        == "r2 went through no gate."
    )


def test_every_sentence_of_every_rule_can_be_read() -> None:
    shown = words(drawn(report_words.reasons_view(gate_report("reject"))))
    assert [reason for reason in gate_report("reject").reasons if reason not in shown] == []
    assert shown.startswith(gate_report("reject").first_reason)


def test_each_slice_has_one_row_with_its_views_side_by_side() -> None:
    report = gate_report("reject", unchanged=3)
    shown = drawn(report_words.slices_view(report))
    rows = [words(row) for row in re.findall(r"<tr>.*?</tr>", shown, re.DOTALL)]
    (german,) = [row for row in rows if row.startswith("de/icons")]
    for row in report.rows:
        if row.slice == "de/icons":
            assert f"{row.live:.1f} → {row.candidate:.1f} {gate_words.change(row)}" in german
            assert f"R@1 {points(row.first_difference or 0.0)}" in german
    assert "v3" in german
    assert "✗ lost (mixed)" in german
    assert len(rows) == 2 + 1 + 5  # two headers, one taught, five known


def test_what_shows_the_same_thing_stands_beside_the_recalls_where_captions_name_things() -> None:
    report = gate_report("review")
    named = [
        replace(
            row,
            live_recalls=row.live_recalls | {"concept_p10": 88.6},
            candidate_recalls=row.candidate_recalls | {"concept_p10": 55.7},
        )
        for row in report.rows
    ]

    assert "same thing among ten: 88.6 → 55.7" in report_words.slices_view(replace(report, rows=tuple(named)))
    assert "same thing" not in report_words.slices_view(report)


def test_debt_is_shown_where_it_was_accepted_and_told_before_it_is_made() -> None:
    report = gate_report("review")
    owed = replace(report, rows=tuple(replace(row, debt=1.5) for row in report.rows))
    assert "accepted: 1.5" in report_words.slices_view(owed)
    assert "accepted:" not in report_words.slices_view(report)
    told = words(drawn(report_words.steps_view(report)))
    assert "If you promote it anyway" in told
    assert gate_words.debts(report)[0] in told
    assert "promote it anyway" not in report_words.steps_view(gate_report("reject"))
    assert report_words.steps_view(gate_report("promote")) == ""


def test_captions_that_moved_show_their_picture_beside_the_one_that_is_first_now() -> None:
    shown = drawn(report_words.moved_view(gate_report("reject"), BASE))
    first = re.findall(r"<li>.*?</li>", shown, re.DOTALL)[0]
    assert re.findall(r'src="([^"]+)"', first) == [
        f"{BASE}/v1/images/{one}/thumbnail" for one in PICTURES[:2]
    ]
    assert "“ein rotes Boot” place 1 → 34 de/icons" in words(first)
    alone = replace(gate_report("reject").lost[0], first_image=PICTURES[0])
    shown = drawn(report_words.moved_view(replace(gate_report("reject"), lost=(alone,), won=()), BASE))
    assert shown.count("<img") == 1


def test_a_finding_shows_outcome_sentence_figures_and_at_most_twelve_examples() -> None:
    shift = next(one for one in findings() if one.outcome is Outcome.HOLD)
    shown = words(drawn(report_words.finding_view(shift, BASE)))
    assert shown.startswith("Row shift · needs a person's word The captions look moved by one row. offset 1")
    many = replace(shift, examples=(Example(PICTURES[0], "de", "x", "y"),) * 15)
    shown = drawn(report_words.finding_view(many, BASE))
    assert shown.count("<img") == 12
    assert "and 3 more" in shown


def test_texts_from_outside_are_shown_literally_in_every_card() -> None:
    report = gate_report("reject", texts=(HOSTILE,))
    report = replace(
        report,
        next_steps=(HOSTILE,),
        rules=(replace(report.rules[0], reasons=(HOSTILE,)), *report.rules[1:]),
        rows=tuple(replace(row, slice=HOSTILE, note=HOSTILE) for row in report.rows),
        lost=tuple(replace(one, slice=HOSTILE) for one in report.lost),
    )
    shift = next(one for one in findings() if one.examples)
    hostile = replace(shift, check=HOSTILE, sentence=HOSTILE, figures={HOSTILE: HOSTILE})
    ours = {"h2", "h3", "p", "ul", "li", "strong", "em", "img", "br"}
    tables = ours | {"table", "thead", "tbody", "tr", "th", "td"}
    views = {
        "verdict": (report_words.verdict_view(Judged("j1", HOSTILE, gate=Gate.read(report.to_json()))), ours),
        "reasons": (report_words.reasons_view(report), ours),
        "steps": (report_words.steps_view(report), ours),
        "slices": (report_words.slices_view(report), tables),
        "moved": (report_words.moved_view(report, BASE), ours),
        "finding": (report_words.finding_view(hostile, BASE), ours),
        "quiet": (report_words.quiet_view([hostile]), ours),
        "standing": (report_words.standing_view(replace(chunk_with_findings(), standing_why=HOSTILE)), ours),
    }
    for name, (markdown, expected) in views.items():
        shown = drawn(markdown)
        assert tags(shown) <= expected, name
        assert "bold</strong>" not in shown, name
        sources = re.findall(r'src="([^"]+)"', shown)
        assert all(source.startswith(f"{BASE}/v1/images/") for source in sources), name
        assert HOSTILE in words(shown) or name == "finding", name


def test_the_menu_of_past_updates_names_the_verdict() -> None:
    result = {"verdict": "reject", "gate": {"verdict": "reject"}, "strategy": "c-clip"}
    job = JobRecord(
        "j4", "update", "rejected", {"chunk": "0a1b"}, {}, result, None, None, "", None, "2026-11-21T14:05:06"
    )
    assert update_words.past_label(job) == "j4 · Rejected · c-clip · 0a1b · 2026-11-21 14:05"


def test_a_held_chunk_is_called_so_in_the_menu() -> None:
    assert update_words.chunk_label(chunk_with_findings()).endswith("de · held")
    assert "new" not in update_words.chunk_label(chunk_with_findings("new"))
