"""Old releases pruned on the Releases tab: first what would go, what room that leaves and why the others stay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from app.desk.releases import PrunePlan
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.read_table import ReadTable
from app.ui.wording import escaped, moment
from app.ui.words import ENGLISH, Words
from app.words.messages import size
from ingest.sentence import phrase

HEADERS = ["release", "goes or stays", "made", "why"]
_INTRO = phrase(
    "A pruned release gives up its encoder and its index, so that the disk has room. Its report, its figures and its "
    "place in the history stay, but it cannot be searched, compared or made live any more, and updates are no longer "
    "measured beside it."
)


class Pruning:
    """The components, and what happens on them."""

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.access = access
        self.planned: gr.State = gr.State([])
        with gr.Accordion("Free room: prune old releases", open=False):
            gr.Markdown(_INTRO)
            with gr.Row(elem_classes="beside"):
                self.keep = gr.Number(
                    5, label="How many of the newest stay", precision=0, minimum=0, elem_id="prune-keep"
                )
                self.show = gr.Button("Show what would go", elem_id="prune-plan")
                self.go = gr.Button("Prune these", variant="stop", visible=False, elem_id="prune")
            self.said = text("prune-said", "status")
            self.table = ReadTable("prune-table", phrase("Releases, newest first"), HEADERS, visible=False)

    def connect(self, why: gr.Textbox, rows: list[Any], listed: Callable[[Visit], Shown]) -> None:
        """Connects the buttons.

        Args:
            why: the reason that is kept with what goes.
            rows: the components that list the releases.
            listed: returns what they list now.
        """
        self._listed = listed
        own = [self.planned, self.said, self.table.drawn, self.go]
        show = self.access.of_admin(self._show, self.said)
        self.show.click(show, [self.keep], own, **AT_ONCE)
        go = self.access.of_admin(self._prune, self.said)
        self.go.click(go, [self.planned, self.keep, why], [*own, *rows], **AT_ONCE)

    def _show(self, visit: Visit, keep: float) -> Shown:
        plan = visit.desk.prune_plan(int(keep))
        is_any = bool(plan.going or plan.folders)
        return {
            self.planned: [one.release for one in plan.going],
            self.said: plan_line(plan, visit.say) if is_any else visit.say("There is nothing to prune."),
            self.table.drawn: gr.update(
                visible=True, value=self.table.of(plan_rows(plan, visit.say), visit.say)
            ),
            self.go: gr.update(visible=is_any),
        }

    def _prune(self, visit: Visit, planned: Sequence[str], keep: float, why: str) -> Shown:
        done = visit.desk.prune(planned, int(keep), why)
        return {
            self.planned: [],
            self.said: plan_line(done, visit.say),
            self.table.drawn: gr.update(visible=False),
            self.go: gr.update(visible=False),
            **self._listed(visit),
        }


def plan_line(plan: PrunePlan, say: Words = ENGLISH) -> str:
    """Returns what goes, or went, and what room that leaves."""
    return f"{escaped(say.said(plan.sentence))} ({size(plan.bytes)})"


def plan_rows(plan: PrunePlan, say: Words = ENGLISH) -> list[list[str]]:
    """Returns a row for each release, newest first: whether it goes, and why not."""
    going = {
        one.release: [
            one.release,
            say("goes"),
            moment(one.created),
            say("It was live: updates are no longer measured beside it.") if one.was_live else "",
        ]
        for one in plan.going
    }
    staying = {one.release: [one.release, say("stays"), "–", say.said(one.why)] for one in plan.staying}
    every = going | staying
    return [every[name] for name in sorted(every, key=lambda name: -int(name[1:].split("-")[0]))]
