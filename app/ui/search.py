"""The Search tab: words or a picture in, pictures out, and everything known of the one that is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from app.errors import CaptionsNotReady, NoRelease
from app.query.question import Mode, QueryAnswer
from app.search import AUTO
from app.server.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import base_of
from app.ui.asking import MODES, Asked, box_values
from app.ui.grid import picture_grid, shown

_MOST = 480
Found = list[tuple[str, float]]
"""Id and score of each picture on the screen, best first."""
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
        self.said = gr.Markdown(
            visible=False, elem_classes="found-captions", elem_id="found-captions", latex_delimiters=[]
        )
        self.asked = gr.State(Asked())
        self.found = gr.State([])
        self.next = gr.State("")
        self.chosen = gr.State("")
        with gr.Row():
            with gr.Column(scale=5, min_width=320):
                self.grid = picture_grid("results", visible=False)
                self.more = gr.Button("Show more", visible=False, elem_id="more")
            self._draw_details()

    def _draw_question(self) -> None:
        with gr.Row(equal_height=True, elem_classes="ask"):
            self.box = gr.MultimodalTextbox(
                placeholder="Describe a picture, or drop one here …",
                show_label=False,
                container=False,
                sources=["upload"],
                file_types=["image"],
                file_count="multiple",
                scale=8,
                max_plain_text_length=4 * self.serving.settings.max_query_characters,
                elem_classes="query",
                elem_id="query",
                autofocus=True,
            )
        with (
            gr.Accordion("Language and filters", open=False, elem_classes="fold", elem_id="filters"),
            gr.Row(elem_classes="chips"),
        ):
            self._draw_filters()

    def _draw_filters(self) -> None:
        width: dict[str, Any] = {"min_width": 170}
        self.language = gr.Dropdown(
            [("Any language", AUTO)], value=AUTO, label="Language of the words", elem_id="language", **width
        )
        self.domains = gr.Dropdown([], multiselect=True, label="Domains", elem_id="domains", **width)
        self.spoken = gr.Dropdown([], multiselect=True, label="Captioned in", elem_id="captioned", **width)
        self.words = gr.Textbox(label="Captions with", elem_id="captions-with", max_length=500, **width)
        self.mode = gr.Dropdown(
            MODES, value=Mode.VECTORS.value, label="Look at", elem_id="mode", filterable=False, **width
        )
        self.fold = gr.Checkbox(False, label="Fold near-copies", elem_id="fold", **width)

    def _draw_details(self) -> None:
        with gr.Column(
            scale=3, min_width=300, visible=False, elem_classes="details", elem_id="details"
        ) as self.panel:
            self.picture = gr.Markdown(latex_delimiters=[], elem_id="picture")
            with gr.Row():
                self.similar = gr.Button("More like this", size="sm", min_width=120, elem_id="similar")
                self.close = gr.Button("Close", size="sm", min_width=80, elem_id="close")
            self.facts = gr.Markdown(latex_delimiters=[], elem_id="facts")

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        filters: list[Any] = [self.language, self.domains, self.spoken, self.words, self.mode, self.fold]
        screen = [self.status, self.said, self.grid, self.more, self.empty, self.panel]
        outputs = [*screen, self.asked, self.found, self.next]
        quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
        # Programs call `client_api`.
        search: dict[str, Any] = {
            "api_visibility": "private",
            "concurrency_id": "search",
            "concurrency_limit": 4,
            "show_progress": "minimal",
            "show_progress_on": [self.grid],
        }
        changed = [filter_.input for filter_ in filters if filter_ is not self.words]
        gr.on(
            [self.box.submit, self.words.submit, *changed],
            self._search,
            [self.box, *filters],
            outputs,
            **search,
        )
        self.more.click(self._next_page, [self.asked, self.found, self.next], outputs, **search)
        self.similar.click(self._more_like, [self.chosen, *filters], outputs, **search)
        details = [self.panel, self.picture, self.facts, self.chosen]
        self.grid.select(self._choose, [self.found], details, **quiet)
        self.close.click(_closed, None, details, **quiet)
        menus = [self.language, self.domains, self.spoken, self.empty]
        # Not queued: events that begin together when a page opens would race for the one stream of the queue.
        blocks.load(self._menus, None, menus, queue=False, **quiet)

    def _menus(self) -> Outputs:
        try:
            snapshot = self.serving.snapshot()
        except NoRelease as error:
            said = gr.Markdown(f"## Nothing to search yet\n\n{wording.escaped(error)}")
            return gr.skip(), gr.skip(), gr.skip(), said
        catalog = self.serving.workspace.catalog
        hint = wording.NOTHING_YET if len(snapshot.generation) else wording.EMPTY_GALLERY
        return (
            gr.Dropdown(choices=wording.language_choices(snapshot.release, snapshot.languages)),
            gr.Dropdown(choices=list(catalog.domains())),
            gr.Dropdown(choices=wording.plain_languages(catalog.languages())),
            gr.Markdown(hint),
        )

    def _search(self, request: gr.Request, box: Any, *filters: Any) -> Outputs:
        text, files = box_values(box)
        return self._first_page(replace(_filtered(filters), text=text, files=files), request)

    def _more_like(self, request: gr.Request, image_id: str, *filters: Any) -> Outputs:
        return self._first_page(replace(_filtered(filters), item=image_id), request)

    def _first_page(self, asked: Asked, request: gr.Request) -> Outputs:
        if asked.is_empty:
            return _nothing("", wording.NOTHING_YET)
        return self._page(asked, [], "", request)

    def _next_page(self, asked: Asked, found: Found, cursor: str, request: gr.Request) -> Outputs:
        return self._page(asked, found, cursor, request)

    def _page(self, asked: Asked, found: Found, cursor: str, request: gr.Request) -> Outputs:
        """Answers one page; what is on the screen already stays before it."""
        try:
            answer, note = self._find(asked, cursor)
        except OWN_ERRORS as error:
            return _nothing(f"**{wording.escaped(error)}**", wording.NOTHING_YET)
        found = [*found, *((hit.image_id, hit.score) for hit in answer.hits)]
        if not found:
            is_filtered = answer.searched < answer.gallery
            return _nothing(
                wording.answer_line(answer), wording.NO_HITS if is_filtered else wording.EMPTY_GALLERY
            )
        captions = wording.found_captions(answer)
        return (
            wording.answer_line(answer, len(found)) + note,
            gr.Markdown(captions, visible=bool(captions)),
            shown(self._pictures(found, answer, request)),
            gr.Button(visible=bool(answer.next) and len(found) < _MOST),
            gr.Markdown(visible=False),
            gr.Column(visible=False),
            asked,
            found,
            answer.next,
        )

    def _find(self, asked: Asked, cursor: str) -> tuple[QueryAnswer, str]:
        """Answers a page; while captions are still being read, without them and with a note that says so."""
        longest = self.serving.settings.max_query_characters
        question = asked.question(longest=longest, k=self.page, cursor=cursor)
        try:
            return self.serving.find(question), ""
        except CaptionsNotReady as error:
            return self.serving.find(replace(question, captions=0)), f"  \n{wording.escaped(error)}"

    def _pictures(self, found: Found, answer: QueryAnswer, request: gr.Request) -> Any:
        language = answer.language.split(" + ")[0]
        said = self.serving.found([image_id for image_id, _ in found], language, most=1)
        words = {image_id: one.captions[0].text for image_id, one in said.items() if one.captions}
        return wording.hit_pictures(found, words, wording.base_address(*base_of(request)))

    def _choose(self, found: Found, request: gr.Request, event: gr.SelectData) -> Outputs:
        place = event.index if isinstance(event.index, int) else -1
        if not 0 <= place < len(found):
            return _closed()
        image_id, score = found[place]
        catalog = self.serving.workspace.catalog
        larger, facts = wording.picture_details(
            image_id,
            catalog.image(image_id),
            catalog.captions_of(image_id),
            score=score,
            rank=place + 1,
            base=wording.base_address(*base_of(request)),
        )
        return gr.Column(visible=True), larger, facts, image_id


def _filtered(filters: tuple[Any, ...]) -> Asked:
    language, domains, spoken, words, mode, fold = filters
    return Asked(
        language=language or AUTO,
        domains=domains or (),
        languages=spoken or (),
        caption=words or "",
        mode=mode or Mode.VECTORS.value,
        fold=bool(fold),
    )


def _closed() -> Outputs:
    """The outputs when no picture is chosen."""
    return gr.Column(visible=False), "", "", ""


def _nothing(line: str, hint: str) -> Outputs:
    """The outputs of a search that shows no picture."""
    return (
        line,
        gr.Markdown(visible=False),
        shown([], visible=False),
        gr.Button(visible=False),
        gr.Markdown(hint, visible=True),
        gr.Column(visible=False),
        Asked(),
        [],
        "",
    )
