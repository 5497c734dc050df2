"""The Feedback tab: what people said of answers, canaries made of it, and the chunk that it proposes."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.feedback import votes as feedback
from app.server import reviewing
from app.server.serving import OWN_ERRORS, Serving
from app.ui import feedback_words as words
from app.ui import wording
from app.ui.access import Access, base_of
from app.ui.drawn import drawing, drawn
from app.ui.events import AT_ONCE
from app.ui.grid import picture_grid, shown
from app.ui.words import Words, filled, words_of
from ingest.sentence import phrase

_CANDIDATES = 12
Outputs = tuple[Any, ...]


def add_feedback_tab(serving: Serving, access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _FeedbackTab(serving, access).connect(tab)


class _FeedbackTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.number = gr.State(0)
        self.pictures = gr.State([])
        self.picture = gr.State("")
        self.canary = gr.State(("", ""))
        self._draw_proposal()
        gr.Markdown("## Votes between releases", elem_classes="section")
        self.votes = drawing("feedback-votes")
        gr.Markdown("## What people said, newest first", elem_classes="section")
        self.said = gr.Markdown("", elem_classes="status", elem_id="feedback-said", latex_delimiters=[])
        self.table = _table(phrase("Thumbs and votes"), words.HEADERS, "feedback-table")
        self._draw_chosen()
        with gr.Accordion(
            "Canaries: queries whose first answer updates must keep", open=False, elem_id="canary-list"
        ):
            self.pins = _table("Canaries", words.PIN_HEADERS, "canaries")
            self.canary_said = gr.Markdown(
                words.CHOOSE_CANARY, elem_classes="status", elem_id="canary-said", latex_delimiters=[]
            )
            self.take_away = gr.Button("Take this canary away", interactive=False, elem_id="canary-remove")

    def _draw_proposal(self) -> None:
        gr.Markdown("## The proposed chunk", elem_classes="section")
        self.proposed = gr.Markdown("", elem_classes="status", elem_id="proposal-said", latex_delimiters=[])
        self.pair_grid = picture_grid("proposal-pictures", visible=False)
        self.pairs = gr.CheckboxGroup(
            [], label="Pairs that stay", visible=False, elem_id="proposal-pairs", elem_classes="pairs"
        )
        self.take = gr.Button(
            "Take these pairs in as a chunk", variant="primary", visible=False, elem_id="proposal-take"
        )

    def _draw_chosen(self) -> None:
        with gr.Column(visible=False, elem_id="feedback-chosen") as self.chosen:
            self.about = gr.Markdown("", elem_id="feedback-about", latex_delimiters=[])
            self.grid = picture_grid("feedback-pictures")
            self.pin = gr.Button("Make the chosen picture a canary", elem_id="feedback-pin")

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        private = AT_ONCE
        proposal = [self.proposed, self.pair_grid, self.pairs, self.take]
        lists = [self.votes, self.said, self.table, self.pins]
        everything = [*proposal, *lists]
        tab.select(self._everything, None, everything, show_progress="hidden", **private)
        self.table.select(
            self._choose, [self.table], [self.chosen, self.about, self.grid, self.number, self.pictures, self.picture],
            **private,
        )  # fmt: skip
        self.grid.select(self._pick, [self.pictures], [self.picture], show_progress="hidden", **private)
        self.pin.click(self._pin, [self.number, self.picture], [self.about, self.pins], **private)
        canary = [self.canary_said, self.take_away, self.canary]
        self.pins.select(self._choose_canary, [self.pins], canary, **private)
        self.take_away.click(self._remove_canary, [self.canary], [*canary, self.pins], **private)
        self.take.click(self._take, [self.pairs], [self.proposed, self.take], **private)

    def _everything(self, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            records = self.serving.workspace.catalog.feedback.all()
            return (
                *self._proposal(request),
                drawn(words.votes_view(feedback.votes(records), say)),
                words.said_line(len(records), say),
                filled(words.HEADERS, words.rows(records, say), say),
                self._pins(say),
            )
        except OWN_ERRORS as error:
            hidden = gr.Gallery(visible=False), gr.CheckboxGroup(visible=False), gr.Button(visible=False)
            tables = filled(words.HEADERS, [], say), filled(words.PIN_HEADERS, [], say)
            return wording.refusal(error, say), *hidden, drawn(None), "", *tables

    def _pins(self, say: Words) -> dict[str, Any]:
        return filled(words.PIN_HEADERS, words.pin_rows(self.serving.workspace.catalog.pins()), say)

    def _proposal(self, request: gr.Request) -> Outputs:
        found, say = reviewing.proposal(self.serving), words_of(request)
        pairs = found.pairs[: words.MOST_PAIRS]
        choices = [
            (words.pair_label(pair, number, say), pair.id) for number, pair in enumerate(pairs, start=1)
        ]
        pictures = words.pair_pictures(pairs, wording.base_address(*base_of(request)))
        is_any = bool(pairs)
        return (
            words.proposal_line(found, say),
            shown(pictures, visible=is_any),
            gr.CheckboxGroup(choices=choices, value=[pair.id for pair in pairs], visible=is_any),
            gr.Button(visible=is_any),
        )

    def _choose(self, rows: list[list[str]], request: gr.Request, event: gr.SelectData) -> Outputs:
        say = words_of(request)
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        try:
            self.access.admin(request)
            record = feedback.feedback_of(self.serving.workspace, int(rows[row][0]))
            answer = self.serving.search(record.query, k=_CANDIDATES)
        except OWN_ERRORS as error:
            return (
                gr.Column(visible=True),
                wording.refusal(error, words_of(request)),
                shown([]),
                0,
                [],
                "",
            )
        ids = [hit.image_id for hit in answer.hits]
        asked = [*ids, *([record.image_id] if record.image_id else [])]
        known = self.serving.found(asked, answer.language.split(" ")[0], most=1)
        captions = {image_id: one.captions[0].text for image_id, one in known.items() if one.captions}
        found = words.candidates(record, ids, captions, wording.base_address(*base_of(request)), say)
        return (
            gr.Column(visible=True),
            words.chosen_line(record, say),
            shown([picture for _, picture in found]),
            record.id,
            [image_id for image_id, _ in found],
            record.image_id if record.verdict == "up" else "",
        )

    def _pick(self, pictures: list[str], event: gr.SelectData) -> str:
        place = event.index if isinstance(event.index, int) else -1
        return pictures[place] if 0 <= place < len(pictures) else ""

    def _pin(self, number: int, picture: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            if not picture:
                return wording.refusal(words.CHOOSE_PICTURE, say), gr.skip()
            pinned = reviewing.pin(self.serving, number, image_id=picture)
        except OWN_ERRORS as error:
            return wording.refusal(error, say), gr.skip()
        return words.pinned_line(pinned, say), self._pins(say)

    def _choose_canary(self, rows: list[list[str]], request: gr.Request, event: gr.SelectData) -> Outputs:
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        query, language = str(rows[row][0]), str(rows[row][1])
        said = words.chosen_canary_line(query, language, words_of(request))
        return said, gr.Button(interactive=True), (query, language)

    def _remove_canary(self, canary: tuple[str, str], request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            by = self.access.admin(request).name
            gone = feedback.remove_canary(self.serving.workspace, canary[0], language=canary[1], by=by)
        except OWN_ERRORS as error:
            return wording.refusal(error, say), gr.skip(), gr.skip(), gr.skip()
        said = words.removed_canary_line(gone, say)
        return said, gr.Button(interactive=False), ("", ""), self._pins(say)

    def _take(self, pairs: list[str], request: gr.Request) -> Outputs:
        try:
            account = self.access.admin(request)
            job = reviewing.take_proposal(self.serving, set(pairs), by=account.name)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), gr.skip()
        said = words.taken_line(job.id, len(pairs), words_of(request))
        return said, gr.Button(visible=False)


def _table(label: str, headers: list[str], elem_id: str) -> gr.Dataframe:
    return gr.Dataframe(
        headers=headers,
        label=label,
        interactive=False,
        wrap=True,
        type="array",
        elem_id=elem_id,
        max_height=360,
    )
