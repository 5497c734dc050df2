"""The Quality tab: what each version reaches on each slice, what it lost, drift, coverage, and what is asked for."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.feedback.asked import asked_languages
from app.learning.lost import slice_moves
from app.learning.quality import coverage, quality_table
from app.server.serving import OWN_ERRORS, Serving
from app.ui import quality_plots as plots
from app.ui import quality_words as words
from app.ui import wording
from app.ui.access import Access, base_of
from app.ui.drawn import drawing, drawn
from app.ui.drift import Drift
from app.ui.events import AT_ONCE, one_at_a_time
from app.ui.words import Words, words_of

Outputs = tuple[Any, ...]


def add_quality_tab(serving: Serving, access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _QualityTab(serving, access).connect(tab)


class _QualityTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.advice = gr.Markdown(
            "", visible=False, elem_classes="notice", elem_id="quality-advice", latex_delimiters=[]
        )
        with gr.Row():
            self.metric = gr.Dropdown(
                words.METRICS, value="t2i_r10", label="Metric", elem_id="quality-metric"
            )
            self.view = gr.Dropdown(words.VIEWS, value="own", label="View", elem_id="quality-view")
        self.said = gr.Markdown("", elem_classes="status", elem_id="quality-said", latex_delimiters=[])
        gr.Markdown("## Recall by slice and version, in percent", elem_classes="section")
        self.recall = drawing("quality-recall", "tables")
        self.trend = drawing("quality-trend")
        gr.Markdown("## Lost and won against the best version before", elem_classes="section")
        self.summary = gr.Markdown("", elem_classes="status", elem_id="quality-summary", latex_delimiters=[])
        self.change = drawing("quality-change", "tables")
        self.picked = gr.Textbox(
            "", label="Chosen cell", visible="hidden", interactive=True, elem_id=words.PICK
        )
        self.moved = gr.Markdown(
            words.ASK_LOST, elem_classes="status", elem_id="quality-moved", latex_delimiters=[]
        )
        self.cards = gr.Markdown(
            "", visible=False, elem_classes="cards", elem_id="quality-cards", latex_delimiters=[]
        )
        with gr.Accordion("What is asked for", open=True):
            self.asked = drawing("quality-asked", "tables")
        with gr.Accordion("What there is to learn from and to measure by", open=False):
            self.coverage = drawing("quality-coverage", "tables")
        self.drift = Drift(serving, "drift", access.admin)
        self._draw_drift()

    def _draw_drift(self) -> None:
        with gr.Accordion("How far the vectors of two releases have turned", open=False, elem_id="drift"):
            with gr.Row(elem_classes="beside"):
                self.before = gr.Dropdown([], label="From", elem_id="drift-before")
                self.after = gr.Dropdown([], label="To", elem_id="drift-after")
                self.drift.draw_button()
            self.drift.draw_found()

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        private = {**AT_ONCE, "show_progress": "hidden"}
        tables = [self.said, self.recall, self.trend, self.summary, self.change]
        chosen = [self.metric, self.view]
        rest = [self.advice, self.asked, self.coverage, self.before, self.after, *chosen]
        tab.select(self._everything, chosen, [*tables, *rest], **private)
        for menu in chosen:
            menu.input(self._tables, chosen, tables, **private)
        self.picked.change(
            self._moves, [self.picked, self.view], [self.moved, self.cards], **one_at_a_time("quality")
        )
        self.drift.connect(self.before, self.after)

    def _everything(self, metric: str, view: str, request: gr.Request) -> Outputs:
        say, tables = words_of(request), self._tables(metric, view, request)
        menus = [gr.Dropdown(words.menu(choices, say)) for choices in (words.METRICS, words.VIEWS)]
        try:
            self.access.admin(request)
            workspace, live = self.serving.workspace, self.serving.live()
            asked = asked_languages(workspace.catalog, live.languages if live else ())
            advice = words.advice_line(asked, say)
            return (
                *tables,
                gr.Markdown(advice, visible=bool(advice)),
                drawn(plots.asked_table(asked, say)),
                drawn(plots.coverage_table(coverage(workspace), say)),
                *self._releases(say),
                *menus,
            )
        except OWN_ERRORS:
            nothing = gr.Markdown(visible=False), drawn(None), drawn(None), gr.skip(), gr.skip()
            return *tables, *nothing, *menus

    def _releases(self, say: Words) -> Outputs:
        live, records = self.serving.live_id(), self.serving.releases()
        choices = [(wording.release_label(record, live, say), record.id) for record in records]
        current = next((record for record in records if record.id == live), None)
        others = [record for record in records if current is None or record.version != current.version]
        before = others[0].id if others else live
        return gr.Dropdown(choices=choices, value=before), gr.Dropdown(choices=choices, value=live)

    def _tables(self, metric: str, view: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            table = quality_table(self.serving.workspace, metric=metric, view=view)
        except OWN_ERRORS as error:
            return wording.refusal(error, say), drawn(None), drawn(None), "", drawn(None)
        if not table.lines:
            return say.said(words.NOT_MEASURED), drawn(None), drawn(None), "", drawn(None)
        return (
            say.said(words.MEASURED_THEN),
            drawn(plots.recall_table(table, say)),
            drawn(plots.trend_plot(table, say)),
            words.summary_line(table, say),
            drawn(plots.change_table(table, say)),
        )

    def _moves(self, picked: str, view: str, request: gr.Request) -> Outputs:
        say, parts = words_of(request), picked.split("#")[0].split(words.BETWEEN)
        try:
            self.access.admin(request)
            if len(parts) != len(words.PICKED):
                return say.said(words.ASK_LOST), gr.Markdown(visible=False)
            moves = slice_moves(self.serving.workspace, *parts, view=view)
        except OWN_ERRORS as error:
            return wording.refusal(error, say), gr.Markdown(visible=False)
        cards = words.moves_view(moves, wording.base_address(*base_of(request)), say)
        return words.moves_title(moves, say), gr.Markdown(cards, visible=True)
