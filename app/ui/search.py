"""The Search tab: a text in, pictures out, and everything known of the one that is chosen."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.errors import NoRelease
from app.search import AUTO
from app.server.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import base_of

COLUMNS = 6
_MOST = 240
Chosen = list[tuple[str, float, int]]
Outputs = tuple[Any, ...]


def add_search_tab(blocks: gr.Blocks, serving: Serving) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _SearchTab(serving).connect(blocks)


class _SearchTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.page = serving.settings.default_k
        self._draw_question()
        self.status = gr.Markdown("", elem_classes="status", elem_id="status", latex_delimiters=[])
        self.empty = gr.Markdown(
            wording.NOTHING_YET, elem_classes="empty", elem_id="empty", latex_delimiters=[]
        )
        self.shown = gr.State([])
        self.depth = gr.State(self.page)
        with gr.Row():
            with gr.Column(scale=5, min_width=320):
                self._draw_results()
            with gr.Column(
                scale=3, min_width=300, visible=False, elem_classes="details", elem_id="details"
            ) as self.panel:
                self.picture = gr.Markdown(latex_delimiters=[], elem_id="picture")
                self.facts = gr.Markdown(latex_delimiters=[], elem_id="facts")

    def _draw_question(self) -> None:
        with gr.Row(equal_height=True):
            self.query = gr.Textbox(
                placeholder="Describe a picture …",
                show_label=False,
                container=False,
                scale=8,
                max_length=self.serving.settings.max_query_characters,
                elem_classes="query",
                elem_id="query",
                autofocus=True,
            )
            self.go = gr.Button("Search", variant="primary", scale=1, min_width=120, elem_id="go")
        with gr.Row():
            self.language = gr.Dropdown(
                [("Auto-detect", AUTO)], value=AUTO, label="Language", elem_id="language"
            )
            self.domains = gr.Dropdown([], multiselect=True, label="Only these domains", elem_id="domains")

    def _draw_results(self) -> None:
        self.gallery = gr.Gallery(
            visible=False,
            show_label=False,
            columns=COLUMNS,
            height="auto",
            object_fit="cover",
            allow_preview=False,
            interactive=False,
            buttons=[],
            elem_classes="results",
            elem_id="results",
        )
        self.more = gr.Button("Show more", visible=False, elem_id="more")

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        outputs = [self.status, self.gallery, self.more, self.empty, self.panel, self.shown, self.depth]
        inputs: list[Any] = [self.query, self.language, self.domains]
        shared: dict[str, Any] = {"concurrency_id": "search", "concurrency_limit": 4}
        quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
        gr.on(
            [self.query.submit, self.go.click, self.language.input, self.domains.input],
            self._first_page,
            inputs,
            outputs,
            api_visibility="private",  # programs call `client_api`
            show_progress="minimal",
            show_progress_on=[self.gallery],
            **shared,
        )
        self.more.click(self._next_page, [*inputs, self.depth], outputs, api_visibility="private", **shared)
        self.gallery.select(self._choose, [self.shown], [self.panel, self.picture, self.facts], **quiet)
        # Not queued: events that begin together when a page opens would race for the one stream of the queue.
        blocks.load(self._menus, None, [self.language, self.domains, self.empty], queue=False, **quiet)

    def _menus(self) -> Outputs:
        try:
            snapshot = self.serving.snapshot()
        except NoRelease as error:
            return (
                gr.skip(),
                gr.skip(),
                gr.Markdown(f"### Nothing to search yet\n\n{wording.escaped(error)}"),
            )
        choices = wording.language_choices(snapshot.release, snapshot.languages)
        known = list(self.serving.workspace.catalog.domains())
        hint = wording.NOTHING_YET if len(snapshot.generation) else wording.EMPTY_GALLERY
        return gr.Dropdown(choices=choices), gr.Dropdown(choices=known), gr.Markdown(hint)

    def _first_page(self, text: str, spoken: str, kept: list[str], request: gr.Request) -> Outputs:
        return (*self._search(text, spoken, kept, self.page, request), self.page)

    def _next_page(
        self, text: str, spoken: str, kept: list[str], wanted: int, request: gr.Request
    ) -> Outputs:
        deeper = min(wanted + self.page, _MOST)
        return (*self._search(text, spoken, kept, deeper, request), deeper)

    def _search(self, text: str, spoken: str, kept: list[str], wanted: int, request: gr.Request) -> Outputs:
        if not text.strip():
            return _nothing("", wording.NOTHING_YET)
        try:
            answer = self.serving.search(text, language=spoken, k=wanted, domains=kept)
        except OWN_ERRORS as error:
            return _nothing(f"**{wording.escaped(error)}**", wording.NOTHING_YET)
        if not answer.hits:
            return _nothing(wording.answer_line(answer), wording.NO_HITS if kept else wording.EMPTY_GALLERY)
        items = wording.gallery_items(answer, wording.base_address(*base_of(request)))
        return (
            wording.answer_line(answer),
            gr.Gallery(value=items, visible=True, selected_index=None),
            gr.Button(visible=wanted <= len(answer.hits) < _MOST),
            gr.Markdown(visible=False),
            gr.Column(visible=False),
            [(hit.image_id, hit.score, hit.rank) for hit in answer.hits],
        )

    def _choose(self, hits: Chosen, request: gr.Request, event: gr.SelectData) -> Outputs:
        position = event.index if isinstance(event.index, int) else -1
        if not 0 <= position < len(hits):
            return gr.Column(visible=False), "", ""
        image_id, score, rank = hits[position]
        catalog = self.serving.workspace.catalog
        larger, facts = wording.picture_details(
            image_id,
            catalog.image(image_id),
            catalog.captions_of(image_id),
            score=score,
            rank=rank,
            base=wording.base_address(*base_of(request)),
        )
        return gr.Column(visible=True), larger, facts


def _nothing(line: str, hint: str) -> Outputs:
    """The outputs of a search that shows no picture."""
    return (
        line,
        gr.Gallery(value=[], visible=False),
        gr.Button(visible=False),
        gr.Markdown(hint, visible=True),
        gr.Column(visible=False),
        [],
    )
