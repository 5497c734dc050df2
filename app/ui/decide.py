"""The Decide step of the Update tab: an update's report, of today or of the past, and what becomes of its release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from app.learning.forecast import forecast_of, taken
from app.learning.judged import judged_job, past_updates
from app.learning.release_words import judgement
from app.server.serving import OWN_ERRORS, Serving
from app.ui import update_words, wording
from app.ui.access import Access, base_of
from app.ui.gate_report import GateReportView
from app.ui.report_words import release_word_line
from app.ui.words import Words, words_of
from app.words.forecast import compared_sentence
from ingest.records import JobRecord
from ingest.sentence import phrase

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
        self.report = GateReportView("update", phrase("No update has ended yet."))
        self.note = gr.Textbox(
            label="Your note",
            placeholder="Kept with your name; a rejection needs one",
            max_length=500,
            visible=False,
            elem_id="decide-note",
        )
        with gr.Row():
            self.promote = gr.Button("Promote", variant="primary", visible=False, elem_id="promote-new")
            self.keep = gr.Button("Keep as a candidate", visible=False, elem_id="keep")
            self.reject = gr.Button("Reject", variant="stop", visible=False, elem_id="reject")
        self.decided = gr.Markdown("", elem_classes="status", elem_id="decided", latex_delimiters=[])

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [*self.report.components, *self._choices, self.release, self.decided]

    @property
    def _choices(self) -> list[Any]:
        return [self.note, self.promote, self.keep, self.reject]

    def connect(self, why: gr.Textbox, private: dict[str, Any]) -> None:
        """Connects the buttons.

        Args:
            why: the reason that is kept in the history.
            private: how Gradio is to call functions of admins.
        """
        after = [self.decided, *self._choices]
        self.promote.click(self._go_live, [self.release, self.note, why], after, **private)
        self.keep.click(self._keep, [self.release, self.note], after, **private)
        self.reject.click(self._reject, [self.release, self.note], after, **private)

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
        label = (
            phrase("Promote")
            if job.result.get("verdict") == "promote"
            else phrase("Promote in spite of this")
        )
        say = words_of(request)
        return (
            *self.report.shown(judged, wording.base_address(*base_of(request)), say),
            gr.Textbox(value="", visible=waits),
            gr.Button(say.said(label), visible=waits),
            gr.Button(visible=waits),
            gr.Button(visible=waits),
            judged.release or "",
            self._outcome(job, judged.release, say),
        )

    def past(self, say: Words) -> gr.Dropdown:
        """Returns the menu of updates that were judged, newest first."""
        past = past_updates(self.serving.workspace.catalog)
        return gr.Dropdown(choices=[(update_words.past_label(job, say), job.id) for job in past])

    def _read_past(self, job_id: str | None, request: gr.Request) -> Outputs:
        nothing: Sequence[Any] = [gr.skip()] * (1 + len(self.components))
        if not job_id:
            return words_of(request)("Choose an update first."), *nothing
        try:
            self.access.admin(request)
            shown = self.shown(self.serving.workspace.catalog.job(job_id), request)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), *nothing
        return "", gr.Walkthrough(selected=DECIDE), *shown

    def _outcome(self, job: JobRecord, release: str | None, say: Words) -> str:
        line = update_words.outcome_line(job.result, say)
        expected, took = forecast_of(job), taken(self.serving.workspace, job)
        if expected is not None and took is not None:
            line += f"  \n{wording.escaped(say.said(compared_sentence(expected, took)))}"
        word = judgement(self.serving.workspace, release) if release else None
        return line if word is None else f"{line}  \n{release_word_line(word, say)}"

    def _go_live(self, release: str, note: str, why: str, request: gr.Request) -> Outputs:
        def promote(by: str) -> str:
            commit = self.serving.promote(release, why=note.strip() or why, by=by, force=True).commit
            return say(
                "**{release} is live** (commit {number}). [Search it](/)",
                release=commit.release,
                number=commit.number,
            )

        say = words_of(request)
        return self._decide(promote, request)

    def _keep(self, release: str, note: str, request: gr.Request) -> Outputs:
        def keep(by: str) -> str:
            self.serving.judge_release(release, "kept", why=note, by=by)
            return say(
                "Nothing changed. `{release}` waits under Releases, should you want it later.",
                release=release,
            )

        say = words_of(request)
        return self._decide(keep, request)

    def _reject(self, release: str, note: str, request: gr.Request) -> Outputs:
        def reject(by: str) -> str:
            word = self.serving.judge_release(release, "rejected", why=note, by=by)
            return f"{release_word_line(word, say)} {say('What was live stays live.')}"

        say = words_of(request)
        return self._decide(reject, request)

    def _decide(self, decide: Callable[[str], str], request: gr.Request) -> Outputs:
        try:
            said = decide(self.access.admin(request).name)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), *([gr.skip()] * len(self._choices))
        return said, gr.Textbox(visible=False), *([gr.Button(visible=False)] * 3)
