"""A grid of pictures: words for those who hear the page, a note on each picture, arrow keys to walk it.

Gradio's gallery has one caption, which it shows on the picture and gives to screen readers as well. Ours carries both,
a note and words; `pages.js` takes them apart, and answers arrow keys and Escape. It is a file of our own
origin, since the content security policy evaluates no script that stands in a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import gradio as gr

BETWEEN = "\u2003"
"""Stands between note and words; notes have none."""


@dataclass(frozen=True)
class Picture:
    """One picture of a grid."""

    thumbnail: str  # address of the small picture
    words: str  # what it shows, for who cannot see it and while it loads; a caption of it
    note: str  # what stands on it: score, rank or move


def picture_grid(elem_id: str, *, visible: bool = True) -> gr.Gallery:
    """Returns an empty grid."""
    return gr.Gallery(
        visible=visible,
        show_label=False,
        label="Pictures",
        height="auto",
        object_fit="cover",
        allow_preview=False,
        interactive=False,
        buttons=[],
        elem_classes="results",
        elem_id=elem_id,
    )


def shown(pictures: Sequence[Picture], *, visible: bool = True) -> gr.Gallery:
    """Returns the grid with pictures in it, none of them chosen."""
    items = [(one.thumbnail, f"{one.note}{BETWEEN}{one.words}") for one in pictures]
    return gr.Gallery(value=items, visible=visible, selected_index=None)
