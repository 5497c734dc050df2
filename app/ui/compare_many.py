"""The part of the Compare tab that asks two releases many queries at once."""

from __future__ import annotations

import gradio as gr

from app.desk.errors import UsageProblem
from app.desk.hits import MOST_AT_ONCE, ManyCompared
from app.ui import compare_words as words
from app.ui.access import Access, Shown, Visit
from app.ui.events import one_at_a_time
from app.ui.read_table import ReadTable
from ingest.sentence import phrase

_LONGEST = 20_000  # characters of all queries together


class ManyQueries:
    """A box for queries, one a line, and the table of what became of them."""

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.access = access
        with gr.Accordion("Compare many queries at once", open=False, elem_id="many"):
            self.queries = gr.Textbox(
                label="Queries",
                info=words.MANY_HINT,
                lines=4,
                max_lines=12,
                max_length=_LONGEST,
                elem_id="many-queries",
            )
            with gr.Row():
                self.ask = gr.Button("Compare all", variant="primary", elem_id="many-go")
                self.known = gr.Button("Find what changed most", elem_id="many-changed")
            self.said = gr.Markdown("", elem_classes="status", elem_id="many-said", latex_delimiters=[])
            by_query = phrase("Answers by query")
            self.table = ReadTable("many-table", by_query, words.MANY_HEADERS, picks=[0], visible=False)

    def connect(self, sides: list[gr.Dropdown], language: gr.Dropdown) -> None:
        """Connects the buttons.

        Args:
            sides: the two menus of releases.
            language: the menu of languages.
        """
        busy = one_at_a_time("compare-many")
        asked = [*sides, language]
        for button, act, given in (
            (self.ask, self._all, [self.queries, *asked]),
            (self.known, self._changed, asked),
        ):
            called = self.access.of_anyone(act, self.said, {self.table.drawn: gr.update(visible=False)})
            button.click(called, given, [self.said, self.table.drawn], **busy)

    def _all(self, visit: Visit, text: str, a: str, b: str, language: str) -> Shown:
        queries = [line for line in text.splitlines() if line.strip()]
        if not queries or not (a and b):
            return self._shown(visit.say.said(words.CHOOSE if queries else words.MANY_HINT))
        if len(queries) > MOST_AT_ONCE:
            raise UsageProblem(
                phrase(
                    "There are {count} queries; at most {most} are asked at once. Leave some out.",
                    count=len(queries),
                    most=MOST_AT_ONCE,
                )
            )
        return self._compared(visit, visit.desk.comparisons(a, b, queries, language), only_changed=False)

    def _changed(self, visit: Visit, a: str, b: str, language: str) -> Shown:
        if not (a and b):
            return self._shown(visit.say.said(words.CHOOSE))
        return self._compared(visit, visit.desk.changed(a, b, language), only_changed=True)

    def _compared(self, visit: Visit, compared: ManyCompared, *, only_changed: bool) -> Shown:
        line = words.many_line(compared, only_changed=only_changed, say=visit.say)
        return self._shown(line, self.table.of(words.many_rows(compared, visit.say), visit.say))

    def _shown(self, line: str, table: str = "") -> Shown:
        return {self.said: line, self.table.drawn: gr.update(value=table, visible=bool(table))}
