"""The difference of two releases on the Releases tab."""

from __future__ import annotations

import gradio as gr

from app.desk.releases import Difference
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.wording import escaped
from app.ui.words import ENGLISH, Words
from app.words import difference as difference_words
from ingest.sentence import phrase

CHOOSE_TWO = phrase("Choose two releases.")
MEASURED_BY = phrase("Mean of R@1, R@5 and R@10 in percent, measured when each release was made.")
_ALIGNED = ("---", "---", "---:", "---:", "---:")


class TwoReleases:
    """Two menus, a button, and what it finds."""

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.access = access
        with gr.Accordion("How two releases differ", open=False), gr.Row(elem_classes="beside"):
            self.a = gr.Dropdown([], label="A", scale=3, min_width=150, elem_id="differ-a")
            self.b = gr.Dropdown([], label="B", scale=3, min_width=150, elem_id="differ-b")
            self.ask = gr.Button("Show the difference", scale=2, elem_id="differ")
        self.found = text("difference", "tables", visible=False)

    def connect(self) -> None:
        """Connects the button."""
        differ = self.access.of_admin(self._differ, self.found)
        self.ask.click(differ, [self.a, self.b], [self.found], **AT_ONCE)

    def menus(self, choices: list[tuple[str, str]]) -> Shown:
        """Returns the menus with these releases, newest first; the newest is B, its predecessor A."""
        newest, before = [*(name for _, name in choices[:2]), None, None][:2]
        return {
            self.a: gr.update(choices=choices, value=before),
            self.b: gr.update(choices=choices, value=newest),
        }

    def _differ(self, visit: Visit, a: str | None, b: str | None) -> Shown:
        said = visit.say.said(CHOOSE_TWO)
        if a and b:
            said = difference_view(visit.desk.difference(a, b), visit.say)
        return {self.found: gr.update(value=said, visible=True)}


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
