"""The Update tab: upload, read the report, choose how to learn, watch, decide.

The job runs in a process of its own: closing the page stops nothing, and opening it again finds the job.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.server.serving import OWN_ERRORS, Serving
from app.ui import update_words, wording
from app.ui.access import Access
from app.ui.check import CheckStep
from app.ui.decide import DECIDE, DecideStep
from app.ui.events import AT_ONCE
from app.ui.running import RunView, is_over
from app.ui.teach import OPTION_HEADERS, TeachStep
from app.ui.upload import UploadStep
from app.ui.words import filled, words_of

UPLOAD, CHECK, TEACH = range(DECIDE)
Outputs = tuple[Any, ...]


def add_update_tab(blocks: gr.Blocks, serving: Serving, access: Access) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _UpdateTab(serving, access).connect(blocks)


class _UpdateTab:
    """The components of the tab, step by step, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.chunk = gr.State("")
        with gr.Walkthrough(selected=UPLOAD, elem_id="steps") as self.steps:
            with gr.Step("Upload", id=UPLOAD):
                self._draw_upload()
            with gr.Step("Check", id=CHECK):
                self.check = CheckStep(self.serving, self.access)
            with gr.Step("Teach", id=TEACH):
                self.teach = TeachStep(self.serving, self.access)
                self.run = RunView(self.serving, self.access)
            with gr.Step("Decide", id=DECIDE):
                self.decide = DecideStep(self.serving, self.access)

    def _draw_upload(self) -> None:
        self.upload = UploadStep(self.serving, self.access)
        with gr.Row(elem_classes="beside"):
            self.known = gr.Dropdown(
                [], label="… or teach a chunk that is here already", scale=4, elem_id="known"
            )
            self.use = gr.Button("Use this chunk", scale=1, min_width=150, elem_id="use-known")
        with gr.Row(elem_classes="beside"):
            self.past = gr.Dropdown([], label="… or read how an update was judged", scale=4, elem_id="past")
            self.read = gr.Button("Show its report", scale=1, min_width=150, elem_id="read-past")

    # How it is connected

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        private = AT_ONCE
        chosen = [
            self.upload.said, self.chunk, self.steps, *self.check.components, *self.teach.components,
        ]  # fmt: skip
        self.upload.connect(blocks, chosen, self._chosen, self._not_chosen, private)
        self.use.click(self._use_known, [self.known], chosen, **private)
        self.check.connect(self.chunk, private)
        self.check.go_on.click(lambda: gr.Walkthrough(selected=TEACH), None, self.steps, **private)
        self.teach.connect(self.chunk, private)
        begin, watched = self.teach.begin, [*self.run.components, self.teach.begin]
        begin.click(self._start, [self.chunk, *self.teach.asked], watched, **private)
        self.run.connect(begin, private)
        ended = [*watched, self.past, self.steps, *self.decide.components]
        self.run.timer.tick(self._watch, [self.run.job], ended, show_progress="hidden", **private)
        self.decide.connect(self.teach.why, private)
        self.decide.connect_past(self.past, self.read, self.upload.said, self.steps, private)
        blocks.load(
            self._resume,
            None,
            [self.known, self.past, self.teach.options, *watched, self.steps],
            show_progress="hidden",
            **private,
        )

    # What happens

    def _use_known(self, chunk_id: str | None, request: gr.Request) -> Outputs:
        if not chunk_id:
            return self._not_chosen(words_of(request)("Choose a chunk first."))
        try:
            self.access.admin(request)
            record = self.serving.workspace.catalog.chunk(chunk_id)
            return self._chosen(record.id, None, request)
        except OWN_ERRORS as error:
            return self._not_chosen(wording.refusal(error, words_of(request)))

    def _chosen(self, chunk_id: str, embedded: int | None, request: gr.Request) -> Outputs:
        chunk = self.serving.workspace.catalog.chunk(chunk_id)
        shown = self.check.shown(chunk, request, embedded=embedded)
        chosen = self.teach.chosen(chunk_id, words_of(request))
        return "", chunk_id, gr.Walkthrough(selected=CHECK), *shown, *chosen

    def _not_chosen(self, line: str) -> Outputs:
        rest = len(self.check.components) + len(self.teach.components) + 1
        return (line, "", *([gr.skip()] * rest))

    def _start(
        self,
        chunk_id: str,
        name: str,
        options: list[list[str]],
        seed: float,
        at_once: bool,
        why: str,
        request: gr.Request,
    ) -> Outputs:
        try:
            by = self.access.admin(request).name
            job = self.teach.start(chunk_id, name, options, seed, at_once, why, by=by)
        except OWN_ERRORS as error:
            return *self.run.refused(str(error), request), gr.Button()
        return *self.run.shown(job, request), gr.Button(interactive=False)

    def _watch(self, job_id: str, request: gr.Request) -> Outputs:
        nothing = [gr.skip()] * (2 + len(self.decide.components))
        try:
            self.access.admin(request)
            job = self.serving.workspace.catalog.job(job_id)
        except OWN_ERRORS as error:
            return *self.run.refused(str(error), request), gr.Button(interactive=True), *nothing
        shown = *self.run.shown(job, request), gr.Button(interactive=True) if is_over(job) else gr.skip()
        if not is_over(job) or not job.result.get("verdict"):
            return *shown, *nothing
        self.serving.refresh()
        steps = gr.Walkthrough(selected=DECIDE)
        return *shown, self.decide.past(words_of(request)), steps, *self.decide.shown(job, request)

    def _resume(self, request: gr.Request) -> Outputs:
        """Fills the menus, and finds an update that is still running, or was stopped and can go on."""
        say = words_of(request)
        options = filled(OPTION_HEADERS, [], say)
        try:
            self.access.admin(request)
            chunks = self.serving.workspace.catalog.chunks()
            job = self.run.open_job()
        except OWN_ERRORS:
            return gr.Dropdown(), gr.Dropdown(), options, *self.run.nothing(), gr.skip(), gr.skip()
        known = gr.Dropdown(
            choices=[(update_words.chunk_label(chunk, say), chunk.id) for chunk in reversed(chunks)]
        )
        menus = known, self.decide.past(say), options
        if job is None:
            return *menus, *self.run.nothing(), gr.skip(), gr.skip()
        begin = gr.skip() if is_over(job) else gr.Button(interactive=False)
        return *menus, *self.run.shown(job, request), begin, gr.Walkthrough(selected=TEACH)
