"""The Check step of the Update tab: what a chunk's checks found, and a person's word on it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.server.serving import Serving
from app.ui import report_words, update_words, wording
from app.ui.access import Access, base_of
from app.ui.held import HeldPairs
from app.ui.word import PersonsWord
from app.ui.words import Words, filled, words_of
from app.words.chunk import findings_of
from ingest.findings import Finding, Outcome
from ingest.records import ChunkRecord

MOST_CARDS = 12
_TEACHABLE = {"new", "accepted", "rejected"}
Outputs = tuple[Any, ...]


class CheckStep:
    """The components of the step, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws the step; call inside it."""
        self.summary = gr.Markdown(
            "No chunk is chosen yet.", elem_id="report-summary", elem_classes="tables", latex_delimiters=[]
        )
        self.cards = [
            gr.Markdown(
                "", visible=False, elem_id=f"finding-{n}", elem_classes="finding", latex_delimiters=[]
            )
            for n in range(MOST_CARDS)
        ]
        self.held = HeldPairs(serving, access)
        self.word = PersonsWord(serving, access)
        self.rows = gr.Dataframe(
            headers=update_words.REPORT_HEADERS,
            label="Held and rejected",
            interactive=False,
            wrap=True,
            visible=False,
            max_height=360,
            elem_id="report-rows",
        )
        with gr.Row():
            self.download = gr.Button("Download the report (CSV)", visible=False, elem_id="report-csv")
            self.go_on = gr.Button(
                "Choose how to teach it", variant="primary", interactive=False, elem_id="go-on"
            )

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [*self._around_word, *self.word.components]

    @property
    def _around_word(self) -> list[Any]:
        return [*self._facts, *self.held.components]

    @property
    def _facts(self) -> list[Any]:
        return [self.summary, *self.cards, self.rows, self.download, self.go_on]

    def connect(self, chunk: gr.State, private: dict[str, Any]) -> None:
        """Connects the step.

        Args:
            chunk: the id of the chunk that is shown.
            private: how Gradio is to call functions of admins.
        """

        def shown(record: ChunkRecord, request: gr.Request) -> Outputs:
            return self._about(record, request, None)

        def facts(record: ChunkRecord, request: gr.Request) -> Outputs:
            return self._facts_of(record, request, None)

        self.word.connect(chunk, self._around_word, shown, private)
        self.held.connect(chunk, self._facts, facts, private)

    def shown(self, chunk: ChunkRecord, request: gr.Request, *, embedded: int | None = None) -> Outputs:
        """Returns what the step shows of a chunk.

        Args:
            chunk: as the catalog has it now.
            request: of the browser.
            embedded: how many pictures were embedded when it was taken in, if that was just now.
        """
        return *self._about(chunk, request, embedded), *self.word.shown(chunk)

    def _about(self, chunk: ChunkRecord, request: gr.Request, embedded: int | None) -> Outputs:
        base = wording.base_address(*base_of(request))
        return *self._facts_of(chunk, request, embedded), *self.held.shown(chunk, base, say=words_of(request))

    def _facts_of(self, chunk: ChunkRecord, request: gr.Request, embedded: int | None) -> Outputs:
        say, base = words_of(request), wording.base_address(*base_of(request))
        text = update_words.intake_view(chunk.report, embedded, say)
        rows = update_words.report_rows(chunk.report, say)
        return (
            f"## {report_words.chunk_title(chunk, say)}\n\n{report_words.standing_view(chunk, say)}\n\n{text}",
            *_cards(chunk, base, say),
            gr.Dataframe(value=filled(update_words.REPORT_HEADERS, rows, say), visible=bool(rows)),
            gr.Button(link=f"/v1/chunks/{chunk.id}/report.csv", visible=bool(rows)),
            gr.Button(interactive=chunk.standing in _TEACHABLE),
        )


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
