"""The part of the Compare tab that asks two releases many queries at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from app.desk.hits import MOST_AT_ONCE, ManyCompared
from app.server.comparing import changed_most, compare_all
from app.server.serving import OWN_ERRORS, Serving
from app.ui import compare_words as words
from app.ui.events import one_at_a_time
from app.ui.wording import refusal
from app.ui.words import Words, filled, words_of

_LONGEST = 20_000  # characters of all queries together
Outputs = tuple[Any, ...]


class ManyQueries:
    """A box for queries, one a line, and the table of what became of them."""

    def __init__(self, serving: Serving) -> None:
        """Draws them; call where they are to stand."""
        self.serving = serving
        with gr.Accordion("Many queries at once, and those that changed most", open=False, elem_id="many"):
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
            self.table = gr.Dataframe(
                headers=words.MANY_HEADERS,
                label="Answers by query",
                interactive=False,
                visible=False,
                wrap=True,
                type="array",
                elem_id="many-table",
            )

    def connect(self, sides: list[gr.Dropdown], language: gr.Dropdown) -> None:
        """Connects the buttons.

        Args:
            sides: the two menus of releases.
            language: the menu of languages.
        """
        busy = one_at_a_time("compare-many")
        asked = [*sides, language]
        self.ask.click(self._all, [self.queries, *asked], [self.said, self.table], **busy)
        self.known.click(self._changed, asked, [self.said, self.table], **busy)

    def _all(self, text: str, a: str, b: str, language: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        queries = [line for line in text.splitlines() if line.strip()]
        if not queries:
            return say.said(words.MANY_HINT), gr.Dataframe(visible=False)
        if len(queries) > MOST_AT_ONCE:
            said = say(
                "There are {count} queries; at most {most} are asked at once. Leave some out.",
                count=len(queries),
                most=MOST_AT_ONCE,
            )
            return f"**{said}**", gr.Dataframe(visible=False)
        return self._shown(a, b, lambda: compare_all(self.serving, queries, a, b, language=language), say)

    def _changed(self, a: str, b: str, language: str, request: gr.Request) -> Outputs:
        def changed() -> ManyCompared:
            return changed_most(self.serving, a, b, language=language)

        return self._shown(a, b, changed, words_of(request), only_changed=True)

    def _shown(
        self, a: str, b: str, compare: Callable[[], ManyCompared], say: Words, *, only_changed: bool = False
    ) -> Outputs:
        if not (a and b):
            return say.said(words.CHOOSE), gr.Dataframe(visible=False)
        try:
            compared = compare()
        except OWN_ERRORS as error:
            return refusal(error, say), gr.Dataframe(visible=False)
        line = words.many_line(compared, only_changed=only_changed, say=say)
        rows = words.many_rows(compared, say)
        return line, gr.Dataframe(value=filled(words.MANY_HEADERS, rows, say), visible=bool(rows))
