"""The Upload step of the Update tab: a file becomes a job, whose progress is shown until its report is there.

The job runs in a process of its own: closing the page stops nothing, and opening it again finds the upload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from app.jobs.intake import receive_stream
from app.server.serving import OWN_ERRORS, Serving
from app.server.uploads import column_names
from app.ui import update_words, wording
from app.ui.access import Access
from app.ui.words import Words, words_of
from ingest.intake import IntakeOptions
from ingest.readers.formats import UPLOAD_SUFFIXES
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.0
_INTRO = phrase(
    "A chunk is a zip or tar of pictures with a table beside them (`image`, `caption`, `language`, `domain` …) or with "
    "a text file of the same name beside each picture."
)
Outputs = tuple[Any, ...]
Chosen = Callable[[str, int | None, gr.Request], Outputs]
"""Shows a chunk by its id, and how many pictures were embedded."""


class UploadStep:
    """The components of the step, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws the step; call inside it."""
        self.serving = serving
        self.access = access
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        gr.Markdown(_INTRO)
        with gr.Row():
            with gr.Column(scale=3, min_width=300):
                self.file = gr.File(
                    label="Chunk",
                    file_types=list(UPLOAD_SUFFIXES),
                    file_count="single",
                    height=190,
                    elem_id="file",
                )
            with gr.Column(scale=2, min_width=260):
                self.language = gr.Textbox(
                    label="Language of captions that do not say",
                    placeholder="de",
                    max_length=40,
                    elem_id="chunk-language",
                )
                self.domain = gr.Textbox(
                    label="Domain of pictures that do not say", placeholder="photo", max_length=80
                )
                self.mapping = gr.Textbox(
                    label="Columns with other names", placeholder="text=caption, file=image", max_length=400
                )
        with gr.Row():
            self.check = gr.Button("Take it in and check it", variant="primary", elem_id="check")
            self.stop = gr.Button("Stop", visible=False, elem_id="stop-upload")
        self.said = gr.Markdown("", elem_classes="status", elem_id="upload-said", latex_delimiters=[])

    def connect(
        self,
        blocks: gr.Blocks,
        shown: Sequence[Any],
        on_chosen: Chosen,
        not_chosen: Callable[[str], Outputs],
        private: dict[str, Any],
    ) -> None:
        """Connects the step.

        Args:
            blocks: the page.
            shown: the components that show a chunk, `said` first.
            on_chosen: returns what they show of a chunk that was taken in.
            not_chosen: returns what they show when there is none.
            private: how Gradio is to call functions of admins.
        """
        self._on_chosen, self._not_chosen, self._rest = on_chosen, not_chosen, len(shown) - 1
        running = [self.job, self.timer, self.check, self.stop]
        self.check.click(
            self._take_in,
            [self.file, self.language, self.domain, self.mapping],
            [self.said, *running],
            show_progress_on=[self.said],
            **private,
        )
        self.stop.click(self._stop, [self.job], self.said, **private)
        watched = [self.file, *running[1:], *shown]
        self.timer.tick(self._watch, [self.job], watched, show_progress="hidden", **private)
        blocks.load(self._resume, None, [self.said, *running], show_progress="hidden", **private)

    def _take_in(
        self, file: str | None, language: str, domain: str, mapping: str, request: gr.Request
    ) -> Outputs:
        say = words_of(request)
        if not file:
            return (say("Choose a file first."), *([gr.skip()] * 4))
        try:
            account = self.access.admin(request)
            names = column_names([part for part in mapping.split(",") if part.strip()])
            options = IntakeOptions(
                language=language.strip() or None, domain=domain.strip() or None, mapping=names
            )
            name = Path(file).name
            with Path(file).open("rb") as upload:
                received = receive_stream(upload, name, self.serving.workspace.home.inbox)
            job = self.serving.work.take_in(received, options, name=name, by=account.name)
        except OWN_ERRORS as error:
            return (wording.refusal(error, say), *([gr.skip()] * 4))
        return self._uploading(job, say)

    def _uploading(self, job: JobRecord, say: Words) -> Outputs:
        return (
            update_words.progress_view(job.state, job.progress, say),
            job.id,
            gr.Timer(active=True),
            gr.Button(interactive=False),
            gr.Button(visible=True),
        )

    def _stop(self, job_id: str, request: gr.Request) -> str:
        try:
            self.access.admin(request)
            self.serving.work.cancel(job_id)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request))
        return words_of(request)("Stopping …")

    def _watch(self, job_id: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        over = gr.Timer(active=False), gr.Button(interactive=True), gr.Button(visible=False)
        try:
            self.access.admin(request)
            job = self.serving.workspace.catalog.job(job_id)
        except OWN_ERRORS as error:
            return gr.skip(), *over, *self._not_chosen(wording.refusal(error, say))
        if job.state not in FINAL_STATES:
            said = update_words.progress_view(job.state, job.progress, say)
            return (*([gr.skip()] * 4), said, *([gr.skip()] * self._rest))
        if job.state != "succeeded":
            line = "Stopped." if job.state == "cancelled" else (job.error or job.state)
            return gr.skip(), *over, *self._not_chosen(wording.refusal(line, say))
        self.serving.refresh()
        chunk = job.result["report"]["chunk_id"]
        # The box is emptied for the next one; after a failure the file stays, to be tried again.
        return gr.File(value=None), *over, *self._on_chosen(chunk, job.result["images_embedded"], request)

    def _resume(self, request: gr.Request) -> Outputs:
        """Finds an upload that is still being taken in."""
        try:
            self.access.admin(request)
            job = self.serving.work.unfinished("ingest")
        except OWN_ERRORS:
            job = None
        if job is None:
            return "", "", gr.Timer(active=False), gr.skip(), gr.skip()
        return self._uploading(job, words_of(request))
