"""A gate report names no built-in check that passed, and calls one that lost by that name."""

from __future__ import annotations

from dataclasses import replace

from app.ui.forest import forest_view
from app.ui.report_words import slices_view
from app.ui.words import Words
from app.words import gate as gate_words
from app.words.own_report import BUILT_IN, shown_report
from ingest.sentence import phrase
from model_updates.gate.report import GateReport, Verdict
from tests.app.gate_reports import gate_report


def _with_probes(verdict: str) -> GateReport:
    """A report in which the German icons, which lose, are the built-in checks."""
    report = gate_report(verdict)
    rows = tuple(replace(r, slice=r.slice.replace("de/icons", "en/probes")) for r in report.rows)
    reasons = phrase("{slice} lost against {against}.", slice="en/probes (mixed)", against="live")
    rules = (*report.rules[:-1], replace(report.rules[-1], reasons=(reasons,)))
    moved = [replace(one, slice="en/probes") for one in report.lost]
    return replace(report, rows=rows, rules=rules, lost=(*moved, report.won[0]))


def test_what_passed_on_them_is_not_told() -> None:
    shown = shown_report(_with_probes("promote"))
    assert {row.slice for row in shown.rows} == {"sw/icons", "en/icons"}
    assert [one.slice for one in shown.lost] == ["de/icons"]
    assert shown.verdict is Verdict.PROMOTE


def test_a_loss_on_them_is_told_in_the_words_of_the_reader() -> None:
    shown = shown_report(_with_probes("reject"))
    (row,) = [
        row for row in shown.rows if row.view == "mixed" and row.role == "kept" and row.verdict != "promote"
    ]
    assert row.slice == BUILT_IN
    assert "en/probes" not in " ".join((*shown.reasons, *shown.next_steps))
    assert "built-in checks lost against live." in shown.reasons
    german = Words("de")
    for drawn in (slices_view(shown, german), forest_view(shown, german)):
        assert german.said(BUILT_IN) in drawn
        assert "built-in" not in drawn


def test_what_promoting_accepts_to_lose_on_them_is_told() -> None:
    shown = shown_report(_with_probes("review"))
    assert any(one.startswith("built-in checks") for one in gate_words.debts(shown))
