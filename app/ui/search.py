"""The Search tab: a box, filters and pictures.

Its address is the search. `search.js` draws the box and the pictures and asks for them (`search_answers.py`); the
filters are components of Gradio, which are told each address that the browser goes to and answer with the address of
what a person has filled in.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.desk.errors import NoRelease
from app.desk.hits import SearchRequest
from app.desk.troubles import OWN_ERRORS
from app.home.settings import Settings
from app.ui.access import Access, Shown, Visit
from app.ui.address import address_of, asked_of
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.search_facets import facet_links
from app.ui.search_filters import FilterRow, known
from app.ui.words import label

OF_SCRIPTS = (
    label("Search your pictures, or drop one here", key="box"),
    label("Search", key="search"),
    label("Search by a picture", key="by-picture"),
    label("Take this picture away", key="without"),
    label("Size of the pictures", key="size"),
    label("Pictures", key="pictures"),
    label("Show more", key="more"),
    label("The server does not answer.", key="away"),
    label("Try again", key="again"),
    label("Recent searches are kept in this browser only.", key="recent"),
    label("Forget them", key="forget"),
    label("Picture", key="picture"),
    label("Close", key="close"),
    label("Previous picture", key="previous"),
    label("Next picture", key="next"),
    label("More like this", key="like"),
    label("This picture fits the search", key="fits"),
    label("This picture does not fit the search", key="misfits"),
    label("Noted. Thank you.", key="noted"),
    label("Download", key="download"),
    label("Information", key="information"),
    label("Captions", key="captions"),
    label("Folder", key="folder"),
    label("Taken", key="taken"),
    label("Camera", key="camera"),
    label("Size", key="pixels"),
    label("Domain", key="domain"),
    label("Where it was seen", key="places"),
    label("no longer there", key="gone"),
    label("Copy the path", key="copy"),
    label("Copied", key="copied"),
    label("Open the original", key="original"),
    label("Add pictures", key="add"),
    label("Adding pictures", key="adding"),
    label("Drop photos, a folder or a zip here.", key="drop-here"),
    label("Drop pictures, folders, tables or archives here.", key="drop-upload"),
    label("{count} files", key="files"),
    label("… and {count} more", key="more-files"),
    label("Leave out", key="leave-out"),
    label("Choose files", key="choose-files"),
    label("Choose a folder", key="choose-folder"),
    label("Try it with sample pictures", key="sample"),
    label("Packing …", key="packing"),
    label("Uploading …", key="sending"),
    label("Taking them in …", key="taking-in"),
    label("There is no file to add.", key="no-files"),
    label(
        "These are too many for one upload. On the server, `perennial add FOLDER` takes them all.",
        key="too-many",
    ),
    label("Added", key="added"),
    label("There are new pictures.", key="new-here"),
    label("Show them", key="show-new"),
    label("Left out", key="left-out"),
)
"""What the scripts of both pages say, each under its key, for the browser to translate."""


def add_search_tab(blocks: gr.Blocks, access: Access, settings: Settings) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _SearchTab(access, settings).connect(blocks)


class _SearchTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access, settings: Settings) -> None:
        self.access = access
        with gr.Column(elem_classes="searching"):
            text("ask-here")
            text("said-here")
            self.filters = FilterRow(settings.max_query_characters)
            self.said = text("filters-said", "status")
            text("pictures-here")
        # Hidden: the script writes the addresses into it that a person goes to, and reads what the filters ask.
        self.address = gr.Textbox("", show_label=False, elem_id="address", elem_classes="unseen")
        self.asked = gr.Markdown("", elem_id="asked", elem_classes="unseen", latex_delimiters=[])

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        filters = list(self.filters.parts.values())
        told = [self.asked, self.said, self.filters.fold]
        # Values come and go as the browser has them; the engine says what is wrong.
        quiet: dict[str, Any] = {
            **AT_ONCE,
            "show_progress": "hidden",
            "preprocess": False,
            "postprocess": False,
        }
        changed = self.access.of_anyone(self._filled, self.said)
        gr.on(self.filters.asking, changed, filters, told, **quiet)
        shown = [*filters, *told, self.filters.facets]
        self.address.submit(self.access.of_anyone(self._go, self.said), [self.address], shown, **quiet)
        blocks.load(self._open, None, shown, **quiet)

    def _open(self, request: gr.Request) -> Any:
        inner = request.request
        go = self.access.of_anyone(self._go, self.said)
        return go(request, f"?{inner.url.query}" if inner is not None else "")

    def _go(self, visit: Visit, address: str) -> Shown:
        """Shows in the filters what an address asks."""
        try:
            choices = visit.desk.choices()
        except NoRelease:  # the answer says so
            return {self.asked: ""}
        asked, _ = known(asked_of(address)[0], choices)
        return {
            **self.filters.shown(asked, choices, visit.say),
            self.filters.fold: self.filters.heading(asked, visit.say),
            self.filters.facets: _facets(visit, asked),
            self.asked: "",
            self.said: "",
        }

    def _filled(self, visit: Visit, *values: Any) -> Shown:
        asked = self.filters.asked(values)
        return {
            self.asked: f"[.]({address_of(asked) or '?'})",
            self.said: "",
            self.filters.fold: self.filters.heading(asked, visit.say),
        }


def _facets(visit: Visit, asked: SearchRequest) -> str:
    """Returns the facets of what the filters leave; of filters that cannot be read, which the pictures say, none."""
    try:
        return facet_links(visit.desk.facets(asked), asked, visit.say)
    except OWN_ERRORS:
        return ""
