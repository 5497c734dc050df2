"""The difference of two releases on the Releases tab."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.desk.releases import Difference
from app.learning.difference import difference_between
from app.server.serving import OWN_ERRORS, Serving
from app.ui.access import Access
from app.ui.wording import escaped, refusal
from app.ui.words import ENGLISH, Words, words_of
from app.words import difference as difference_words
from ingest.sentence import phrase

CHOOSE_TWO = phrase("Choose two releases.")
MEASURED_BY = phrase("Mean of R@1, R@5 and R@10 in percent, as each measured when it was made.")
_ALIGNED = ("---", "---", "---:", "---:", "---:")
Outputs = tuple[Any, ...]


class TwoReleases:
    """Two menus, a button, and what it finds."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.serving = serving
        self.access = access
        with gr.Accordion("What two releases differ in", open=False), gr.Row(elem_classes="beside"):
            self.a = gr.Dropdown([], label="A", scale=3, min_width=150, elem_id="differ-a")
            self.b = gr.Dropdown([], label="B", scale=3, min_width=150, elem_id="differ-b")
            self.ask = gr.Button("Show the difference", scale=2, elem_id="differ")
        self.found = gr.Markdown(
            "", elem_id="difference", elem_classes="tables", latex_delimiters=[], visible=False
        )

    def connect(self, private: dict[str, Any]) -> None:
        """Connects the button.

        Args:
            private: how Gradio is to call functions of admins.
        """
        self.ask.click(self._differ, [self.a, self.b], [self.found], **private)

    def menus(self, choices: list[tuple[str, str]]) -> Outputs:
        """Returns the menus with these releases, newest first; the newest is B, its predecessor A."""
        names = [name for _, name in choices]
        newest, before = (names[0] if names else None), (names[1] if len(names) > 1 else None)
        return gr.Dropdown(choices=choices, value=before), gr.Dropdown(choices=choices, value=newest)

    def _differ(self, a: str | None, b: str | None, request: gr.Request) -> gr.Markdown:
        say = words_of(request)
        if not a or not b:
            return gr.Markdown(say.said(CHOOSE_TWO), visible=True)
        try:
            self.access.admin(request)
            found = difference_between(self.serving.workspace, a, b)
        except OWN_ERRORS as error:
            return gr.Markdown(refusal(error, say), visible=True)
        return gr.Markdown(difference_view(found, say), visible=True)


def difference_view(found: Difference, say: Words = ENGLISH) -> str:
    """Returns what two releases differ in: sentences, and recall on every slice in both."""
    said = difference_words.difference_sentences(found)
    lines = [
        f"**A** {escaped(found.a)} · **B** {escaped(found.b)}",
        "\n".join(f"- {escaped(say.said(one))}" for one in said),
    ]
    rows = difference_words.slice_rows(found)
    if rows:
        header = [say.header(one) for one in difference_words.SLICE_HEADERS]
        cells = [map(escaped, (name, say.said(view), *figures)) for name, view, *figures in rows]
        table = "\n".join(f"| {' | '.join(row)} |" for row in (header, _ALIGNED, *cells))
        lines += [table, say.said(MEASURED_BY)]
    return "\n\n".join(lines)
