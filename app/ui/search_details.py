"""The details beside the grid: the chosen picture, what is known of it, and what a person says of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import gradio as gr

from app.desk.opinions import Opinion
from app.desk.troubles import OWN_ERRORS
from app.ui import search_words, wording
from app.ui.access import Access, Visit, base_of
from app.ui.events import AT_ONCE
from app.ui.screen import Screen
from app.ui.words import label, words_of

Outputs = tuple[Any, ...]


class Details:
    """The panel.

    Attributes:
        panel: shown while a picture is chosen.
        chosen: its id; "" while none is.
        similar: asks for more like it.
    """

    def __init__(self, access: Access) -> None:
        """Draws it; call where it is to stand."""
        self._access = access
        self.chosen = gr.State("")
        with gr.Column(
            scale=3, min_width=300, visible=False, elem_classes="details", elem_id="details"
        ) as self.panel:
            self.picture = gr.Markdown(latex_delimiters=[], elem_id="picture")
            with gr.Row(elem_classes="deeds"):
                self.similar = gr.Button(label("More like this"), size="sm", min_width=110, elem_id="similar")
                self.up = gr.Button(label("👍 It fits"), size="sm", min_width=80, elem_id="thumb-up")
                self.down = gr.Button(label("👎 It does not"), size="sm", min_width=80, elem_id="thumb-down")
                self.close = gr.Button(label("Close"), size="sm", min_width=70, elem_id="close")
            self.said = gr.Markdown("", elem_classes="status", elem_id="thumb-said", latex_delimiters=[])
            self.facts = gr.Markdown(latex_delimiters=[], elem_id="facts", elem_classes="captions")

    def connect(self, grid: gr.Gallery, screen: gr.State, learned: gr.State) -> None:
        """Connects it with the grid, what is on the screen, and the languages that the menu offers."""
        quiet: dict[str, Any] = {
            **AT_ONCE,
            "show_progress": "hidden",
            "show_progress_on": [self.said],
        }
        parts = [self.panel, self.picture, self.facts, self.said, self.chosen]
        grid.select(self._choose, [screen, learned], parts, **quiet)
        self.close.click(_put_away, None, [grid, *parts], **quiet)
        for button, verdict in ((self.up, "up"), (self.down, "down")):
            judge = self._access.of_anyone(partial(self._judge, verdict), self.said)
            button.click(judge, [screen, self.chosen], [self.said], **quiet)

    def _choose(
        self, screen: Screen, learned: Sequence[str], request: gr.Request, event: gr.SelectData
    ) -> Outputs:
        place = event.index if isinstance(event.index, int) else -1
        if not 0 <= place < len(screen.hits):
            return _closed()
        hit, say = screen.hits[place], words_of(request)
        try:
            known = self._access.searchers_desk(request).item(hit.id)
        except OWN_ERRORS as error:
            return gr.Column(visible=True), "", wording.refusal(error, say), "", hit.id
        base, rank = wording.base_address(*base_of(request)), screen.asked.offset + place + 1
        larger, facts = search_words.picture_details(hit, rank, known, learned, base, say)
        return gr.Column(visible=True), larger, facts, "", hit.id

    def _judge(self, verdict: str, visit: Visit, screen: Screen, chosen: str) -> str:
        thumb = {"release": screen.release, "image": chosen, "verdict": verdict}
        visit.desk.give_feedback(Opinion(query=screen.query, language=screen.asked.language, **thumb))
        say = visit.say
        return say("Kept: this picture fits.") if verdict == "up" else say("Kept: this picture does not fit.")


def _closed() -> Outputs:
    """The outputs when no picture is chosen."""
    return gr.Column(visible=False), "", "", "", ""


def _put_away() -> Outputs:
    """Closes the panel; no picture is marked as chosen any longer."""
    return gr.Gallery(selected_index=None), *_closed()
