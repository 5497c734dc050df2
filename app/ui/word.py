"""A person's word on a chunk: accept it or withdraw it, with a reason that is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.wording import refusal
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase

About = Callable[[Visit, ChunkRecord], Shown]
"""What the components around show of a chunk."""


class PersonsWord:
    """The reason, the two buttons, and what happens on them."""

    def __init__(self, access: Access, name: str = "") -> None:
        """Draws them; call where they are to stand. `name` begins their ids, where a page has them twice."""
        self.access = access
        with gr.Group(visible=False, elem_id=f"{name}word") as self.group:
            self.why = gr.Textbox(
                label="Your decision on this chunk, with a reason",
                placeholder="Saved with your name, for example: I checked the examples, the captions are right",
                max_length=500,
                elem_id=f"{name}word-why",
            )
            self.measures = gr.Checkbox(
                False,
                label="Also use it for measuring",
                info="Its held-out pairs then judge other updates, too.",
                elem_id=f"{name}word-measures",
            )
        with gr.Row(visible=False) as self.buttons:
            self.accept = gr.Button("Accept for training", elem_id=f"{name}accept")
            self.withdraw = gr.Button("Withdraw the chunk", variant="stop", elem_id=f"{name}withdraw")
        self.said = text(f"{name}word-said", "status")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        return [self.group, self.buttons, self.why, self.measures, self.said]

    def shown(self, chunk: ChunkRecord, said: str = "") -> Shown:
        """Returns what is shown for a chunk, and of the last word on it."""
        can_be = chunk.standing != "withdrawn"
        return {
            self.group: gr.update(visible=can_be),
            self.buttons: gr.update(visible=can_be),
            self.why: "",
            self.measures: chunk.measures,
            self.said: said,
        }

    def connect(self, chunk: gr.State, around: list[Any], about: About) -> None:
        """Connects the buttons.

        Args:
            chunk: the id of the chunk that is shown.
            around: the other components that show the chunk.
            about: what they show of it.
        """
        self._about = about
        given, outputs = [chunk, self.why, self.measures], [*self.components, *around]
        for button, act in ((self.accept, self._accept), (self.withdraw, self._withdraw)):
            button.click(self.access.of_admin(act, self.said), given, outputs, **AT_ONCE)

    def _accept(self, visit: Visit, chunk: str, why: str, measures: bool) -> Shown:
        record = visit.desk.accept(chunk, why, measures)
        earns = phrase("Its held-out pairs measure every update from now on.") if record.measures else ""
        accepted = phrase("Chunk {chunk} is accepted and can be used for training.", chunk=record.id)
        return self._given(visit, record, joined((accepted, earns)))

    def _withdraw(self, visit: Visit, chunk: str, why: str, _measures: bool) -> Shown:
        gone = visit.desk.withdraw(chunk, why)
        taking = phrase("Job {job} is removing them from search.", job=gone.job.id) if gone.job else ""
        return self._given(visit, gone.chunk, joined((gone.sentence, taking)))

    def _given(self, visit: Visit, chunk: ChunkRecord, said: str) -> Shown:
        return {**self.shown(chunk, refusal(said, visit.say)), **self._about(visit, chunk)}
