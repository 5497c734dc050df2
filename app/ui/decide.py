"""The Decide step of the Update tab: an update's report, of today or of the past, and what becomes of its release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.learning.judged import judged_job, past_updates
from app.server.serving import OWN_ERRORS, Serving
from app.ui import update_words, wording
from app.ui.access import Access, base_of
from app.ui.gate_report import GateReportView
from ingest.records import JobRecord

DECIDE = 3
"""Number of this step in the walkthrough."""
Outputs = tuple[Any, ...]


class DecideStep:
    """The components of the step, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws the step; call inside it."""
        self.serving = serving
        self.access = access
        self.release = gr.State("")
        self.report = GateReportView("update", "No update has ended yet.")
        with gr.Row():
            self.promote = gr.Button("Promote", variant="primary", visible=False, elem_id="promote-new")
            self.keep = gr.Button("Keep as is", visible=False, elem_id="keep")
        self.decided = gr.Markdown("", elem_classes="status", elem_id="decided", latex_delimiters=[])

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [*self.report.components, self.promote, self.keep, self.release, self.decided]

    def connect(self, why: gr.Textbox, private: dict[str, Any]) -> None:
        """Connects the buttons.

        Args:
            why: the reason that is kept in the history.
            private: how Gradio is to call functions of admins.
        """
        after = [self.decided, self.promote, self.keep]
        self.promote.click(self._go_live, [self.release, why], after, **private)
        self.keep.click(self._keep_as_is, [self.release], after, **private)

    def connect_past(
        self, past: gr.Dropdown, read: gr.Button, said: gr.Markdown, steps: Any, private: dict[str, Any]
    ) -> None:
        """Connects the menu of past updates, which stands elsewhere.

        Args:
            past: the menu.
            read: the button beside it.
            said: where a problem is told.
            steps: the walkthrough of which this is the last step.
            private: how Gradio is to call functions of admins.
        """
        read.click(self._read_past, [past], [said, steps, *self.components], **private)

    def shown(self, job: JobRecord, request: gr.Request) -> Outputs:
        """Returns what the step shows of an update that has ended."""
        judged = judged_job(self.serving.workspace.catalog, job.id)
        known = judged.release and self.serving.workspace.releases.readable(judged.release)
        waits = bool(known) and job.result.get("commit") is None and judged.release != self.serving.live_id()
        label = "Promote" if job.result.get("verdict") == "promote" else "Promote in spite of this"
        return (
            *self.report.shown(judged, wording.base_address(*base_of(request))),
            gr.Button(label, visible=waits),
            gr.Button(visible=waits),
            judged.release or "",
            update_words.outcome_line(job.result),
        )

    def past(self) -> gr.Dropdown:
        """Returns the menu of updates that were judged, newest first."""
        past = past_updates(self.serving.workspace.catalog)
        return gr.Dropdown(choices=[(update_words.past_label(job), job.id) for job in past])

    def _read_past(self, job_id: str | None, request: gr.Request) -> Outputs:
        nothing: Sequence[Any] = [gr.skip()] * (1 + len(self.components))
        if not job_id:
            return "Choose an update first.", *nothing
        try:
            self.access.admin(request)
            shown = self.shown(self.serving.workspace.catalog.job(job_id), request)
        except OWN_ERRORS as error:
            return f"**{wording.escaped(error)}**", *nothing
        return "", gr.Walkthrough(selected=DECIDE), *shown

    def _go_live(self, release: str, why: str, request: gr.Request) -> Outputs:
        try:
            account = self.access.admin(request)
            commit = self.serving.promote(release, why=why, by=account.name, force=True).commit
        except OWN_ERRORS as error:
            return f"**{wording.escaped(error)}**", gr.skip(), gr.skip()
        hidden = gr.Button(visible=False)
        return f"**{commit.release} is live** (commit {commit.number}). [Search it](/)", hidden, hidden

    def _keep_as_is(self, release: str) -> Outputs:
        hidden = gr.Button(visible=False)
        line = f"Nothing changed. `{release}` waits under Releases, should you want it later."
        return line, hidden, hidden
