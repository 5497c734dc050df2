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
    """The components of one report: what changed in a sentence, and below, folded, what it rests on."""

    def __init__(self, name: str, empty: str) -> None:
        """Draws the sentence; call where it is to stand, and then `draw_rest`.

        Args:
            name: begins the ids of its components.
            empty: what stands there before there is a report.
        """
        self._name = name
        self.verdict = text(f"{name}-verdict", "verdict", empty)

    def draw_rest(self) -> None:
        """Draws what the sentence rests on; call where it is to stand."""
        name = self._name
        self.steps = text(f"{name}-steps", "notice", visible=False)
        with gr.Accordion("Test captions that moved most", open=False, visible=False) as self.captions:
            self.moved = text(f"{name}-moved", "cards")
        with gr.Accordion("How sure that is: every figure and rule", open=False, visible=False) as self.all:
            self.forest = text(f"{name}-forest", "forest", visible=False)
            self.slices = text(f"{name}-slices", "tables slice-table", visible=False)
            self.reasons = text(f"{name}-reasons", "reasons")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        folded = [self.captions, self.moved, self.all, self.forest, self.slices, self.reasons]
        return [self.verdict, self.steps, *folded]

    def shown(
        self, judged: Judged, base: str, say: Words = ENGLISH, *, waits: bool = False, is_live: bool = False
    ) -> Shown:
        """Returns what the components show of a verdict.

        Args:
            judged: what the gate said, and of what.
            base: address that the browser reached us by.
            say: the words.
            waits: whether a person is asked to make it live.
            is_live: whether it is.
        """
        report = None if judged.gate is None else shown_report(judged.gate)
        parts = dict.fromkeys((self.steps, self.forest, self.slices), "")
        moved = ""
        if report is not None:
            parts = {
                self.steps: report_words.steps_view(report, say),
                self.forest: forest_view(report, say),
                self.slices: report_words.slices_view(report, say),
            }
            moved = report_words.moved_view(report, base, say)
        told = replace(judged, gate=report)
        return {
            self.verdict: report_words.verdict_view(told, say, waits=waits, is_live=is_live),
            **{one: gr.update(value=part, visible=bool(part)) for one, part in parts.items()},
            self.captions: gr.update(visible=bool(moved)),
            self.moved: moved,
            self.all: gr.update(visible=report is not None),
            self.reasons: "" if report is None else report_words.reasons_view(report, say),
        }
