"""The pictures on the screen as files to keep: a table for spreadsheets, a zip of the pictures.

A button of Gradio's downloads what it holds already when it is pressed. So the two that people press have the file
made, a third, which nobody sees, takes it, and `pages.js` presses that one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gradio as gr

from app.desk.desk import Desk
from app.desk.hits import SearchRequest
from app.desk.troubles import OWN_ERRORS
from app.ui.access import Access
from app.ui.events import one_at_a_time
from app.ui.screen import Screen
from app.ui.words import label

Make = Callable[[Desk, SearchRequest], bytes]


class Files:
    """The buttons.

    Attributes:
        row: shown while there are pictures.
    """

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self._desk = access.searchers_desk
        with gr.Row(visible=False, elem_classes="files") as self.row:
            self.table = gr.Button(label("Table (CSV)"), size="sm", min_width=0, elem_id="save-table")
            self.archive = gr.Button(label("Pictures (ZIP)"), size="sm", min_width=0, elem_id="save-pictures")
        self.ready = gr.DownloadButton("", elem_id="file-ready", visible="hidden")

    def connect(self, screen: gr.State) -> None:
        """Connects them with what is on the screen."""
        # One at a time: a zip keeps a core at work for seconds.
        quiet = one_at_a_time("files")
        self.table.click(self._save_table, [screen], [self.ready], **quiet)
        self.archive.click(self._save_archive, [screen], [self.ready], **quiet)

    def _save_table(self, screen: Screen, request: gr.Request) -> Any:
        return self._saved(lambda desk, asked: desk.results_table(asked), "results.csv", screen, request)

    def _save_archive(self, screen: Screen, request: gr.Request) -> Any:
        return self._saved(lambda desk, asked: desk.results_archive(asked), "results.zip", screen, request)

    def _saved(self, make: Make, name: str, screen: Screen, request: gr.Request) -> Any:
        shown = {"k": len(screen.hits), "release": screen.release, "captions": 0}
        try:
            data = make(self._desk(request), screen.request().model_copy(update=shown))
        except OWN_ERRORS as error:
            gr.Warning(str(error))
            return gr.skip()
        # Gradio keeps what lies in its own folder, and takes it away an hour later.
        folder = Path(tempfile.mkdtemp(dir=gr.utils.get_upload_folder()))
        file = folder / name
        file.write_bytes(data)
        return gr.DownloadButton(label=f"{name} {folder.name}", value=file)
