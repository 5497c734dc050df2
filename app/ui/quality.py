"""The Quality tab: what each version reaches on each slice, what it lost, drift, coverage, and what is asked for."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from app.desk.releases import ListedRelease
from app.desk.verdicts import QualityTable
from app.ui import quality_plots as plots
from app.ui import quality_words as words
from app.ui.access import Access, Shown, Visit
from app.ui.drawn import drawing, drawn
from app.ui.drift import DriftPanel
from app.ui.events import AT_ONCE, one_at_a_time
from app.ui.parts import text
from app.ui.wording import release_choices
from app.ui.words import Words


def add_quality_tab(access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _QualityTab(access).connect(tab)


class _QualityTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.advice = text("quality-advice", "notice", visible=False)
        with gr.Row():
            self.metric = gr.Dropdown(
                words.METRICS, value="t2i_r10", label="Metric", elem_id="quality-metric"
            )
            self.view = gr.Dropdown(words.VIEWS, value="own", label="View", elem_id="quality-view")
            self.probes = gr.Checkbox(
                False, label="Include built-in checks", info=words.PROBES_ARE, elem_id="quality-probes"
            )
        self.said = text("quality-said", "status")
        gr.Markdown("## Recall by slice and version, in percent", elem_classes="section")
        self.recall = drawing("quality-recall", "tables")
        self.trend = drawing("quality-trend")
        gr.Markdown("## Gains and losses against the best earlier version", elem_classes="section")
        self.summary = text("quality-summary", "status")
        self.change = drawing("quality-change", "tables")
        self.picked = gr.Textbox(
            "", label="Selected cell", visible="hidden", interactive=True, elem_id=words.PICK
        )
        self.moved = text("quality-moved", "status", words.ASK_LOST)
        self.cards = text("quality-cards", "cards", visible=False)
        with gr.Accordion("Languages people search in", open=True):
            self.asked = drawing("quality-asked", "tables")
        with gr.Accordion("Training and test material", open=False):
            self.coverage = drawing("quality-coverage", "tables")
        self.drift = DriftPanel(access, "drift")
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
        of_admin, private = self.access.of_admin, {**AT_ONCE, "show_progress": "hidden"}
        tables = [self.said, self.recall, self.trend, self.summary, self.change]
        menus, asked = [self.metric, self.view], [self.metric, self.view, self.probes]
        rest = [self.advice, self.asked, self.coverage, self.before, self.after, *menus]
        tab.select(of_admin(self._everything, self.said), asked, [*tables, *rest], **private)
        hidden = gr.update(value="", visible=False)
        blank = {self.summary: "", self.recall: hidden, self.trend: hidden, self.change: hidden}
        for menu in menus:
            menu.input(of_admin(self._tables, self.said, blank), asked, tables, **private)
        self.probes.input(of_admin(self._everything, self.said, blank), asked, [*tables, *rest], **private)
        moves = of_admin(self._moves, self.moved, {self.cards: gr.update(visible=False)})
        shown = [self.moved, self.cards]
        self.picked.change(moves, [self.picked, self.view], shown, **one_at_a_time("quality"))
        self.drift.connect(self.before, self.after)

    def _everything(self, visit: Visit, metric: str, view: str, probes: bool) -> Shown:
        found, say = visit.desk.quality(metric, view, probes), visit.say
        advice = words.advice_line(found.asked, say)
        return {
            **self._drawn(found.table, say),
            self.advice: gr.update(value=advice, visible=bool(advice)),
            self.asked: drawn(plots.asked_table(found.asked, say)),
            self.coverage: drawn(plots.coverage_table(found.coverage, say)),
            **self._releases(visit.desk.releases(), say),
            self.metric: gr.update(choices=words.menu(words.METRICS, say)),
            self.view: gr.update(choices=words.menu(words.VIEWS, say)),
        }

    def _releases(self, releases: Sequence[ListedRelease], say: Words) -> Shown:
        """Returns the menus of releases: from the newest that has another encoder than what is live to that."""
        choices, live = release_choices(releases, say), next((one for one in releases if one.live), None)
        others = [one for one in releases if live is None or one.version != live.version]
        before = next(iter(others), live)
        return {
            menu: gr.update(choices=choices, value=one.id if one else None)
            for menu, one in ((self.before, before), (self.after, live))
        }

    def _tables(self, visit: Visit, metric: str, view: str, probes: bool) -> Shown:
        return self._drawn(visit.desk.quality(metric, view, probes).table, visit.say)

    def _drawn(self, table: QualityTable, say: Words) -> Shown:
        is_measured = bool(table.lines)
        return {
            self.said: say.said(words.MEASURED_THEN if is_measured else words.NOT_MEASURED),
            self.recall: drawn(plots.recall_table(table, say) if is_measured else None),
            self.trend: drawn(plots.trend_plot(table, say) if is_measured else None),
            self.summary: words.summary_line(table, say) if is_measured else "",
            self.change: drawn(plots.change_table(table, say) if is_measured else None),
        }

    def _moves(self, visit: Visit, picked: str, view: str) -> Shown:
        parts = picked.split("#")[0].split(words.BETWEEN)
        if len(parts) != len(words.PICKED):
            return {self.moved: visit.say.said(words.ASK_LOST), self.cards: gr.update(visible=False)}
        language, domain, before, after = parts
        moves = visit.desk.moves(language, domain, before, after, view)
        cards = words.moves_view(moves, visit.base, visit.say)
        return {
            self.moved: words.moves_title(moves, visit.say),
            self.cards: gr.update(value=cards, visible=True),
        }
