"""Tables of data with their headers in the language of the browser.

Gradio's I18n translates text that stands alone, and the headers of a `gr.Dataframe` are a list; so whoever fills a
table hands over its headers with its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.ui.words import Words


def filled(headers: Sequence[str], rows: Sequence[Sequence[str]], say: Words) -> dict[str, Any]:
    """Returns what a `gr.Dataframe` is to show.

    Args:
        headers: in English, as the component was drawn with.
        rows: a cell for each header.
        say: the words.
    """
    return {"headers": [say.header(one) for one in headers], "data": rows}
