"""The Update tab: upload, read the report, choose how to learn, watch, decide.

The job runs in a process of its own: closing the page stops nothing, and opening it again finds the job.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.ui import update_words
from app.ui.access import Access, Shown, Visit
from app.ui.check import CheckStep
from app.ui.decide import DECIDE, DecideStep
from app.ui.events import AT_ONCE
from app.ui.running import RunView, is_over, open_job
from app.ui.teach import TeachStep
from app.ui.upload import UploadStep
from ingest.records import JobRecord

UPLOAD, CHECK, TEACH = range(DECIDE)


def add_update_tab(blocks: gr.Blocks, access: Access) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _UpdateTab(access).connect(blocks)


class _UpdateTab:
    """The components of the tab, step by step, and what happens on them."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.chunk = gr.State("")
        with gr.Walkthrough(selected=UPLOAD, elem_id="steps") as self.steps:
            with gr.Step("Upload", id=UPLOAD):
                self._draw_upload()
            with gr.Step("Check", id=CHECK):
                self.check = CheckStep(self.access)
            with gr.Step("Teach", id=TEACH):
                self.teach = TeachStep(self.access)
                self.run = RunView(self.access)
            with gr.Step("Decide", id=DECIDE):
                self.decide = DecideStep(self.access)

    def _draw_upload(self) -> None:
        self.upload = UploadStep(self.access)
        with gr.Row(elem_classes="beside"):
            self.known = gr.Dropdown(
                [], label="… or use a chunk that is already here", scale=4, elem_id="known"
            )
            self.use = gr.Button("Use this chunk", scale=1, min_width=150, elem_id="use-known")
        with gr.Row(elem_classes="beside"):
            self.past = gr.Dropdown(
                [], label="… or read the report of an earlier update", scale=4, elem_id="past"
            )
            self.read = gr.Button("Show its report", scale=1, min_width=150, elem_id="read-past")

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        of_admin, said = self.access.of_admin, self.upload.said
        chosen = [said, self.chunk, self.steps, *self.check.components, *self.teach.components]
        none = {self.chunk: ""}
        self.upload.connect(blocks, chosen, self._chosen, none)
        self.use.click(of_admin(self._use_known, said, none), [self.known], chosen, **AT_ONCE)
        self.check.connect(self.chunk)
        self.check.go_on.click(lambda: gr.update(selected=TEACH), None, self.steps, **AT_ONCE)
        self.teach.connect(self.chunk)
        begin, progress = self.teach.begin, self.run.progress
        watched = [*self.run.components, begin]
        start = of_admin(self._start, progress, self.run.stopped)
        begin.click(start, [self.chunk, *self.teach.asked], watched, **AT_ONCE)
        self.run.connect(begin)
        watch = of_admin(self._watch, progress, {**self.run.stopped, begin: gr.update(interactive=True)})
        ended = [*watched, self.past, self.steps, *self.decide.components]
        self.run.timer.tick(watch, [self.run.job], ended, show_progress="hidden", **AT_ONCE)
        self.decide.connect(self.teach.why)
        past = [said, self.steps, *self.decide.components]
        self.read.click(of_admin(self._read_past, said), [self.past], past, **AT_ONCE)
        found = [self.known, self.past, *watched, self.steps]
        blocks.load(of_admin(self._resume, progress), None, found, show_progress="hidden", **AT_ONCE)

    # What happens

    def _use_known(self, visit: Visit, chunk: str | None) -> Shown:
        if not chunk:
            return {self.upload.said: visit.say("Choose a chunk first."), self.chunk: ""}
        return self._chosen(visit, chunk)

    def _chosen(self, visit: Visit, chunk: str) -> Shown:
        record = visit.desk.chunk(chunk)
        return {
            self.upload.said: "",
            self.chunk: record.id,
            self.steps: gr.update(selected=CHECK),
            **self.check.shown(visit, record),
            **self.teach.chosen(visit, record.id),
        }

    def _start(self, visit: Visit, *asked: Any) -> Shown:
        job = self.teach.start(visit, *asked)
        return {**self.run.shown(visit, job), self.teach.begin: gr.update(interactive=False)}

    def _watch(self, visit: Visit, job_id: str) -> Shown:
        job = visit.desk.job(job_id)
        shown = self.run.shown(visit, job)
        if not is_over(job):
            return shown
        shown = {**shown, self.teach.begin: gr.update(interactive=True)}
        if not job.result.get("verdict"):
            return shown
        return {**shown, self.past: self._past(visit), **self._judged(visit, job)}

    def _judged(self, visit: Visit, job: JobRecord) -> Shown:
        return {self.steps: gr.update(selected=DECIDE), **self.decide.shown(visit, job)}

    def _past(self, visit: Visit) -> Any:
        """Returns the menu of updates that were judged."""
        return gr.update(choices=update_words.past_choices(visit.desk.jobs(), visit.say))

    def _read_past(self, visit: Visit, job: str | None) -> Shown:
        if not job:
            return {self.upload.said: visit.say("Choose an update first.")}
        return {self.upload.said: "", **self._judged(visit, visit.desk.job(job))}

    def _resume(self, visit: Visit) -> Shown:
        """Fills the menus, and finds an update that is still running, or was stopped and can go on."""
        chunks = [(update_words.chunk_label(one, visit.say), one.id) for one in visit.desk.chunks()]
        menus = {
            self.known: gr.update(choices=chunks),
            self.past: self._past(visit),
        }
        job = open_job(visit.desk.jobs())
        if job is None:
            return menus
        begin = {} if is_over(job) else {self.teach.begin: gr.update(interactive=False)}
        return {**menus, **self.run.shown(visit, job), **begin, self.steps: gr.update(selected=TEACH)}
