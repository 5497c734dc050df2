"""The Search tab: words or a picture in, pictures out, and everything known of the one that is chosen.

A search has an address (`address.py`). The line above the pictures links to it; `pages.js` puts it into the browser's
own address, and hands addresses back when a person goes back, follows a caption or an earlier search.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from app.desk.desk import Desk
from app.desk.errors import CaptionsNotReady, NoRelease
from app.desk.hits import SearchAnswer
from app.desk.troubles import OWN_ERRORS
from app.home.settings import Settings
from app.ui import search_words, wording
from app.ui.access import Access, Act, Shown, Visit
from app.ui.address import asked_of, is_empty
from app.ui.events import AT_ONCE
from app.ui.grid import as_sent, picture_grid
from app.ui.screen import Screen, box_values
from app.ui.search_details import Details
from app.ui.search_files import Files
from app.ui.search_filters import FilterRow
from app.ui.words import label
from ingest.readers.names import READ_SUFFIXES
from ingest.sentence import phrase

_MOST = 480
_NAMED = 16  # digits of an id, of which a gallery has no two alike


def add_search_tab(blocks: gr.Blocks, access: Access, settings: Settings) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _SearchTab(access, settings).connect(blocks)


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

    def __init__(self, access: Access, settings: Settings) -> None:
        self.access = access
        self.size = settings.default_k
        label("Recent searches, kept in this browser only", key="recent")
        label("Forget them", key="forget")
        self._draw_question(settings.max_query_characters)
        with gr.Row(elem_classes="bar"):
            self.status = gr.Markdown("", elem_classes="status", elem_id="status", latex_delimiters=[])
            self.files = Files(access)
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
        self.screen, self.learned = gr.State(Screen()), gr.State(())
        with gr.Row():
            with gr.Column(scale=5, min_width=320):
                self.grid = picture_grid("results")
                with gr.Row(elem_classes="paging"):
                    self.before = gr.Button(label("← Previous page"), visible=False, elem_id="page-before")
                    self.more = gr.Button(label("Show more"), visible=False, elem_id="more")
                    self.after = gr.Button(label("Next page →"), visible=False, elem_id="page-after")
            self.details = Details(access)

    def _draw_question(self, longest: int) -> None:
        with gr.Row(equal_height=True, elem_classes="ask"):
            self.box = gr.MultimodalTextbox(
                placeholder=label("Describe a picture, or drop one here …"),
                show_label=False,
                container=False,
                sources=["upload"],
                file_types=["image", *sorted(READ_SUFFIXES)],
                file_count="multiple",
                scale=8,
                max_plain_text_length=4 * longest,
                elem_classes="query",
                elem_id="query",
                autofocus=True,
            )
        self.filters = FilterRow(longest)
        # Hidden: `pages.js` writes the addresses into it that a person goes to without loading the page again.
        self.address = gr.Textbox("", show_label=False, elem_id="address", elem_classes="unseen")

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        filters, chosen = list(self.filters.parts.values()), self.details.chosen
        outputs = [*self._hidden, self.filters.fold]
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
        asking = [self.box.submit, *self.filters.asking]
        gr.on(asking, self._called(self._search), [chosen, self.box, *filters], outputs, **search)
        for button, act in (
            (self.more, self._page),
            (self.before, self._page_before),
            (self.after, self._page_after),
        ):
            gr.on([button.click], self._called(act), [chosen, self.screen], outputs, **search)
        similar, shown = self._called(self._more_like), [self.box, *outputs]
        self.details.similar.click(similar, [chosen, *filters], shown, **search)
        self.details.connect(self.grid, self.screen, self.learned)
        self.files.connect(self.screen)
        everything = [self.box, *filters, self.learned, *outputs]
        self.address.submit(self._called(self._go), [chosen, self.address], everything, **search)
        blocks.load(self._open, None, everything, **search)

    @property
    def _hidden(self) -> dict[Any, Any]:
        """What the outputs show where there is no picture."""
        unseen = gr.update(visible=False)
        return {
            self.status: "",
            self.files.row: unseen,
            self.sizes: unseen,
            self.said: unseen,
            self.grid: as_sent([], one_is_chosen=True),
            self.before: unseen,
            self.more: unseen,
            self.after: unseen,
            self.empty: unseen,
            self.details.panel: unseen,
            self.details.chosen: "",
            self.screen: Screen(),
        }

    def _nothing(self, line: str, hint: str) -> dict[Any, Any]:
        return {**self._hidden, self.status: line, self.empty: gr.update(value=hint, visible=True)}

    def _called(self, act: Act) -> Act:
        """Returns what Gradio is to call; what is refused is said where pictures would be."""

        def call(visit: Visit, *values: Any) -> Any:
            try:
                return act(visit, *values)
            except OWN_ERRORS as error:
                return self._nothing(wording.refusal(error, visit.say), visit.say.said(NOTHING_YET))

        return self.access.of_anyone(call, self.status)

    # What a person sets off

    def _open(self, request: gr.Request) -> Any:
        inner = request.request
        return self._called(self._go)(request, "", f"?{inner.url.query}" if inner is not None else "")

    def _go(self, visit: Visit, chosen: str, address: str) -> Shown:
        """Shows the search of an address: in the box and the filters, and what it finds."""
        say = visit.say
        try:
            choices = visit.desk.choices()
        except NoRelease as error:
            hint = f"{say('## Nothing to search yet')}\n\n{wording.escaped(say.said(str(error)))}"
            return self._nothing("", hint)
        asked, left_out = asked_of(address)
        asked, missing = self.filters.known(asked, choices)
        said = search_words.missing([*missing, *left_out], say)
        if is_empty(asked):
            found = self._nothing(said, say.said(NOTHING_YET if choices.pictures else EMPTY_GALLERY))
        else:
            found = self._page(visit, chosen, Screen(asked), said)
        return {
            self.box: {"text": asked.text or "", "files": []},
            **self.filters.shown(asked, choices, say),
            self.learned: [one.language for one in choices.learned],
            **found,
        }

    def _search(self, visit: Visit, chosen: str, box: Any, *filters: Any) -> Shown:
        text, files = box_values(box)
        if not (text.strip() or files):
            return self._nothing("", visit.say.said(NOTHING_YET))
        asked = self.filters.asked(filters, text=text.strip() or None)
        return self._page(visit, chosen, Screen(asked, files))

    def _more_like(self, visit: Visit, chosen: str, *filters: Any) -> Shown:
        """Asks for what is like the chosen picture, which the box then names, so that a person can add to it."""
        text = f"#{chosen[:_NAMED]}"
        asked = self.filters.asked(filters, text=text, translation="")
        return {self.box: {"text": text, "files": []}, **self._page(visit, chosen, Screen(asked))}

    def _page_before(self, visit: Visit, chosen: str, screen: Screen) -> Shown:
        return self._page(visit, chosen, screen.moved(max(0, screen.asked.offset - self.size)))

    def _page_after(self, visit: Visit, chosen: str, screen: Screen) -> Shown:
        return self._page(visit, chosen, screen.moved(screen.asked.offset + len(screen.hits)))

    # What is answered

    def _page(self, visit: Visit, chosen: str, screen: Screen, said: str = "") -> dict[Any, Any]:
        """Answers one page.

        Args:
            visit: of who asks.
            chosen: id of the picture that is marked as chosen until now; "" for none.
            screen: what is asked, and what stays there before the page.
            said: about the search, before anybody has answered it.
        """
        say = visit.say
        answer, note = _found(visit.desk, screen)
        hits = (*screen.hits, *answer.hits)
        screen = replace(screen, hits=hits, next=answer.next, release=answer.release, query=answer.query)
        offset = screen.asked.offset
        lines = [
            f"{search_words.answer_line(answer, offset, len(hits), say)} · {search_words.links(screen, say)}",
            said,
            search_words.notes(answer, say),
            wording.escaped(say.said(note)),
        ]
        status = "  \n".join(one for one in lines if one)
        if not hits:
            is_narrowed = answer.searched < answer.index_size
            return self._nothing(status, say.said(NO_HITS if is_narrowed else EMPTY_GALLERY))
        captions = search_words.found_captions(answer, say)
        pictures = search_words.hit_pictures(hits, visit.base)
        seen = gr.update(visible=True)
        return {
            **self._hidden,
            self.status: status,
            self.files.row: seen,
            self.sizes: seen,
            self.said: gr.update(value=captions, visible=bool(captions)),
            self.grid: as_sent(pictures, one_is_chosen=bool(chosen)),
            self.before: gr.update(visible=offset > 0),
            self.more: gr.update(visible=bool(answer.next) and len(hits) < _MOST),
            self.after: gr.update(visible=bool(answer.next)),
            self.filters.fold: self.filters.heading(screen.asked, say, is_open=bool(answer.unlearned)),
            self.screen: screen,
        }


def _found(desk: Desk, screen: Screen) -> tuple[SearchAnswer, str]:
    """Answers a page; while captions are still being read, without them and with a note that says so."""
    asked = screen.request()
    if screen.next:
        asked = asked.model_copy(update={"cursor": screen.next, "offset": 0, "captions": 0})
    try:
        return desk.search(asked), ""
    except CaptionsNotReady as error:
        return desk.search(asked.model_copy(update={"captions": 0})), str(error)
