"""The System tab: what can be wrong, the jobs, the log, the settings."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr

from app.ui import system_words
from app.ui.access import Access, Act, Shown, Visit
from app.ui.drawn import drawing, drawn
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.read_table import ReadTable
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.5
_JOBS_SHOWN = 50
_LOG_LINES = 300
_JOB_LINES = 100
_ACTIVE = {"queued", "running", "interrupted"}
_RESUMABLE = {"interrupted", "cancelled", "failed"}


def add_system_tab(access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _SystemTab(access).connect(tab)


class _SystemTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        self.chosen = gr.State("")
        with gr.Row(elem_classes="beside"):
            self.line = text("doctor-said", "status", system_words.NOBODY)
            self.look = gr.Button(
                "Check everything", variant="primary", scale=0, min_width=140, elem_id="examine"
            )
            self.quick = gr.Button("Quick check", scale=0, min_width=220, elem_id="examine-quick")
        self.found = drawing("doctor-found", "tables findings")
        self.jobs = ReadTable("jobs", phrase("Jobs, newest first"), system_words.JOB_HEADERS, picks=[0])
        with gr.Column(visible=False) as self.job:
            self.about = text("job-about", "notice")
            self.job_log = _log(phrase("End of its log"), "job-log", 8)
            with gr.Row():
                self.cancel = gr.Button("Stop this job", variant="stop", elem_id="cancel-job")
                self.resume = gr.Button("Resume this job", elem_id="resume-job")
        with gr.Accordion("Server log", open=False):
            self.log = _log(phrase("The last {count} lines", count=_LOG_LINES), "server-log", 20)
        with gr.Accordion("Index", open=False):
            self.index = drawing("index", "tables", visible=True)
        with gr.Accordion("Settings", open=False):
            self.settings = drawing("settings", "tables", visible=True)

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        of_admin, quietly = self.access.of_admin, {**AT_ONCE, "show_progress": "hidden"}
        doctor = [self.line, self.found, self.look, self.quick, self.timer, self.jobs.drawn]
        opened = [*doctor, self.log, self.index, self.settings]
        tab.select(of_admin(self._opened, self.line), None, opened, **quietly)
        for button, every_byte in ((self.look, True), (self.quick, False)):
            button.click(of_admin(self._examiner(every_byte), self.line), None, doctor, **AT_ONCE)
        self.timer.tick(of_admin(self._watch, self.line), None, doctor, **quietly)
        one_job = [self.chosen, self.job, self.about, self.job_log, self.cancel, self.resume]
        hidden = gr.update(visible=False)
        missing = {self.chosen: "", self.job: gr.update(visible=True), self.job_log: ""}
        missing |= {self.cancel: hidden, self.resume: hidden}
        select = self.access.on_row(self._select, self.about, missing)
        self.jobs.connect(select, [], one_job)
        for button, act in ((self.cancel, self._stop), (self.resume, self._go_on)):
            button.click(of_admin(act, self.about), [self.chosen], [*one_job, self.jobs.drawn], **AT_ONCE)

    def _opened(self, visit: Visit) -> Shown:
        lines, settings = visit.desk.log(_LOG_LINES), visit.desk.settings()
        return {
            **self._watch(visit),
            self.log: "\n".join(reversed(lines)),
            self.index: drawn(system_words.index_view(visit.desk.index(), visit.say)),
            self.settings: drawn(system_words.settings_view(settings, visit.say)),
        }

    def _examiner(self, every_byte: bool) -> Act:
        def examine(visit: Visit) -> Shown:
            visit.desk.start_examination(every_byte)
            return self._watch(visit)

        return examine

    def _watch(self, visit: Visit) -> Shown:
        """What is shown of the last examination, and of all jobs."""
        jobs, say = visit.desk.jobs(), visit.say
        looks = [job for job in jobs if job.kind == "doctor"]
        done = next((job for job in looks if job.state == "succeeded"), None)
        is_looking = bool(looks) and looks[0].state not in FINAL_STATES
        return {
            self.line: system_words.examination_line(looks[0] if looks else None, say),
            self.found: drawn(system_words.examination_view(done.result, say) if done else None),
            self.look: gr.update(interactive=not is_looking),
            self.quick: gr.update(interactive=not is_looking),
            self.timer: gr.update(active=is_looking),
            **self._listed(visit, jobs),
        }

    def _listed(self, visit: Visit, jobs: Sequence[JobRecord]) -> Shown:
        rows = system_words.job_rows(jobs[:_JOBS_SHOWN], visit.say)
        return {self.jobs.drawn: self.jobs.of(rows, visit.say)}

    def _select(self, visit: Visit, cells: list[str]) -> Shown:
        return self._shown(visit, str(cells[0]))

    def _shown(self, visit: Visit, job_id: str) -> Shown:
        job, lines = visit.desk.job(job_id), visit.desk.job_log(job_id, _JOB_LINES)
        return {
            self.chosen: job.id,
            self.job: gr.update(visible=True),
            self.about: system_words.job_view(job, visit.say),
            self.job_log: gr.update(value="\n".join(lines), visible=bool(lines)),
            self.cancel: gr.update(visible=job.state in _ACTIVE),
            self.resume: gr.update(visible=job.state in _RESUMABLE),
        }

    def _stop(self, visit: Visit, job_id: str) -> Shown:
        visit.desk.cancel(job_id)
        return {**self._shown(visit, job_id), **self._listed(visit, visit.desk.jobs())}

    def _go_on(self, visit: Visit, job_id: str) -> Shown:
        visit.desk.resume(job_id)
        return {**self._shown(visit, job_id), **self._listed(visit, visit.desk.jobs())}


def _log(label: str, elem_id: str, lines: int) -> gr.Textbox:
    return gr.Textbox(
        label=label, lines=lines, max_lines=lines, interactive=False, elem_id=elem_id, elem_classes="log"
    )
