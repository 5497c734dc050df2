"""Parts that the tabs are drawn of: a text that changes, a table to read and to choose from."""

from __future__ import annotations

from collections.abc import Sequence

import gradio as gr


def text(
    elem_id: str, classes: str = "", value: str = "", *, visible: bool = True, container: bool = False
) -> gr.Markdown:
    """Returns a text, with `container` in a frame; what is no Markdown in it was escaped, and dollars are dollars."""
    return gr.Markdown(
        value,
        elem_id=elem_id,
        elem_classes=classes.split(),
        latex_delimiters=[],
        visible=visible,
        container=container,
    )


def table(
    elem_id: str, label: str, headers: Sequence[str], *, height: int = 420, visible: bool = True
) -> gr.Dataframe:
    """Returns an empty table that scrolls beyond a height in pixels; who selects a cell gives all cells of its row."""
    return gr.Dataframe(
        headers=list(headers),
        label=label,
        interactive=False,
        visible=visible,
        wrap=True,
        type="array",
        max_height=height,
        elem_id=elem_id,
    )
