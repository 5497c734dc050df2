"""The Search tab: words or a picture in, pictures out, and everything known of the one that is chosen.

A search has an address (`address.py`). The line above the pictures links to it; `pages.js` puts it into the browser's
own address, and hands addresses back when a person goes back, follows a caption or an earlier search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from app.desk.errors import CaptionsNotReady, NoRelease
from app.query.question import QueryAnswer
from app.server.serving import OWN_ERRORS, Serving
from app.ui import search_words, wording
from app.ui.access import base_of
from app.ui.address import asked_of
from app.ui.asking import Asked, box_values
from app.ui.events import AT_ONCE
from app.ui.grid import Picture, as_sent, picture_grid
from app.ui.screen import Screen
from app.ui.search_details import Details
from app.ui.search_files import Files
from app.ui.search_filters import FilterRow
from app.ui.words import label, words_of
from ingest.sentence import phrase

_MOST = 480
_NAMED = 16  # digits of an id, of which a gallery has no two alike
Outputs = tuple[Any, ...]


def add_search_tab(blocks: gr.Blocks, serving: Serving) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _SearchTab(serving).connect(blocks)


NOTHING_YET = phrase(
    "## Describe a picture\n\nType what it shows, in any language of the list, and press Enter. Whole phrases work "
    "better than single words: *two red boats on a beach at sunset*."
)
EMPTY_GALLERY = phrase(
    "## There are no pictures yet\n\nOpen [Teach](/admin/) and upload a chunk: a zip of pictures with a table of "
    "captions, or a folder's worth of pictures with a text file beside each. Pictures without captions can be searched "
    "too."
)
NO_HITS = phrase(
    "## No picture fits these filters\n\nChoose fewer domains, or none, to search the whole gallery."
)


class _SearchTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.size = serving.settings.default_k
        label("Recent searches, kept in this browser only", key="recent")
        label("Forget them", key="forget")
        self._draw_question()
        with gr.Row(elem_classes="bar"):
            self.status = gr.Markdown("", elem_classes="status", elem_id="status", latex_delimiters=[])
            self.files = Files(serving)
            self.sizes = gr.Radio(
                [(label("Small"), "small"), (label("Medium"), "medium"), (label("Large"), "large")],
                value="medium",
                label=label("Size of the pictures"),
                elem_id="size",
                elem_classes="sizes",
                visible=False,
                interactive=True,
            )
        self.empty = gr.Markdown(
            label(NOTHING_YET), elem_classes="empty", elem_id="empty", latex_delimiters=[]
        )
        self.said = gr.Markdown(
            visible=False,
            elem_classes=["found-captions", "captions"],
            elem_id="found-captions",
            latex_delimiters=[],
        )
        self.screen = gr.State(Screen())
        with gr.Row():
            with gr.Column(scale=5, min_width=320):
                self.grid = picture_grid("results")
                with gr.Row(elem_classes="paging"):
                    self.before = gr.Button(label("← Previous page"), visible=False, elem_id="page-before")
                    self.more = gr.Button(label("Show more"), visible=False, elem_id="more")
                    self.after = gr.Button(label("Next page →"), visible=False, elem_id="page-after")
            self.details = Details(serving)

    def _draw_question(self) -> None:
        with gr.Row(equal_height=True, elem_classes="ask"):
            self.box = gr.MultimodalTextbox(
                placeholder=label("Describe a picture, or drop one here …"),
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
        self.filters = FilterRow(self.serving)
        # Hidden: `pages.js` writes the addresses into it that a person goes to without loading the page again.
        self.address = gr.Textbox("", show_label=False, elem_id="address", elem_classes="unseen")

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        filters = self.filters.parts
        outputs = [
            self.status,
            self.files.row,
            self.sizes,
            self.said,
            self.grid,
            self.before,
            self.more,
            self.after,
            self.empty,
            self.details.panel,
            self.details.chosen,
            self.filters.fold,
            self.screen,
        ]
        chosen = self.details.chosen
        search: dict[str, Any] = {
            **AT_ONCE,  # how many are answered at once is the engine's own business
            "show_progress": "minimal",
            # On the grid alone: from then on the browser goes over all that ever showed progress, at each event.
            "show_progress_on": [self.grid],
            # Gradio would hand each value to a thread of its own, on the way in and out, and read pictures that are
            # addresses (see `as_sent`). Values come and go as the browser has them; the engine says what is wrong.
            "preprocess": False,
            "postprocess": False,
        }
        asking = [self.box.submit, *(one.submit for one in self.filters.typed)]
        asking += [one.input for one in self.filters.chosen]
        gr.on(asking, self._search, [chosen, self.box, *filters], outputs, **search)
        gr.on([self.more.click], self._more, [chosen, self.screen], outputs, **search)
        gr.on([self.before.click], self._page_before, [chosen, self.screen], outputs, **search)
        gr.on([self.after.click], self._page_after, [chosen, self.screen], outputs, **search)
        self.details.similar.click(self._more_like, [chosen, *filters], [self.box, *outputs], **search)
        self.details.connect(self.grid, self.screen)
        self.files.connect(self.screen)
        everything = [self.box, *filters, *outputs]
        self.address.submit(self._go, [chosen, self.address], everything, **search)
        blocks.load(self._open, None, everything, **search)

    # What a person sets off

    def _open(self, request: gr.Request) -> Outputs:
        inner = request.request
        return self._go("", f"?{inner.url.query}" if inner is not None else "", request)

    def _go(self, chosen: str, address: str, request: gr.Request) -> Outputs:
        """Shows the search of an address: in the box and the filters, and what it finds."""
        say = words_of(request)
        try:
            snapshot = self.serving.snapshot()
        except NoRelease as error:
            hint = f"{say('## Nothing to search yet')}\n\n{wording.escaped(say.said(str(error)))}"
            return *([gr.skip()] * (1 + len(self.filters.parts))), *_nothing(chosen, "", hint)
        asked, missing = self.filters.known(asked_of(address), snapshot)
        if asked.is_empty:
            hint = say.said(NOTHING_YET if len(snapshot.generation) else EMPTY_GALLERY)
            outputs = _nothing(chosen, search_words.missing(missing, say), hint)
        else:
            outputs = self._page(chosen, asked, request, said=search_words.missing(missing, say))
        return {"text": asked.text, "files": []}, *self.filters.shown(asked, snapshot, say), *outputs

    def _search(self, request: gr.Request, chosen: str, box: Any, *filters: Any) -> Outputs:
        text, files = box_values(box)
        asked = replace(self.filters.asked(filters), text=text, files=files)
        if asked.is_empty:
            return _nothing(chosen, "", words_of(request).said(NOTHING_YET))
        return self._page(chosen, asked, request)

    def _more_like(self, request: gr.Request, chosen: str, *filters: Any) -> Outputs:
        """Asks for what is like the chosen picture, which the box then names, so that a person can add to it."""
        text = f"#{chosen[:_NAMED]}"
        asked = replace(self.filters.asked(filters), text=text, translation="")
        return {"text": text, "files": []}, *self._page(chosen, asked, request)

    def _more(self, request: gr.Request, chosen: str, screen: Screen) -> Outputs:
        return self._page(chosen, screen.asked, request, before=screen)

    def _page_before(self, request: gr.Request, chosen: str, screen: Screen) -> Outputs:
        offset = max(0, screen.asked.offset - self.size)
        return self._page(chosen, replace(screen.asked, offset=offset), request, release=screen.release)

    def _page_after(self, request: gr.Request, chosen: str, screen: Screen) -> Outputs:
        offset = screen.asked.offset + len(screen.found)
        return self._page(chosen, replace(screen.asked, offset=offset), request, release=screen.release)

    # What is answered

    def _page(
        self,
        chosen: str,
        asked: Asked,
        request: gr.Request,
        *,
        before: Screen | None = None,
        release: str = "",
        said: str = "",
    ) -> Outputs:
        """Answers one page.

        Args:
            chosen: id of the picture that is marked as chosen until now; "" for none.
            asked: what is asked, with the offset of the first picture on the screen.
            request: of the browser.
            before: what is on the screen and stays there, before the page.
            release: that is to answer; "" for the live one, or that of the page before.
            said: about the search, before anybody has answered it.
        """
        say = words_of(request)
        try:
            answer, note = self._find(asked, before.next if before else "", release)
            record = self.serving.workspace.releases.release(answer.release)
        except OWN_ERRORS as error:
            return _nothing(chosen, wording.refusal(error, say), say.said(NOTHING_YET))
        kept = before.found if before else ()
        found = (*kept, *((hit.image_id, hit.score) for hit in answer.hits))
        screen = Screen(asked, found, answer.next, answer.release, answer.query)
        line = search_words.answer_line(answer, record, asked.offset, len(found), say)
        lines = [
            f"{line} · {search_words.links(asked, say)}",
            said,
            search_words.notes(answer, say),
            wording.escaped(say.said(note)),
        ]
        status = "  \n".join(one for one in lines if one)
        if not found:
            return _nothing(
                chosen, status, say.said(NO_HITS if answer.searched < answer.gallery else EMPTY_GALLERY)
            )
        captions = search_words.found_captions(answer, say)
        return (
            status,
            gr.Row(visible=True),
            gr.Radio(visible=True),
            gr.Markdown(captions, visible=bool(captions)),
            as_sent(self._pictures(screen, answer, request), one_is_chosen=bool(chosen)),
            gr.Button(visible=asked.offset > 0),
            gr.Button(visible=bool(answer.next) and len(found) < _MOST),
            gr.Button(visible=bool(answer.next)),
            gr.Markdown(visible=False),
            gr.Column(visible=False),
            "",
            self.filters.heading(asked, say, is_open=bool(answer.unlearned)),
            screen,
        )

    def _find(self, asked: Asked, cursor: str, release: str) -> tuple[QueryAnswer, str]:
        """Answers a page; while captions are still being read, without them and with a note that says so."""
        longest = self.serving.settings.max_query_characters
        question = asked.question(longest=longest, k=self.size, cursor=cursor)
        try:
            return self.serving.find(question, release=release or None), ""
        except CaptionsNotReady as error:
            without = replace(question, captions=0)
            return self.serving.find(without, release=release or None), str(error)

    def _pictures(self, screen: Screen, answer: QueryAnswer, request: gr.Request) -> list[Picture]:
        language = answer.language.split(" + ")[0]
        said = self.serving.found([image_id for image_id, _ in screen.found], language, most=1)
        words = {image_id: one.captions[0].text for image_id, one in said.items() if one.captions}
        return wording.hit_pictures(screen.found, words, wording.base_address(*base_of(request)))


def _nothing(chosen: str, line: str, hint: str) -> Outputs:
    """The outputs of a search that shows no picture, where one was marked as chosen or none ("") until now."""
    return (
        line,
        gr.Row(visible=False),
        gr.Radio(visible=False),
        gr.Markdown(visible=False),
        as_sent([], one_is_chosen=bool(chosen)),
        gr.Button(visible=False),
        gr.Button(visible=False),
        gr.Button(visible=False),
        gr.Markdown(hint, visible=True),
        gr.Column(visible=False),
        "",
        gr.skip(),
        Screen(),
    )
