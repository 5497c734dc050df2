"""How far the vectors of two releases have turned, as a part of the Quality tab and of the Compare tab."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.learning.drift import drift_between
from app.server.security import Account
from app.server.serving import OWN_ERRORS, Serving
from app.ui.drawn import drawing, drawn
from app.ui.drift_plot import drift_view
from app.ui.events import one_at_a_time
from app.ui.wording import refusal
from app.ui.words import words_of
from ingest.sentence import phrase

CHOOSE_TWO = phrase("Choose two releases.")
_PAIRS = 500
Outputs = tuple[Any, ...]


class Drift:
    """A button, and the angles that it has measured."""

    def __init__(self, serving: Serving, name: str, admin: Callable[[gr.Request], Account]) -> None:
        """Prepares; `draw` draws.

        Args:
            serving: of this server.
            name: begins the ids of its components.
            admin: refuses who may not have this measured.
        """
        self.serving, self._name, self._admin = serving, name, admin

    def draw_button(self) -> None:
        """Draws the button; call where it is to stand."""
        self.measure = gr.Button("Measure", elem_id=f"{self._name}-measure")

    def draw_found(self) -> None:
        """Draws what is found; call where it is to stand."""
        self.said = gr.Markdown("", elem_classes="status", elem_id=f"{self._name}-said", latex_delimiters=[])
        self.found = drawing(f"{self._name}-table", "tables")

    def connect(self, before: gr.Dropdown, after: gr.Dropdown) -> None:
        """Connects the button with the menus of two releases."""
        self.measure.click(
            self._drift,
            [before, after],
            [self.said, self.found],
            **one_at_a_time("quality"),
        )

    def _drift(self, before: str, after: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self._admin(request)
            if not (before and after):
                return gr.Markdown(say.said(CHOOSE_TWO), visible=True), drawn(None)
            found = drift_between(self.serving.workspace, before, after, most=_PAIRS)
        except OWN_ERRORS as error:
            return gr.Markdown(refusal(error, say), visible=True), drawn(None)
        return gr.Markdown(visible=False), drawn(drift_view(found, say))
