"""The Check step of the Update tab: what a chunk's checks found, and a person's word on it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.ui import report_words, update_words
from app.ui.access import Access, Shown, Visit
from app.ui.held import HeldPairs
from app.ui.parts import text
from app.ui.read_table import ReadTable
from app.ui.word import PersonsWord
from app.ui.words import Words
from app.words.chunk import findings_of
from ingest.findings import Finding, Outcome
from ingest.records import ChunkRecord
from ingest.sentence import phrase

MOST_CARDS = 12
_TEACHABLE = {"new", "accepted", "rejected"}


class CheckStep:
    """The components of the step, and what happens on them: a verdict and its button, and below, folded, the rest."""

    def __init__(self, access: Access) -> None:
        """Draws the step; call inside it."""
        self.verdict = text("check-verdict", "verdict check", phrase("No chunk is chosen yet."))
        self.go_on = gr.Button(
            "Choose how to teach it", variant="primary", interactive=False, elem_id="go-on"
        )
        with gr.Accordion("Your word on this chunk", open=False, visible=False) as self.speaking:
            self.word = PersonsWord(access)
        with gr.Accordion("What the checks found", open=False, visible=False) as self.found:
            self.cards = [text(f"finding-{n}", "finding", visible=False) for n in range(MOST_CARDS)]
        self.held = HeldPairs(access, is_open=False)
        with gr.Accordion("What was taken in", open=False, visible=False) as self.taken:
            self.summary = text("report-summary", "tables")
            headers = update_words.REPORT_HEADERS
            self.rows = ReadTable(
                "report-rows", phrase("Held and rejected"), headers, height=360, visible=False
            )
            self.download = gr.Button("Download the report (CSV)", visible=False, elem_id="report-csv")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        folds = [self.speaking, self.found, self.taken]
        return [*self._facts, *folds, *self.held.components, *self.word.components]

    @property
    def _facts(self) -> list[Any]:
        return [self.verdict, self.go_on, self.summary, *self.cards, self.rows.drawn, self.download]

    def connect(self, chunk: gr.State) -> None:
        """Connects the step; `chunk` is the id of the one that is shown."""
        self.word.connect(chunk, [*self._facts, *self.held.components], self._about)
        self.held.connect(chunk, self._facts, self._facts_of)

    def shown(self, visit: Visit, chunk: ChunkRecord) -> Shown:
        """Returns what the step shows of a chunk."""
        # What a person has to look at and to decide is open; all else is there for who wants it.
        is_held = chunk.standing == "held"
        folds = {fold: gr.update(visible=True, open=is_held) for fold in (self.speaking, self.found)}
        return {
            **self._about(visit, chunk),
            **folds,
            self.taken: gr.update(visible=True, open=False),
            **self.word.shown(chunk),
        }

    def _about(self, visit: Visit, chunk: ChunkRecord) -> Shown:
        return {**self._facts_of(visit, chunk), **self.held.shown(visit, chunk)}

    def _facts_of(self, visit: Visit, chunk: ChunkRecord) -> Shown:
        say, waiting = visit.say, visit.desk.put_aside(chunk.id).counts["waiting"]
        head = report_words.chunk_title(chunk, say), report_words.standing_view(chunk, say)
        rows = update_words.report_rows(chunk.report, say)
        may_teach = chunk.standing in _TEACHABLE and chunk.can_teach
        return {
            self.verdict: report_words.check_view(chunk, waiting, say),
            self.go_on: gr.update(interactive=may_teach, visible=chunk.standing != "held"),
            self.summary: "## " + "\n\n".join([*head, update_words.intake_view(chunk.report, say)]),
            **dict(zip(self.cards, _cards(chunk, visit.base, say), strict=True)),
            self.rows.drawn: gr.update(value=self.rows.of(rows, say), visible=bool(rows)),
            self.download: gr.update(link=f"/v1/chunks/{chunk.id}/report.csv", visible=bool(rows)),
        }


def _cards(chunk: ChunkRecord, base: str, say: Words) -> list[gr.Markdown]:
    """A card for each finding that says or shows something, and one for all the others; the rest stay hidden."""
    quiet: list[Finding] = []
    telling: list[Finding] = []
    for finding in findings_of(chunk):
        is_quiet = finding.outcome is Outcome.ACCEPT and not finding.examples
        (quiet if is_quiet else telling).append(finding)
    cards = [
        _card(report_words.finding_view(one, base, say), one.outcome) for one in telling[: MOST_CARDS - 1]
    ]
    rest = [*telling[MOST_CARDS - 1 :], *quiet]
    if rest:
        cards.append(_card(report_words.quiet_view(rest, say), rest[0].outcome))
    return [*cards, *[gr.Markdown("", visible=False)] * (MOST_CARDS - len(cards))]


def _card(text: str, outcome: Outcome) -> gr.Markdown:
    return gr.Markdown(text, visible=True, elem_classes=["finding", "cards", outcome.value])
