"""The Compare tab: two releases, one query, side by side."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.search import AUTO
from app.server.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import base_of
from app.ui.grid import picture_grid, shown

_SHOWN = 12
_HINT = (
    "## Ask two releases the same\n\n"
    "Choose a release on each side and type a query. On the right, ▲2 means two places up, ▼1 one down, "
    "*new* that the left release did not find the picture."
)  # fmt: skip


def add_compare_tab(serving: Serving, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _CompareTab(serving).connect(tab)


class _CompareTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self._draw_question()
        self.status = gr.Markdown(_HINT, elem_classes="empty", elem_id="compare-status", latex_delimiters=[])
        self._draw_answers()
        self.table = gr.Dataframe(
            headers=wording.COMPARED_HEADERS,
            label="Recall on held-out pairs, text to image, in percent",
            interactive=False,
            visible=False,
            wrap=True,
            elem_id="compare-slices",
        )

    def _draw_question(self) -> None:
        with gr.Row():
            self.left = gr.Dropdown([], label="Release A", elem_id="release-a")
            self.right = gr.Dropdown([], label="Release B", elem_id="release-b")
            self.language = gr.Dropdown([("Any language", AUTO)], value=AUTO, label="Language")
        with gr.Row(equal_height=True):
            self.query = gr.Textbox(
                placeholder="Ask both releases …",
                show_label=False,
                container=False,
                scale=8,
                max_length=self.serving.settings.max_query_characters,
                elem_classes="query",
                elem_id="compare-query",
            )
            self.go = gr.Button("Compare", variant="primary", scale=1, min_width=120, elem_id="compare-go")

    def _draw_answers(self) -> None:
        with gr.Row(visible=False) as self.answers:
            with gr.Column(min_width=300):
                self.first_name = gr.Markdown(elem_classes="side")
                self.first = picture_grid("compare-a")
            with gr.Column(min_width=300):
                self.second_name = gr.Markdown(elem_classes="side")
                self.second = picture_grid("compare-b")

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        sides = [self.first_name, self.first, self.second_name, self.second]
        gr.on(
            [self.query.submit, self.go.click],
            self._ask,
            [self.left, self.right, self.query, self.language],
            [self.status, self.answers, *sides, self.table],
            api_visibility="private",  # programs call `client_api`
            concurrency_id="search",
            show_progress="minimal",
            show_progress_on=[self.first, self.second],
        )
        menus = [self.left, self.right, self.language]
        tab.select(self._menus, None, menus, api_visibility="private", show_progress="hidden")

    def _menus(self) -> tuple[Any, Any, Any]:
        live = self.serving.live_id()
        records = self.serving.releases()
        choices = [(wording.release_label(record, live), record.id) for record in records]
        current = next((record for record in records if record.id == live), None)
        others = [record for record in records if current and record.version != current.version] or records
        other = next((record.id for record in others if record.id != live), live)
        spoken = current.manifest.languages if current else ()
        languages = wording.language_choices(current, spoken) if current else [("Any language", AUTO)]
        return (
            gr.Dropdown(choices=choices, value=other),
            gr.Dropdown(choices=choices, value=live),
            gr.Dropdown(choices=languages),
        )

    def _ask(self, a: str, b: str, text: str, spoken: str, request: gr.Request) -> tuple[Any, ...]:
        if not (a and b):
            return _only("Choose a release on each side.")
        if not text.strip():
            return _only(_HINT)
        try:
            compared = self.serving.compare(text, a, b, language=spoken, k=_SHOWN)
            records = [self.serving.workspace.releases.release(name) for name in (a, b)]
        except OWN_ERRORS as error:
            return _only(f"**{wording.escaped(error)}**")
        ids = list(dict.fromkeys(hit.image_id for hit in (*compared.a.hits, *compared.b.hits)))
        said = self.serving.found(ids, compared.b.language.split(" + ")[0], most=1)
        words = {image_id: found.captions[0].text for image_id, found in said.items() if found.captions}
        one, two = wording.compared_pictures(compared, words, wording.base_address(*base_of(request)))
        return (
            gr.Markdown(wording.overlap_line(compared), elem_classes="status"),
            gr.Row(visible=True),
            f"## A · {compared.a.release}",
            shown(one),
            f"## B · {compared.b.release}",
            shown(two),
            gr.Dataframe(value=wording.compared_slices(*records), visible=True),
        )


def _only(line: str) -> tuple[Any, ...]:
    """The outputs when there is nothing to compare."""
    return (
        gr.Markdown(line, elem_classes="empty"),
        gr.Row(visible=False),
        "",
        shown([]),
        "",
        shown([]),
        gr.Dataframe(visible=False),
    )
