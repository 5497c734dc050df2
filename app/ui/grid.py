"""A grid of pictures: words for those who hear the page, a note on each picture, arrow keys to walk it.

Gradio's gallery has one caption, which it shows on the picture and gives to screen readers as well. Ours carries both,
a note and words; `pages.js` takes them apart, and answers arrow keys and Escape. It is a file of our own
origin, since the content security policy evaluates no script that stands in a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import gradio as gr
from gradio.components.gallery import GalleryData, GalleryImage
from gradio.data_classes import ImageData

BETWEEN = "\u2003"
"""Stands between note and words; notes have none."""


@dataclass(frozen=True)
class Picture:
    """One picture of a grid.

    Attributes:
        thumbnail: address of the small picture.
        words: what it shows, for who cannot see it and while it loads; a caption of it.
        note: what stands on it: score, rank or move.
    """

    thumbnail: str
    words: str
    note: str


class _PictureGrid(gr.Gallery):
    """Gradio's gallery for pictures that are addresses already.

    For each answer Gradio's own makes a pool of threads that read files, and writes anew how programs may fill it: more
    than half of what a page cost the server beyond the search itself (docs/log.md, 2026-11-22).
    """

    is_template = True  # for the browser it is a gallery like others

    def postprocess(self, value: list[tuple[str, str]] | None) -> GalleryData:  # type: ignore[override]
        """Returns what the browser draws.

        Args:
            value: address of the thumbnail and caption of each picture.
        """
        return GalleryData([_image(*one) for one in value or ()])

    def api_info(self) -> dict[str, Any]:
        """Returns how programs may fill it, which is the same for all grids."""
        return _schema()


@cache
def _schema() -> dict[str, Any]:
    return GalleryData.model_json_schema()


def _image(address: str, caption: str) -> GalleryImage:
    return GalleryImage(image=ImageData(path=address, url=address), caption=caption)


def picture_grid(elem_id: str, *, visible: bool = True) -> gr.Gallery:
    """Returns an empty grid."""
    return _PictureGrid(
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
