"""The Releases tab: lineage, gate reports, going live and going back."""

from __future__ import annotations

import gradio as gr

from app.desk.releases import WentLive
from app.ui import wording
from app.ui.accepting import Acceptance
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.gate_report import GateReportView
from app.ui.lineage_plot import lineage_view
from app.ui.parts import text
from app.ui.pruning import Pruning
from app.ui.read_table import ReadTable
from app.ui.report_words import release_word_line
from app.ui.shadow import ShadowPart
from app.ui.travelling import Travelling
from app.ui.two_releases import TwoReleases
from app.words.messages import left_out_line
from ingest.release_words import ReleaseWord
from ingest.sentence import phrase

_ID_COLUMN = 1
_PINNED = phrase("It stays live until somebody unpins it.")


def add_releases_tab(blocks: gr.Blocks, access: Access, tab: gr.Tab, shadow_share: float) -> None:
    """Draws the tab and connects it; call inside `tab`. `shadow_share` is what a shadow is asked without a word."""
    _ReleasesTab(access, shadow_share).connect(blocks, tab)


class _ReleasesTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access, shadow_share: float) -> None:
        self.access = access
        self.chosen = gr.State("")
        self.lineage = text("lineage", "lineage forest", visible=False)
        self.table = ReadTable(
            "releases",
            phrase("All releases, newest first"),
            wording.RELEASE_HEADERS,
            picks=[_ID_COLUMN],
            height=500,
        )
        self.said = gr.Markdown(
            "Select a release to see its gate report.", elem_classes="status", elem_id="releases-said"
        )
        self._draw_actions()
        with gr.Column(visible=False) as self.report:
            self.judged = GateReportView("release", "")
            self.judged.draw_rest()
            self.shadow = ShadowPart(access, shadow_share)
        self.two = TwoReleases(access)
        self.travelling = Travelling(access)
        self.pruning = Pruning(access)
        with gr.Accordion("History of the live release", open=False):
            self.history = ReadTable(
                "history", phrase("All commits, newest first"), wording.HISTORY_HEADERS, height=500
            )

    def _draw_actions(self) -> None:
        with gr.Row(elem_classes="beside"):
            self.why = gr.Textbox(
                label="Reason",
                placeholder="Saved in the history with your name",
                max_length=500,
                scale=4,
                elem_id="why",
            )
            self.promote = gr.Button(
                "Promote selected", variant="primary", interactive=False, scale=2, elem_id="promote"
            )
            self.back = gr.Button("Roll back", scale=2, elem_id="roll-back")
        self.accept = Acceptance("release")
        with gr.Row():
            self.reject = gr.Button("Reject selected", interactive=False, elem_id="reject-release")
            self.pin = gr.Button("Pin the live release", elem_id="pin")
            self.unpin = gr.Button("Unpin", visible=False, elem_id="unpin")

    def connect(self, blocks: gr.Blocks, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        of_admin, given = self.access.of_admin, [self.chosen, self.why]
        rows = [self.lineage, self.table.drawn, self.history.drawn, self.pin, self.unpin]
        after = [self.said, self.promote, self.reject, self.why, *self.accept.components, *rows]
        accept = of_admin(self._accept, self.said)
        self.accept.yes.click(accept, [self.chosen, self.accept.why], after, **AT_ONCE)
        actions = (
            (self.promote, self._go_live),
            (self.back, self._go_back),
            (self.reject, self._reject),
            (self.pin, self._pin),
            (self.unpin, self._unpin),
        )
        for button, act in actions:
            button.click(of_admin(act, self.said), given, after, **AT_ONCE)
        buttons = [self.promote, self.reject, self.travelling.export]
        told = [self.report, *self.judged.components, *self.shadow.components]
        select = self.access.on_row(self._select, self.said, self._nothing)
        selected = [self.chosen, self.said, *buttons, *told, *self.accept.components]
        self.table.connect(select, [], selected)
        listed = of_admin(lambda visit: {self.table.drawn: self._listed(visit)}, self.said)
        for pressed in self.shadow.connect(self.chosen, self.why):
            pressed.then(listed, None, [self.table.drawn, self.said], show_progress="hidden", **AT_ONCE)
        self.two.connect()
        self.travelling.connect(self.chosen, rows, self._rows)
        self.pruning.connect(self.why, rows, self._rows)
        opened = [self.said, *rows, self.two.a, self.two.b]
        refresh = of_admin(self._refresh, self.said)
        gr.on([blocks.load, tab.select], refresh, None, opened, show_progress="hidden", **AT_ONCE)

    @property
    def _nothing(self) -> Shown:
        """What is shown where no release is."""
        return {self.chosen: "", self.report: gr.update(visible=False)}

    def _listed(self, visit: Visit) -> str:
        releases, shadow = visit.desk.releases(), visit.desk.in_shadow()
        rows = wording.release_rows(releases, shadow, visit.say)
        return self.table.of(rows, visit.say)

    def _refresh(self, visit: Visit) -> Shown:
        choices = wording.release_choices(visit.desk.releases(), visit.say)
        return {**self._rows(visit), **self.two.menus(choices)}

    def _rows(self, visit: Visit) -> Shown:
        lineage, pinned, say = visit.desk.lineage(), visit.desk.release_words().pinned, visit.say
        drawn = lineage_view(lineage, say)
        held = "" if pinned is None else f"{release_word_line(pinned, say)} {say.said(_PINNED)}\n\n"
        history = wording.history_rows(lineage, say)
        return {
            self.lineage: gr.update(value=held + drawn, visible=bool(drawn)),
            self.table.drawn: self._listed(visit),
            self.history.drawn: self.history.of(history, say),
            self.pin: gr.update(visible=pinned is None),
            self.unpin: gr.update(visible=pinned is not None),
        }

    def _select(self, visit: Visit, cells: list[str]) -> Shown:
        found, say = visit.desk.release(cells[0]), visit.say
        selected = (
            say("Selected: **{release}** (live)", release=found.id)
            if found.live
            else say("Selected: **{release}**", release=found.id)
        )
        word = visit.desk.release_words().judgement(found.id)
        noted = "" if word is None else f" · {release_word_line(word, say)}"
        return {
            **self.accept.answered(),
            self.chosen: found.id,
            self.said: selected + noted,
            self.promote: gr.update(interactive=not found.live and not found.pruned),
            self.reject: gr.update(interactive=not found.live and not found.pruned),
            self.travelling.export: gr.update(interactive=not found.pruned),
            self.report: gr.update(visible=True),
            **self.judged.shown(
                found.judged, visit.base, say, waits=not found.live and not found.pruned, is_live=found.live
            ),
            **self.shadow.shown(visit, found.id),
        }

    def _go_live(self, visit: Visit, release: str, why: str) -> Shown:
        asked = self.accept.asked(visit, release, why)
        return asked or self._live(visit, visit.desk.promote(release, why))

    def _accept(self, visit: Visit, release: str, why: str) -> Shown:
        return self._live(visit, visit.desk.promote(release, why, force=True))

    def _live(self, visit: Visit, done: WentLive) -> Shown:
        line = visit.say("**{release} is live** (commit {number}). {left}", **_facts(done))
        off = gr.update(interactive=False)
        return {**self._done(visit, line), self.promote: off, self.reject: off}

    def _go_back(self, visit: Visit, _release: str, why: str) -> Shown:
        done = visit.desk.roll_back(why=why)
        return self._done(visit, visit.say("**Back to {release}** (commit {number}). {left}", **_facts(done)))

    def _reject(self, visit: Visit, release: str, why: str) -> Shown:
        return self._kept(visit, visit.desk.reject(release, why))

    def _pin(self, visit: Visit, _release: str, why: str) -> Shown:
        return self._kept(visit, visit.desk.pin(why))

    def _unpin(self, visit: Visit, _release: str, why: str) -> Shown:
        return self._kept(visit, visit.desk.unpin(why))

    def _kept(self, visit: Visit, word: ReleaseWord) -> Shown:
        line = f"**{wording.escaped(word.release)}**: {release_word_line(word, visit.say)}"
        return self._done(visit, line)

    def _done(self, visit: Visit, line: str) -> Shown:
        """Says what was done, and shows the tab as it is then."""
        return {self.said: line, self.why: "", **self.accept.answered(), **self._rows(visit)}


def _facts(done: WentLive) -> dict[str, object]:
    left = left_out_line(done.left_out, done.job)
    return {"release": done.release, "number": done.commit, "left": left}
