"""An update at work: where it is, its losses as curves, stopping it and going on with it.

The job runs in a process of its own: closing the page stops nothing, and opening it again finds the job.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.server.serving import OWN_ERRORS, Serving
from app.ui import update_words
from app.ui.access import Access
from app.ui.curves import curves_view
from app.ui.wording import refusal
from app.ui.words import words_of
from ingest.records import FINAL_STATES, JobRecord

_POLL_SECONDS = 1.5
_STOPPED = ("interrupted", "cancelled", "failed")
Outputs = tuple[Any, ...]


def is_over(job: JobRecord) -> bool:
    """Whether nothing more happens with a job by itself."""
    return job.state in FINAL_STATES or job.state == "interrupted"


class RunView:
    """The components, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.serving = serving
        self.access = access
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        with gr.Row():
            self.stop = gr.Button("Stop", visible=False, elem_id="stop-update")
            self.go_on = gr.Button(
                "Go on from the last checkpoint", variant="primary", visible=False, elem_id="go-on-update"
            )
        self.progress = _text("progress", "progress-view", container=True)
        self.curves = _text("curves", "curves tables")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [self.job, self.timer, self.stop, self.go_on, self.progress, self.curves]

    def connect(self, begin: gr.Button, private: dict[str, Any]) -> None:
        """Connects the buttons.

        Args:
            begin: starts another update; it waits while one is at work.
            private: how Gradio is to call functions of admins.
        """
        after = [*self.components, begin]
        self.stop.click(self._stop, [self.job], after, **private)
        self.go_on.click(self._go_on, [self.job], after, **private)

    def shown(self, job: JobRecord, request: gr.Request) -> Outputs:
        """Returns what the components show of a job."""
        curves = curves_view(job.progress, words_of(request))
        return (
            job.id,
            gr.Timer(active=not is_over(job)),
            gr.Button(visible=not is_over(job)),
            gr.Button(visible=job.state in _STOPPED),
            gr.Markdown(update_words.run_view(job, words_of(request)), visible=True),
            gr.Markdown(curves, visible=bool(curves)),
        )

    def nothing(self) -> Outputs:
        """Returns what they show when no update is at work."""
        return "", gr.Timer(active=False), *([gr.skip()] * 4)

    def refused(self, sentence: str, request: gr.Request) -> Outputs:
        """Returns what they show instead of an update that could not be started."""
        line = gr.Markdown(refusal(sentence, words_of(request)), visible=True)
        return "", gr.Timer(active=False), gr.skip(), gr.skip(), line, gr.Markdown(visible=False)

    def open_job(self) -> JobRecord | None:
        """Returns the update that is at work, or the newest one when it was stopped and can go on."""
        active = self.serving.work.unfinished("update")
        if active is not None:
            return active
        newest = next(
            (job for job in self.serving.workspace.catalog.jobs(limit=20) if job.kind == "update"), None
        )
        return newest if newest is not None and newest.state in ("interrupted", "cancelled") else None

    def _stop(self, job_id: str, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
            job = self.serving.work.cancel(job_id)
        except OWN_ERRORS as error:
            return *self.refused(str(error), request), gr.Button(interactive=True)
        return *self.shown(job, request), gr.Button(interactive=True)

    def _go_on(self, job_id: str, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
            job = self.serving.work.resume(job_id)
        except OWN_ERRORS as error:
            return *self.refused(str(error), request), gr.Button(interactive=True)
        return *self.shown(job, request), gr.Button(interactive=False)


def _text(elem_id: str, kind: str, *, container: bool = False) -> gr.Markdown:
    return gr.Markdown(
        "",
        elem_id=elem_id,
        elem_classes=kind.split(),
        latex_delimiters=[],
        container=container,
        visible=False,
    )
