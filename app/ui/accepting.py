"""What a page asks before a release goes live that the gate, or a person, spoke against: what is accepted, and why."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.desk.verdicts import ReleaseDetail
from app.ui.access import Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.report_words import release_word_line
from app.ui.wording import escaped
from app.ui.words import ENGLISH, Words
from app.words import gate as gate_words
from app.words.own_report import shown_report
from ingest.release_words import ReleaseWord


class Acceptance:
    """A question that stands hidden until it is asked."""

    def __init__(self, name: str) -> None:
        """Draws it; call where it is to stand. `name` begins the ids of its parts."""
        with gr.Column(visible=False, elem_id=f"{name}-accept") as self.panel:
            self.said = text(f"{name}-accepts")
            self.why = gr.Textbox(
                label="Why it should go live anyway",
                placeholder="Saved in the history with your name",
                max_length=500,
                elem_id=f"{name}-accept-why",
            )
            with gr.Row():
                self.yes = gr.Button(
                    "Accept this and make it live", variant="stop", elem_id=f"{name}-accept-yes"
                )
                self.no = gr.Button("Not now", elem_id=f"{name}-accept-no")
        self.no.click(lambda: gr.update(visible=False), None, self.panel, **AT_ONCE)

    @property
    def components(self) -> list[Any]:
        """What `asked` and `answered` fill."""
        return [self.panel, self.said, self.why]

    def asked(self, visit: Visit, release: str, why: str) -> Shown | None:
        """Returns the question, with the reason as far as it was given; None where there is nothing to accept."""
        found, word = visit.desk.release(release), visit.desk.release_words().judgement(release)
        said = accepted_view(found, word, visit.say)
        if not said:
            return None
        return {self.panel: gr.update(visible=True), self.said: said, self.why: why}

    def answered(self) -> Shown:
        """Returns what stands there when it is over."""
        return {self.panel: gr.update(visible=False), self.said: "", self.why: ""}


def accepted_view(found: ReleaseDetail, word: ReleaseWord | None, say: Words = ENGLISH) -> str:
    """Returns what whoever makes a release live accepts: what is lost on which slices; empty where that is nothing."""
    parts = []
    gate = None if found.judged.gate is None else shown_report(found.judged.gate)
    if found.verdict == "review" and gate is not None:
        parts.append(say("**The gate asks for your decision on {release}.**", release=escaped(found.id)))
        parts.append(escaped(say.said(gate.first_reason)))
        if owed := gate_words.debts(gate):
            parts.append(say("Making it live accepts these losses, in points:"))
            parts.append("\n".join(f"- {escaped(say.said(one))}" for one in owed))
        else:
            parts.append(
                say("Nothing known is lost, but it is not certain that it learned what it was taught.")
            )
    if word is not None and word.said == "rejected":
        parts.append(release_word_line(word, say))
    return "\n\n".join(parts)
