"""The Upload step of the Update tab: files become a job, whose progress is shown until its report is there.

`uploading.js` draws the place for them and sends them, as the Search page does. The job runs in a process of its own:
closing the page stops nothing, and opening it again finds the upload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from app.ui import update_words
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.running import unfinished
from app.ui.wording import refusal
from ingest.records import JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.0
_INTRO = phrase(
    "Upload pictures with a table of captions (`image`, `caption`, `language`, `domain` …), or with a text file of the "
    "same name beside each picture. What is uploaded together becomes a chunk."
)
Chosen = Callable[[Visit, str], Shown]
"""Shows a chunk by its id."""


class UploadStep:
    """The components of the step, and what happens on them."""

    def __init__(self, access: Access) -> None:
        """Draws the step; call inside it."""
        self.access = access
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        gr.Markdown(_INTRO)
        with gr.Row():
            with gr.Column(scale=3, min_width=300):
                text("file")
            with gr.Column(scale=2, min_width=260):
                self.language = gr.Textbox(
                    label="Language, where captions state none",
                    placeholder="de",
                    max_length=40,
                    elem_id="chunk-language",
                )
                self.domain = gr.Textbox(
                    label="Domain, where pictures state none",
                    placeholder="photo",
                    max_length=80,
                    elem_id="chunk-domain",
                )
                self.mapping = gr.Textbox(
                    label="Columns under other names",
                    placeholder="text=caption, file=image",
                    max_length=400,
                    elem_id="chunk-columns",
                )
        with gr.Row():
            self.check = gr.Button("Upload and check", variant="primary", elem_id="check")
            self.stop = gr.Button("Stop", visible=False, elem_id="stop-upload")
        # Hidden: the script writes the job into it that takes in what it has sent.
        self.sent = gr.Textbox("", show_label=False, elem_id="sent", elem_classes="unseen")
        self.said = text("upload-said", "status")

    def connect(self, blocks: gr.Blocks, shown: Sequence[Any], on_chosen: Chosen, none: Shown) -> None:
        """Connects the step.

        Args:
            blocks: the page.
            shown: the components that show a chunk, `said` among them.
            on_chosen: returns what they show of a chunk that was taken in.
            none: what they show when there is none.
        """
        self._on_chosen, self._none = on_chosen, none
        of_admin, running = self.access.of_admin, [self.said, self.job, self.timer, self.check, self.stop]
        self.sent.submit(
            of_admin(self._sent, self.said), [self.sent], running, show_progress="hidden", **AT_ONCE
        )
        self.stop.click(of_admin(self._stop, self.said), [self.job], [self.said], **AT_ONCE)
        watched = [self.timer, self.check, self.stop, *shown]
        watch = of_admin(self._watch, self.said, {**self._over, **none})
        self.timer.tick(watch, [self.job], watched, show_progress="hidden", **AT_ONCE)
        blocks.load(of_admin(self._resume, self.said), None, running, show_progress="hidden", **AT_ONCE)

    @property
    def _over(self) -> Shown:
        """What the buttons show when no upload is at work."""
        return {
            self.timer: gr.update(active=False),
            self.check: gr.update(interactive=True),
            self.stop: gr.update(visible=False),
        }

    def _sent(self, visit: Visit, sent: str) -> Shown:
        """Shows the job of what the script has sent; or why it is "none"."""
        job, _, why_not = sent.partition(" ")
        if job == "none":
            return {self.said: refusal(why_not, visit.say) if why_not else visit.say("Choose a file first.")}
        return self._uploading(visit, visit.desk.job(job))

    def _uploading(self, visit: Visit, job: JobRecord) -> Shown:
        return {
            self.said: update_words.progress_view(job.state, job.progress, visit.say),
            self.job: job.id,
            self.timer: gr.update(active=True),
            self.check: gr.update(interactive=False),
            self.stop: gr.update(visible=True),
        }

    def _stop(self, visit: Visit, job: str) -> Shown:
        visit.desk.cancel(job)
        return {self.said: visit.say("Stopping …")}

    def _watch(self, visit: Visit, job_id: str) -> Shown:
        job = visit.desk.job(job_id)
        if not visit.desk.is_over(job):
            return {self.said: update_words.progress_view(job.state, job.progress, visit.say)}
        if job.state != "succeeded":
            line = "Stopped." if job.state == "cancelled" else (job.error or job.state)
            return {**self._over, **self._none, self.said: refusal(line, visit.say)}
        return {**self._over, **self._on_chosen(visit, job.result["report"]["chunk_id"])}

    def _resume(self, visit: Visit) -> Shown:
        """Finds an upload that is still being taken in."""
        job = unfinished(visit.desk.jobs(), "ingest")
        if job is None or visit.desk.is_over(job):
            return {self.check: gr.update()}  # who was quicker than this answer keeps what was said meanwhile
        return self._uploading(visit, job)
