"""The gate's report on a screen: the same in the Update tab and in the Releases tab."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from app.desk.verdicts import Judged
from app.ui import report_words
from app.ui.access import Shown
from app.ui.forest import forest_view
from app.ui.parts import text
from app.ui.words import ENGLISH, Words
from app.words.own_report import shown_report


class GateReportView:
    """The components of one report, from the verdict down to single captions."""

    def __init__(self, name: str, empty: str) -> None:
        """Draws the report; call where it is to stand.

        Args:
            name: begins the ids of its components.
            empty: what stands there before there is a report.
        """
        self.verdict = text(f"{name}-verdict", "verdict", empty)
        self.steps = text(f"{name}-steps", "notice", visible=False)
        self.forest = text(f"{name}-forest", "forest", visible=False)
        self.slices = text(f"{name}-slices", "tables slice-table", visible=False)
        self.moved = text(f"{name}-moved", "cards", visible=False)
        with gr.Accordion("What each rule says", open=False, visible=False) as self.all:
            self.reasons = text(f"{name}-reasons", "reasons")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        return [self.verdict, self.steps, self.forest, self.slices, self.moved, self.all, self.reasons]

    def shown(self, judged: Judged, base: str, say: Words = ENGLISH) -> Shown:
        """Returns what the components show of a verdict.

        Args:
            judged: what the gate said, and of what.
            base: address that the browser reached us by.
            say: the words.
        """
        report = None if judged.gate is None else shown_report(judged.gate)
        parts = dict.fromkeys((self.steps, self.forest, self.slices, self.moved), "")
        if report is not None:
            parts = {
                self.steps: report_words.steps_view(report, say),
                self.forest: forest_view(report, say),
                self.slices: report_words.slices_view(report, say),
                self.moved: report_words.moved_view(report, base, say),
            }
        return {
            self.verdict: report_words.verdict_view(replace(judged, gate=report), say),
            **{one: gr.update(value=part, visible=bool(part)) for one, part in parts.items()},
            self.all: gr.update(visible=report is not None),
            self.reasons: "" if report is None else report_words.reasons_view(report, say),
        }
