"""A part that the tabs are drawn of: a text that changes."""

from __future__ import annotations

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
