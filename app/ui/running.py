"""An update at work: where it is, its losses as curves, stopping it and going on with it.

The job runs in a process of its own: closing the page stops nothing, and opening it again finds the job.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gradio as gr

from app.ui import update_words
from app.ui.access import Access, Shown, Visit
from app.ui.curves import curves_view
from app.ui.events import AT_ONCE
from app.ui.parts import text
from ingest.records import FINAL_STATES, JobRecord

_POLL_SECONDS = 1.5
_UNFINISHED = ("running", "queued", "interrupted")
_STOPPED = ("interrupted", "cancelled", "failed")


def is_over(job: JobRecord) -> bool:
    """Whether nothing more happens with a job by itself."""
    return job.state in FINAL_STATES or job.state == "interrupted"


def unfinished(jobs: Iterable[JobRecord], kind: str) -> JobRecord | None:
    """Returns the job of a kind that is at work, else the oldest that waits, if any, of jobs that come newest first."""
    active = [job for job in jobs if job.kind == kind and job.state in _UNFINISHED]
    return min(reversed(active), key=lambda job: _UNFINISHED.index(job.state), default=None)


class RunView:
    """The components, and what happens on them."""

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.access = access
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        with gr.Row():
            self.stop = gr.Button("Stop", visible=False, elem_id="stop-update")
            self.go_on = gr.Button(
                "Go on from the last checkpoint", variant="primary", visible=False, elem_id="go-on-update"
            )
        self.progress = text("progress", "progress-view", visible=False, container=True)
        self.curves = text("curves", "curves tables", visible=False)

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        return [self.job, self.timer, self.stop, self.go_on, self.progress, self.curves]

    @property
    def stopped(self) -> Shown:
        """What the components show beside a refusal, which `progress` tells."""
        return {self.job: "", self.timer: gr.update(active=False), self.curves: gr.update(visible=False)}

    def connect(self, begin: gr.Button) -> None:
        """Connects the buttons; `begin` starts another update, and waits while one is at work."""
        after, instead = [*self.components, begin], {**self.stopped, begin: gr.update(interactive=True)}

        def stop(visit: Visit, job: str) -> Shown:
            return {**self.shown(visit, visit.desk.cancel(job)), begin: gr.update(interactive=True)}

        def go_on(visit: Visit, job: str) -> Shown:
            return {**self.shown(visit, visit.desk.resume(job)), begin: gr.update(interactive=False)}

        for button, act in ((self.stop, stop), (self.go_on, go_on)):
            button.click(self.access.of_admin(act, self.progress, instead), [self.job], after, **AT_ONCE)

    def shown(self, visit: Visit, job: JobRecord) -> Shown:
        """Returns what the components show of a job."""
        curves = curves_view(job.progress, visit.say)
        return {
            self.job: job.id,
            self.timer: gr.update(active=not is_over(job)),
            self.stop: gr.update(visible=not is_over(job)),
            self.go_on: gr.update(visible=job.state in _STOPPED),
            self.progress: gr.update(value=update_words.run_view(job, visit.say), visible=True),
            self.curves: gr.update(value=curves, visible=bool(curves)),
        }


def open_job(jobs: Iterable[JobRecord]) -> JobRecord | None:
    """Returns the update that is at work, or the newest one when it was stopped and can go on."""
    updates = [job for job in jobs if job.kind == "update"]
    can_go_on = updates[:1] if updates and updates[0].state in ("interrupted", "cancelled") else []
    return unfinished(updates, "update") or next(iter(can_go_on), None)
