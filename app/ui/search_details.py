"""The details beside the grid: the chosen picture, what is known of it, and what a person says of it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.feedback import votes as feedback
from app.server.serving import OWN_ERRORS, Serving
from app.ui import search_words, wording
from app.ui.access import base_of, person
from app.ui.events import AT_ONCE
from app.ui.screen import Screen
from app.ui.search_words import Chosen
from app.ui.words import label, words_of

Outputs = tuple[Any, ...]


class Details:
    """The panel.

    Attributes:
        panel: shown while a picture is chosen.
        chosen: its id; "" while none is.
        similar: asks for more like it.
    """

    def __init__(self, serving: Serving) -> None:
        """Draws it; call where it is to stand."""
        self._serving = serving
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

    def connect(self, grid: gr.Gallery, screen: gr.State) -> None:
        """Connects it with the grid and what is on the screen."""
        quiet: dict[str, Any] = {
            **AT_ONCE,
            "show_progress": "hidden",
            "show_progress_on": [self.said],
        }
        parts = [self.panel, self.picture, self.facts, self.said, self.chosen]
        grid.select(self._choose, [screen], parts, **quiet)
        self.close.click(_put_away, None, [grid, *parts], **quiet)
        self.up.click(self._fits, [screen, self.chosen], [self.said], **quiet)
        self.down.click(self._does_not_fit, [screen, self.chosen], [self.said], **quiet)

    def _choose(self, screen: Screen, request: gr.Request, event: gr.SelectData) -> Outputs:
        place = event.index if isinstance(event.index, int) else -1
        if not 0 <= place < len(screen.found):
            return _closed()
        image_id, score = screen.found[place]
        catalog = self._serving.workspace.catalog
        larger, facts = search_words.picture_details(
            Chosen(image_id, score, screen.asked.offset + place + 1, self._learned()),
            catalog.image(image_id),
            catalog.captions_of(image_id),
            wording.base_address(*base_of(request)),
            words_of(request),
        )
        return gr.Column(visible=True), larger, facts, "", image_id

    def _learned(self) -> tuple[str, ...]:
        live = self._serving.live()
        return () if live is None else live.languages

    def _fits(self, screen: Screen, chosen: str, request: gr.Request) -> str:
        return self._judge(screen, chosen, "up", request)

    def _does_not_fit(self, screen: Screen, chosen: str, request: gr.Request) -> str:
        return self._judge(screen, chosen, "down", request)

    def _judge(self, screen: Screen, chosen: str, verdict: str, request: gr.Request) -> str:
        try:
            feedback.thumb(
                self._serving.workspace,
                query=screen.query,
                language=screen.asked.language,
                release=screen.release,
                image_id=chosen,
                verdict=verdict,
                by=person(request).name,
            )
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request))
        say = words_of(request)
        return say("Kept: this picture fits.") if verdict == "up" else say("Kept: this picture does not fit.")


def _closed() -> Outputs:
    """The outputs when no picture is chosen."""
    return gr.Column(visible=False), "", "", "", ""


def _put_away() -> Outputs:
    """Closes the panel; no picture is marked as chosen any longer."""
    return gr.Gallery(selected_index=None), *_closed()
