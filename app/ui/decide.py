"""The Decide step of the Update tab: an update's report, of today or of the past, and what becomes of its release."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.desk.releases import WentLive
from app.desk.verdicts import Judged
from app.ui import update_words
from app.ui.accepting import Acceptance
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.gate_report import GateReportView
from app.ui.parts import text
from app.ui.report_words import release_word_line
from app.ui.wall import Wall
from app.ui.wording import escaped
from app.words.forecast import compared_sentence
from ingest.records import JobRecord
from ingest.sentence import phrase

DECIDE = 3
"""Number of this step in the walkthrough."""


class DecideStep:
    """The components of the step, and what happens on them."""

    def __init__(self, access: Access) -> None:
        """Draws the step; call inside it."""
        self.access = access
        self.release = gr.State("")
        self.report = GateReportView("update", phrase("No update has ended yet."))
        self.note = gr.Textbox(
            label="Your note",
            placeholder="Saved with your name; required to reject",
            max_length=500,
            visible=False,
            elem_id="decide-note",
        )
        with gr.Row():
            self.promote = gr.Button("Promote", variant="primary", visible=False, elem_id="promote-new")
            self.keep = gr.Button("Keep as a candidate", visible=False, elem_id="keep")
            self.reject = gr.Button("Reject", variant="stop", visible=False, elem_id="reject")
        self.accept = Acceptance("update")
        self.decided = text("decided", "status")
        self.wall = Wall(access, "update")
        self.report.draw_rest()

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        parts = [*self.report.components, *self._choices, *self.accept.components]
        return [*parts, self.release, *self.wall.components, self.decided]

    @property
    def _choices(self) -> list[Any]:
        return [self.note, self.promote, self.keep, self.reject]

    def connect(self, why: gr.Textbox) -> None:
        """Connects the buttons; `why` is the reason that is kept in the history."""
        given = [self.release, self.note, why]
        after = [self.decided, *self._choices, *self.accept.components]
        self.wall.connect(self.release)
        accept = self.access.of_admin(self._accept, self.decided)
        self.accept.yes.click(accept, [self.release, self.accept.why], after, **AT_ONCE)
        for button, act in (
            (self.promote, self._go_live),
            (self.keep, self._keep),
            (self.reject, self._reject),
        ):
            button.click(self.access.of_admin(act, self.decided), given, after, **AT_ONCE)

    def shown(self, visit: Visit, job: JobRecord) -> Shown:
        """Returns what the step shows of an update that has ended."""
        judged = visit.desk.job_verdict(job.id)
        known = {one.id: one.live for one in visit.desk.releases()}
        is_live = known.get(judged.release or "")
        waits = job.result.get("commit") is None and is_live is False
        passed = job.result.get("verdict") == "promote"
        label = phrase("Promote") if passed else phrase("Promote anyway")
        return {
            **self.report.shown(judged, visit.base, visit.say, waits=waits, is_live=bool(is_live)),
            **dict.fromkeys(self._choices, gr.update(visible=waits)),
            self.note: gr.update(value="", visible=waits),
            self.promote: gr.update(value=visit.say.said(label), visible=waits),
            **self.accept.answered(),
            self.release: judged.release or "",
            **self.wall.begun(),
            self.decided: self._outcome(visit, job, judged),
        }

    def _outcome(self, visit: Visit, job: JobRecord, judged: Judged) -> str:
        lines = [update_words.outcome_line(job.result, visit.say)]
        if judged.expected is not None and judged.took is not None:
            lines.append(escaped(visit.say.said(compared_sentence(judged.expected, judged.took))))
        word = visit.desk.release_words().judgement(judged.release or "")
        if word is not None:
            lines.append(release_word_line(word, visit.say))
        return "  \n".join(lines)

    def _go_live(self, visit: Visit, release: str, note: str, why: str) -> Shown:
        why = note.strip() or why
        asked = self.accept.asked(visit, release, why)
        return asked or self._live(visit, visit.desk.promote(release, why))

    def _accept(self, visit: Visit, release: str, why: str) -> Shown:
        return self._live(visit, visit.desk.promote(release, why, force=True))

    def _live(self, visit: Visit, done: WentLive) -> Shown:
        line = visit.say(
            "**{release} is live** (commit {number}). [Search it](/)",
            release=done.release,
            number=done.commit,
        )
        return self._decided(line)

    def _keep(self, visit: Visit, release: str, note: str, _why: str) -> Shown:
        visit.desk.keep(release, note)
        return self._decided(
            visit.say(
                "Nothing changed. `{release}` waits under Releases, should you want it later.",
                release=release,
            )
        )

    def _reject(self, visit: Visit, release: str, note: str, _why: str) -> Shown:
        word = visit.desk.reject(release, note)
        return self._decided(f"{release_word_line(word, visit.say)} {visit.say('What was live stays live.')}")

    def _decided(self, line: str) -> Shown:
        hidden = dict.fromkeys(self._choices, gr.update(visible=False))
        return {self.decided: line, **hidden, **self.accept.answered()}
