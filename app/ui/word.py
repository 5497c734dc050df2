"""A person's word on a chunk: accept it or withdraw it, with a reason that is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.server import deciding
from app.server.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import Access
from app.ui.words import words_of
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase

Outputs = tuple[Any, ...]
Shown = Callable[[ChunkRecord, gr.Request], Outputs]
"""What the components of the step show of a chunk."""


class PersonsWord:
    """The reason, the two buttons, and what happens on them."""

    def __init__(self, serving: Serving, access: Access, name: str = "") -> None:
        """Draws them; call where they are to stand.

        Args:
            serving: does what the buttons say.
            access: knows who may press them.
            name: begins the ids of the components, where a page has them twice.
        """
        self.serving = serving
        self.access = access
        with gr.Group(visible=False, elem_id=f"{name}word") as self.group:
            self.why = gr.Textbox(
                label="Your word on this chunk, with a reason",
                placeholder="Kept with your name, for example: I looked at the examples, the captions are right",
                max_length=500,
                elem_id=f"{name}word-why",
            )
            self.measures = gr.Checkbox(
                False,
                label="Accept it as measuring material too",
                info="Its held-out pairs then judge other updates at once.",
                elem_id=f"{name}word-measures",
            )
        with gr.Row(visible=False) as self.buttons:
            self.accept = gr.Button("Accept: it may teach", elem_id=f"{name}accept")
            self.withdraw = gr.Button(
                "Withdraw: nothing of it shall count", variant="stop", elem_id=f"{name}withdraw"
            )
        self.said = gr.Markdown("", elem_classes="status", elem_id=f"{name}word-said", latex_delimiters=[])

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [self.group, self.buttons, self.why, self.measures, self.said]

    def shown(self, chunk: ChunkRecord, said: str = "") -> Outputs:
        """Returns what is shown for a chunk.

        Args:
            chunk: as the catalog has it now.
            said: what became of the last word on it.
        """
        can_be = chunk.standing != "withdrawn"
        empty = gr.Textbox(value=""), gr.Checkbox(value=chunk.measures)
        return gr.Group(visible=can_be), gr.Row(visible=can_be), *empty, said

    def connect(self, chunk: gr.State, around: list[Any], shown: Shown, private: dict[str, Any]) -> None:
        """Connects the buttons.

        Args:
            chunk: the id of the chunk that is shown.
            around: the other components that show the chunk.
            shown: what they show of it.
            private: how Gradio is to call functions of admins.
        """
        self._shown, self._around = shown, around
        outputs = [*self.components, *around]
        self.accept.click(self._accept, [chunk, self.why, self.measures], outputs, **private)
        self.withdraw.click(self._withdraw, [chunk, self.why], outputs, **private)

    def _accept(self, chunk: str, why: str, measures: bool, request: gr.Request) -> Outputs:
        def accept(by: str) -> str:
            record = deciding.accept(self.serving, chunk, why=why, by=by, measure=measures)
            earns = phrase("Its held-out pairs measure every update from now on.") if record.measures else ""
            accepted = phrase("Chunk {chunk} is accepted: it may be taught.", chunk=record.id)
            return joined((accepted, earns))

        return self._give(chunk, accept, request)

    def _withdraw(self, chunk: str, why: str, request: gr.Request) -> Outputs:
        def withdraw(by: str) -> str:
            gone, job = deciding.withdraw(self.serving, chunk, why=why, by=by)
            taking = phrase("Job {job} is taking them out of search.", job=job.id) if job else ""
            return joined((gone.sentence, taking))

        return self._give(chunk, withdraw, request)

    def _give(self, chunk: str, give: Callable[[str], str], request: gr.Request) -> Outputs:
        """Gives a person's word on a chunk and shows the chunk as it stands then."""
        say = words_of(request)
        try:
            said = give(self.access.admin(request).name)
            record = self.serving.workspace.catalog.chunk(chunk)
        except OWN_ERRORS as error:
            kept = [gr.skip()] * (len(self.components) - 1)
            return *kept, wording.refusal(error, say), *([gr.skip()] * len(self._around))
        shown = self.shown(record, wording.refusal(said, say))
        return *shown, *self._shown(record, request)
