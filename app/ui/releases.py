"""The Releases tab: lineage, gate reports, going live and going back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.feedback import shadow
from app.learning.judged import judged_release
from app.learning.release_words import judgement, pinned
from app.server.serving import OWN_ERRORS, Serving, WentLive
from app.ui import wording
from app.ui.access import Access, base_of
from app.ui.events import AT_ONCE
from app.ui.gate_report import GateReportView
from app.ui.lineage_plot import lineage_view
from app.ui.report_words import release_word_line
from app.ui.shadow import ShadowPart
from app.ui.travelling import Travelling
from app.ui.two_releases import TwoReleases
from app.ui.words import Words, filled, words_of
from app.words.messages import left_out_line
from ingest.release_words import ReleaseWord
from ingest.sentence import phrase

_ID_COLUMN = 1
_PINNED = phrase("It stays live until somebody unpins it.")
Outputs = tuple[Any, ...]


def add_releases_tab(blocks: gr.Blocks, serving: Serving, access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _ReleasesTab(serving, access).connect(blocks, tab)


class _ReleasesTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.chosen = gr.State("")
        self.lineage = gr.Markdown(
            "", elem_id="lineage", elem_classes="lineage forest", latex_delimiters=[], visible=False
        )
        self.table = _table(phrase("All releases, newest first"), wording.RELEASE_HEADERS, "releases")
        self.said = gr.Markdown(
            "Select a release to see its gate report.", elem_classes="status", elem_id="releases-said"
        )
        self._draw_actions()
        with gr.Column(visible=False) as self.report:
            self.judged = GateReportView("release", "")
            self.shadow = ShadowPart(serving, access)
        self.two = TwoReleases(serving, access)
        self.travelling = Travelling(serving, access)
        with gr.Accordion("History: what was live since when, and why", open=False):
            self.history = _table(phrase("All commits, newest first"), wording.HISTORY_HEADERS, "history")

    def _draw_actions(self) -> None:
        with gr.Row(elem_classes="beside"):
            self.why = gr.Textbox(
                label="Reason",
                placeholder="Kept in the history with your name",
                max_length=500,
                scale=4,
                elem_id="why",
            )
            self.promote = gr.Button(
                "Promote selected", variant="primary", interactive=False, scale=2, elem_id="promote"
            )
            self.back = gr.Button("Roll back", scale=2, elem_id="roll-back")
        with gr.Row():
            self.reject = gr.Button("Reject selected", interactive=False, elem_id="reject-release")
            self.pin = gr.Button("Pin what is live", elem_id="pin")
            self.unpin = gr.Button("Unpin", visible=False, elem_id="unpin")

    def connect(self, blocks: gr.Blocks, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        rows = [self.lineage, self.table, self.history, self.pin, self.unpin]
        after = [self.said, self.promote, self.reject, self.why, *rows]
        words = [self.said, self.reject, self.why, *rows]
        private = AT_ONCE
        self.table.select(
            self._select,
            [self.table],
            [
                self.chosen,
                self.said,
                self.promote,
                self.reject,
                self.travelling.export,
                self.report,
                *self.judged.components,
                *self.shadow.components,
            ],
            **private,
        )
        self.promote.click(self._go_live, [self.chosen, self.why], after, **private)
        self.back.click(self._go_back, [self.why], after, **private)
        self.reject.click(self._reject, [self.chosen, self.why], words, **private)
        self.pin.click(self._pin, [self.why], words, **private)
        self.unpin.click(self._unpin, [self.why], words, **private)
        for pressed in self.shadow.connect(self.chosen, self.why, private):
            pressed.then(self._listed_again, None, [self.table], show_progress="hidden", **private)
        self.two.connect(private)
        self.travelling.connect(self.chosen, rows, self._rows, private)
        gr.on(
            [blocks.load, tab.select],
            self._refresh,
            None,
            [*rows, self.two.a, self.two.b],
            show_progress="hidden",
            **private,
        )

    def _listed(self, say: Words) -> dict[str, Any]:
        there = shadow.active(self.serving.workspace)
        live = self.serving.live_id()
        rows = wording.release_rows(self.serving.releases(), live, there.release if there else "", say)
        return filled(wording.RELEASE_HEADERS, rows, say)

    def _listed_again(self, request: gr.Request) -> Any:
        try:
            self.access.admin(request)
            return self._listed(words_of(request))
        except OWN_ERRORS:
            return gr.skip()

    def _refresh(self, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            live = self.serving.live_id()
            choices = [(wording.release_label(one, live, say), one.id) for one in self.serving.releases()]
            return *self._rows(say), *self.two.menus(choices)
        except OWN_ERRORS:
            nothing = gr.Button(visible=False)
            tables = filled(wording.RELEASE_HEADERS, [], say), filled(wording.HISTORY_HEADERS, [], say)
            return gr.Markdown(visible=False), *tables, nothing, nothing, gr.Dropdown(), gr.Dropdown()

    def _rows(self, say: Words) -> Outputs:
        drawn = lineage_view(self.serving.lineage(), say)
        standing = pinned(self.serving.workspace)
        held = "" if standing is None else f"{release_word_line(standing, say)} {say.said(_PINNED)}\n\n"
        history = wording.history_rows(self.serving.workspace.releases.history(), say)
        return (
            gr.Markdown(held + drawn, visible=bool(drawn)),
            self._listed(say),
            filled(wording.HISTORY_HEADERS, history, say),
            gr.Button(visible=standing is None),
            gr.Button(visible=standing is not None),
        )

    def _select(self, values: list[list[str]], request: gr.Request, event: gr.SelectData) -> Outputs:
        say = words_of(request)
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        try:
            self.access.admin(request)
            record = self.serving.workspace.releases.release(str(values[row][_ID_COLUMN]))
        except OWN_ERRORS as error:
            nothing = [gr.skip()] * len([*self.judged.components, *self.shadow.components])
            return (
                "",
                wording.escaped(say.said(str(error))),
                gr.skip(),
                gr.skip(),
                gr.skip(),
                gr.Column(visible=False),
                *nothing,
            )
        judged = judged_release(self.serving.workspace.releases, record.id)
        is_live = record.id == self.serving.live_id()
        word = judgement(self.serving.workspace, record.id)
        noted = "" if word is None else f" · {release_word_line(word, say)}"
        return (
            record.id,
            (
                say("Selected: **{release}** (live)", release=record.id)
                if is_live
                else say("Selected: **{release}**", release=record.id)
            )
            + noted,
            gr.Button(interactive=not is_live),
            gr.Button(interactive=not is_live),
            gr.Button(interactive=True),
            gr.Column(visible=True),
            *self.judged.shown(judged, wording.base_address(*base_of(request)), say),
            *self.shadow.shown(record.id, say),
        )

    def _go_live(self, release: str, reason: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            account = self.access.admin(request)
            record = self.serving.workspace.releases.release(release)
            # Whoever presses the button has the report in view: that is the review the gate asks for.
            done = self.serving.promote(record.id, why=reason, by=account.name, force=True)
        except OWN_ERRORS as error:
            return self._refused(error, say)
        line = say(
            "**{release} is live** (commit {number}). {left}",
            release=done.commit.release,
            number=done.commit.number,
            left=_left_out(done),
        )
        off = gr.Button(interactive=False)
        return line, off, off, gr.Textbox(value=""), *self._rows(say)

    def _go_back(self, reason: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            done = self.serving.roll_back(why=reason, by=self.access.admin(request).name)
        except OWN_ERRORS as error:
            return self._refused(error, say)
        line = say(
            "**Back to {release}** (commit {number}). {left}",
            release=done.commit.release,
            number=done.commit.number,
            left=_left_out(done),
        )
        return line, gr.skip(), gr.skip(), gr.Textbox(value=""), *self._rows(say)

    def _reject(self, release: str, why: str, request: gr.Request) -> Outputs:
        return self._keep(lambda by: self.serving.judge_release(release, "rejected", why=why, by=by), request)

    def _pin(self, why: str, request: gr.Request) -> Outputs:
        return self._keep(lambda by: self.serving.pin(why=why, by=by), request)

    def _unpin(self, why: str, request: gr.Request) -> Outputs:
        return self._keep(lambda by: self.serving.unpin(why=why, by=by), request)

    def _keep(self, keep: Callable[[str], ReleaseWord], request: gr.Request) -> Outputs:
        """Keeps a person's word on a release, and shows the tab as it is then."""
        say = words_of(request)
        try:
            word = keep(self.access.admin(request).name)
        except OWN_ERRORS as error:
            return self._refused(error, say)[:-1]
        line = f"**{wording.escaped(word.release)}**: {release_word_line(word, say)}"
        return line, gr.skip(), gr.Textbox(value=""), *self._rows(say)

    def _refused(self, error: Exception, say: Words) -> Outputs:
        return wording.refusal(error, say), *([gr.skip()] * 8)


def _table(label: str, headers: list[str], elem_id: str) -> gr.Dataframe:
    return gr.Dataframe(
        headers=headers, label=label, interactive=False, wrap=True, type="array", elem_id=elem_id
    )


def _left_out(done: WentLive) -> str:
    return left_out_line(done.left_out, done.job)
