"""The Search tab: a text in, pictures out, and everything known of the one that is chosen."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.errors import NoRelease
from app.search import AUTO
from app.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import base_of

COLUMNS = 6
_MOST = 240


def add_search_tab(blocks: gr.Blocks, serving: Serving) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    page = serving.settings.default_k
    with gr.Row(equal_height=True):
        query = gr.Textbox(
            placeholder="Describe a picture …",
            show_label=False,
            container=False,
            scale=8,
            max_length=serving.settings.max_query_characters,
            elem_classes="query",
            elem_id="query",
            autofocus=True,
        )
        go = gr.Button("Search", variant="primary", scale=1, min_width=120, elem_id="go")
    with gr.Row():
        language = gr.Dropdown([("Auto-detect", AUTO)], value=AUTO, label="Language", elem_id="language")
        domains = gr.Dropdown([], multiselect=True, label="Only these domains", elem_id="domains")
    status = gr.Markdown("", elem_classes="status", elem_id="status", latex_delimiters=[])
    empty = gr.Markdown(wording.NOTHING_YET, elem_classes="empty", elem_id="empty", latex_delimiters=[])
    shown = gr.State([])
    depth = gr.State(page)
    with gr.Row():
        with gr.Column(scale=5, min_width=320):
            gallery = gr.Gallery(
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
            more = gr.Button("Show more", visible=False, elem_id="more")
        with gr.Column(
            scale=3, min_width=300, visible=False, elem_classes="details", elem_id="details"
        ) as panel:
            picture = gr.Markdown(latex_delimiters=[], elem_id="picture")
            details = gr.Markdown(latex_delimiters=[], elem_id="facts")

    def menus() -> tuple[Any, Any, Any]:
        try:
            snapshot = serving.snapshot()
        except NoRelease as error:
            return (
                gr.Dropdown(),
                gr.Dropdown(),
                gr.Markdown(f"### Nothing to search yet\n\n{wording.escaped(error)}"),
            )
        choices = wording.language_choices(snapshot.release, snapshot.languages)
        known = list(serving.workspace.catalog.domains())
        hint = wording.NOTHING_YET if len(snapshot.generation) else wording.EMPTY_GALLERY
        return gr.Dropdown(choices=choices), gr.Dropdown(choices=known), gr.Markdown(hint)

    def search(text: str, spoken: str, kept: list[str], wanted: int, request: gr.Request) -> tuple[Any, ...]:
        if not text.strip():
            return _nothing("", wording.NOTHING_YET)
        try:
            answer = serving.search(text, language=spoken, k=wanted, domains=kept)
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

    def first_page(text: str, spoken: str, kept: list[str], request: gr.Request) -> tuple[Any, ...]:
        return (*search(text, spoken, kept, page, request), page)

    def next_page(
        text: str, spoken: str, kept: list[str], wanted: int, request: gr.Request
    ) -> tuple[Any, ...]:
        deeper = min(wanted + page, _MOST)
        return (*search(text, spoken, kept, deeper, request), deeper)

    def choose(
        hits: list[tuple[str, float, int]], request: gr.Request, event: gr.SelectData
    ) -> tuple[Any, Any, Any]:
        position = event.index if isinstance(event.index, int) else -1
        if not 0 <= position < len(hits):
            return gr.Column(visible=False), "", ""
        image_id, score, rank = hits[position]
        catalog = serving.workspace.catalog
        larger, facts = wording.picture_details(
            image_id,
            catalog.image(image_id),
            catalog.captions_of(image_id),
            score=score,
            rank=rank,
            base=wording.base_address(*base_of(request)),
        )
        return gr.Column(visible=True), larger, facts

    outputs = [status, gallery, more, empty, panel, shown, depth]
    inputs: list[Any] = [query, language, domains]
    gr.on(
        [query.submit, go.click, language.input, domains.input],
        first_page,
        inputs,
        outputs,
        api_name="search",
        concurrency_id="search",
        concurrency_limit=4,
        show_progress="minimal",
        show_progress_on=[gallery],
    )
    more.click(
        next_page,
        [*inputs, depth],
        outputs,
        api_visibility="private",
        concurrency_id="search",
        show_progress="minimal",
    )
    gallery.select(
        choose, [shown], [panel, picture, details], api_visibility="private", show_progress="hidden"
    )
    blocks.load(menus, None, [language, domains, empty], api_visibility="private", show_progress="hidden")


def _nothing(line: str, hint: str) -> tuple[Any, ...]:
    """The outputs of a search that shows no picture."""
    return (
        line,
        gr.Gallery(value=[], visible=False),
        gr.Button(visible=False),
        gr.Markdown(hint, visible=True),
        gr.Column(visible=False),
        [],
    )
