"""How far the vectors of two releases have turned, as a part of the Quality tab and of the Compare tab."""

from __future__ import annotations

import gradio as gr

from app.desk.errors import UsageProblem
from app.ui.access import Access, Shown, Visit
from app.ui.drawn import drawing, drawn
from app.ui.drift_plot import drift_view
from app.ui.events import one_at_a_time
from ingest.sentence import phrase

CHOOSE_TWO = phrase("Choose two releases.")


class DriftPanel:
    """A button, and the angles that it has measured."""

    def __init__(self, access: Access, name: str) -> None:
        """Prepares; `draw` draws. The ids of its components begin with `name`."""
        self.access, self._name = access, name

    def draw_button(self) -> None:
        """Draws the button; call where it is to stand."""
        self.measure = gr.Button("Measure", elem_id=f"{self._name}-measure")

    def draw_found(self) -> None:
        """Draws what is found; call where it is to stand."""
        self.said = gr.Markdown("", elem_classes="status", elem_id=f"{self._name}-said", latex_delimiters=[])
        self.found = drawing(f"{self._name}-table", "tables")

    def connect(self, before: gr.Dropdown, after: gr.Dropdown) -> None:
        """Connects the button with the menus of two releases."""
        measure = self.access.of_admin(self._drift, self.said, {self.found: drawn(None)})
        self.measure.click(measure, [before, after], [self.said, self.found], **one_at_a_time("quality"))

    def _drift(self, visit: Visit, before: str, after: str) -> Shown:
        if not (before and after):
            raise UsageProblem(CHOOSE_TWO)
        view = drift_view(visit.desk.drift(before, after), visit.say)
        return {self.said: gr.update(visible=False), self.found: drawn(view)}
