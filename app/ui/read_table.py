"""A table that is read: HTML with all text escaped; from one that a person chooses from, each row can be pressed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.ui.access import Act
from app.ui.drawn import Markup, tag
from app.ui.events import AT_ONCE
from app.ui.words import Words

_LONG = 48  # characters; beyond them a cell has several lines


class ReadTable:
    """The table.

    Attributes:
        drawn: the component that shows it; its value is what `of` returns.
        picked: of one to choose from, a hidden field: `pages.js` writes into it which row was pressed.
    """

    def __init__(
        self,
        elem_id: str,
        label: str,
        headers: Sequence[str],
        *,
        picks: Sequence[int] = (),
        height: int = 420,
        visible: bool = True,
    ) -> None:
        """Draws it, empty.

        Args:
            elem_id: names it.
            label: what it lists; stands above it.
            headers: over its columns, in English.
            picks: the columns that name a row to whoever presses it; none of one that is only read.
            height: pixels beyond which it scrolls.
            visible: whether it is there from the start.
        """
        self.drawn: gr.Markdown = gr.Markdown(
            "",
            sanitize_html=False,
            latex_delimiters=[],
            elem_id=elem_id,
            elem_classes=["drawn", "tables", "read-table"],
            visible=visible,
        )
        self._name, self._title, self._headers = elem_id, label, headers
        self._picks, self._height = picks, height
        self.picked: gr.Textbox | None = None
        if picks:
            self.picked = gr.Textbox("", label=label, visible="hidden", elem_id=f"{elem_id}-pick")

    def connect(self, act: Act, others: Sequence[Any], outputs: Sequence[Any], **how: Any) -> None:
        """Has a function called when a row is pressed.

        Args:
            act: what `Access.on_row` returned.
            others: components whose values it is given, too.
            outputs: what it shows.
            how: Gradio is to call it; at once unless that says otherwise.
        """
        if self.picked is not None:
            self.picked.change(act, [self.picked, *others], list(outputs), **AT_ONCE | how)

    def of(self, rows: Sequence[Sequence[str]], say: Words) -> str:
        """Returns the table with these rows, a cell for each header; "" without any."""
        if not rows:
            return ""
        label = say.said(self._title)
        head = tag("tr", [tag("th", say.header(one), scope="col") for one in self._headers])
        body = [self._row(cells) for cells in rows]
        table = tag("table", tag("thead", head), tag("tbody", body))
        frame = tag(
            "div",
            table,
            class_="scrolls",
            style=f"max-height:{self._height}px",
            tabindex=0,
            role="group",
            aria_label=label,
            data_into=f"{self._name}-pick" if self._picks else None,
        )
        return tag("div", tag("p", label, class_="title", aria_hidden="true"), frame)

    def _row(self, cells: Sequence[str]) -> Markup:
        named = self._picks[0] if self._picks else None
        drawn = [
            tag(
                "td",
                tag("button", one, type="button") if n == named else one,
                class_="long" if len(str(one)) > _LONG else None,
            )
            for n, one in enumerate(cells)
        ]
        picked = json.dumps([str(cells[n]) for n in self._picks]) if self._picks else None
        return tag("tr", drawn, data_pick=picked)
