"""The System tab: what can be wrong, the jobs, the log, the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.home import logs
from app.home.settings import described
from app.jobs.worker import log_file
from app.server.serving import OWN_ERRORS, Serving
from app.ui import system_words, wording
from app.ui.access import Access
from app.ui.drawn import drawing, drawn
from app.ui.events import AT_ONCE
from app.ui.words import Words, filled, words_of
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.5
_JOBS_SHOWN = 50
_LOG_LINES = 300
_JOB_LINES = 100
_ACTIVE = {"queued", "running", "interrupted"}
_RESUMABLE = {"interrupted", "cancelled", "failed"}
Outputs = tuple[Any, ...]


def add_system_tab(serving: Serving, access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _SystemTab(serving, access).connect(tab)


class _SystemTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        self.chosen = gr.State("")
        with gr.Row(elem_classes="beside"):
            self.line = gr.Markdown(
                system_words.NOBODY, elem_id="doctor-said", elem_classes="status", latex_delimiters=[]
            )
            self.look = gr.Button("Examine", variant="primary", scale=0, min_width=140, elem_id="examine")
            self.quick = gr.Button("Examine quickly", scale=0, min_width=220, elem_id="examine-quick")
        self.found = drawing("doctor-found", "tables findings")
        self.jobs = gr.Dataframe(
            headers=system_words.JOB_HEADERS,
            label="Jobs, newest first",
            interactive=False,
            wrap=True,
            type="array",
            max_height=420,
            elem_id="jobs",
        )
        with gr.Column(visible=False) as self.job:
            self.about = gr.Markdown("", elem_id="job-about", elem_classes="notice", latex_delimiters=[])
            self.job_log = _log(phrase("The end of its log"), "job-log", 8)
            with gr.Row():
                self.cancel = gr.Button("Stop this job", variant="stop", elem_id="cancel-job")
                self.resume = gr.Button("Go on with it", elem_id="resume-job")
        with gr.Accordion("Log of the server", open=False):
            self.log = _log(phrase("The last {count} lines", count=_LOG_LINES), "server-log", 20)
        with gr.Accordion("Settings", open=False):
            self.settings = drawing("settings", "tables", visible=True)

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        private = AT_ONCE
        doctor = [self.line, self.found, self.look, self.quick, self.timer, self.jobs]
        opened = [*doctor, self.log, self.settings]
        tab.select(self._opened, None, opened, show_progress="hidden", **private)
        self.look.click(self._examine_all, None, doctor, **private)
        self.quick.click(self._examine_quickly, None, doctor, **private)
        self.timer.tick(self._watch, None, doctor, show_progress="hidden", **private)
        one_job = [self.chosen, self.job, self.about, self.job_log, self.cancel, self.resume]
        self.jobs.select(self._select, [self.jobs], one_job, **private)
        self.cancel.click(self._stop, [self.chosen], [*one_job, self.jobs], **private)
        self.resume.click(self._go_on, [self.chosen], [*one_job, self.jobs], **private)

    def _opened(self, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), *([gr.skip()] * 7)
        lines = logs.last_lines(logs.log_file(self.serving.settings.home), _LOG_LINES)
        say = words_of(request)
        settings = system_words.settings_view(described(self.serving.settings), say)
        return *self._doctor(say), "\n".join(reversed(lines)), drawn(settings)

    def _examine_all(self, request: gr.Request) -> Outputs:
        return self._examine(request, every_byte=True)

    def _examine_quickly(self, request: gr.Request) -> Outputs:
        return self._examine(request, every_byte=False)

    def _examine(self, request: gr.Request, *, every_byte: bool) -> Outputs:
        try:
            self.serving.work.examine(every_byte=every_byte, by=self.access.admin(request).name)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), *([gr.skip()] * 5)
        return self._doctor(words_of(request))

    def _watch(self, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), *([gr.skip()] * 5)
        return self._doctor(words_of(request))

    def _doctor(self, say: Words) -> Outputs:
        """What is shown of the last examination, and of all jobs."""
        jobs = self._newest()
        looks = [job for job in jobs if job.kind == "doctor"]
        done = next((job for job in looks if job.state == "succeeded"), None)
        is_looking = bool(looks) and looks[0].state not in FINAL_STATES
        return (
            system_words.examination_line(looks[0] if looks else None, say),
            drawn(system_words.examination_view(done.result, say) if done else None),
            gr.Button(interactive=not is_looking),
            gr.Button(interactive=not is_looking),
            gr.Timer(active=is_looking),
            filled(system_words.JOB_HEADERS, system_words.job_rows(jobs, say), say),
        )

    def _newest(self) -> list[JobRecord]:
        return self.serving.workspace.catalog.jobs(limit=_JOBS_SHOWN)

    def _select(self, values: list[list[str]], request: gr.Request, event: gr.SelectData) -> Outputs:
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        return self._shown(str(values[row][0]), request)

    def _shown(self, job_id: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            job = self.serving.workspace.catalog.job(job_id)
        except OWN_ERRORS as error:
            hidden = gr.Button(visible=False)
            return "", gr.Column(visible=True), wording.refusal(error, say), "", hidden, hidden
        lines = logs.last_lines(log_file(self.serving.settings, job.id), _JOB_LINES)
        return (
            job.id,
            gr.Column(visible=True),
            system_words.job_view(job, say),
            gr.Textbox(value="\n".join(lines), visible=bool(lines)),
            gr.Button(visible=job.state in _ACTIVE),
            gr.Button(visible=job.state in _RESUMABLE),
        )

    def _stop(self, job_id: str, request: gr.Request) -> Outputs:
        return self._do(self.serving.work.cancel, job_id, request)

    def _go_on(self, job_id: str, request: gr.Request) -> Outputs:
        return self._do(self.serving.work.resume, job_id, request)

    def _do(self, act: Callable[[str], object], job_id: str, request: gr.Request) -> Outputs:
        """Does something with a job, and shows it as it is then."""
        say = words_of(request)
        try:
            self.access.admin(request)
            act(job_id)
        except OWN_ERRORS as error:
            return gr.skip(), gr.skip(), wording.refusal(error, say), *([gr.skip()] * 4)
        rows = system_words.job_rows(self._newest(), say)
        return *self._shown(job_id, request), filled(system_words.JOB_HEADERS, rows, say)


def _log(label: str, elem_id: str, lines: int) -> gr.Textbox:
    return gr.Textbox(
        label=label, lines=lines, max_lines=lines, interactive=False, elem_id=elem_id, elem_classes="log"
    )
