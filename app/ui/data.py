"""The Data tab: chunks and a person's word on them, what waits for a decision, near-copies, removing a chunk."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.learning import inventory
from app.server import deciding
from app.server.serving import OWN_ERRORS, Serving
from app.ui import data_words, wording
from app.ui.access import Access, base_of
from app.ui.events import AT_ONCE
from app.ui.held import HeldPairs
from app.ui.one_picture import OnePicture
from app.ui.word import PersonsWord
from app.ui.words import Words, filled, words_of
from ingest.records import FINAL_STATES, ChunkRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.5
_HELD_SHOWN = 200
_THINGS_SHOWN = 12
_SAMPLES = 12
Outputs = tuple[Any, ...]


def add_data_tab(serving: Serving, access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _DataTab(serving, access).connect(tab)


class _DataTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.chosen = gr.State("")
        self.job = gr.State("")
        self.first = gr.State(0)
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        self.overview = _text("", "data-overview", "status")
        self.table = gr.Dataframe(
            headers=data_words.CHUNK_HEADERS,
            label="All chunks, newest first",
            interactive=False,
            wrap=True,
            type="array",
            max_height=420,
            elem_id="chunks",
        )
        self.about = _text(phrase("Select a chunk to see what it holds."), "chunk-about", "strip")
        self.pairs = HeldPairs(serving, access, name="data-")
        self.word = PersonsWord(serving, access, name="data-")
        with gr.Column(visible=False) as self.removing:
            gr.Markdown(data_words.REMOVE_HELP, elem_classes="notice")
            self.remove = gr.Button("Remove it from what is live", variant="stop", elem_id="remove")
        self.removed = _text("", "removed", "status")
        with gr.Accordion("Rows that were held", open=False):
            self.held_line = _text("", "held-said", "status")
            self.held = gr.Dataframe(
                headers=data_words.HELD_HEADERS,
                label="Held rows, those of the newest chunk first",
                interactive=False,
                wrap=True,
                max_height=420,
                elem_id="held",
            )
        self.one = OnePicture(serving, access)
        with gr.Accordion("Pictures of one thing", open=False):
            self.things_line = _text("", "things-said", "status")
            self.things = _text("", "things", "cards")
            with gr.Row():
                self.before = gr.Button("Larger ones", interactive=False, elem_id="things-before")
                self.after = gr.Button("More", interactive=False, elem_id="things-after")

    @property
    def _around(self) -> list[Any]:
        return [self.about, self.removing, self.table, self.overview]

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        private = AT_ONCE
        things = [self.first, self.things_line, self.things, self.before, self.after]
        opened = [self.overview, self.table, self.held_line, self.held, self.one.table, *things]
        tab.select(self._opened, None, opened, show_progress="hidden", **private)
        self.table.select(
            self._select,
            [self.table],
            [self.chosen, self.about, self.removing, *self.pairs.components, *self.word.components],
            **private,
        )
        around = [*self._around, *self.pairs.components]
        self.word.connect(self.chosen, around, self._after_word_with_pairs, private)
        waiting = [*self._around, self.held_line, self.held]
        self.pairs.connect(self.chosen, waiting, self._after_decision, private)
        watched = [self.job, self.timer, self.removed, self.remove]
        self.remove.click(self._remove, [self.chosen, self.word.why], [*watched, self.word.said], **private)
        self.timer.tick(
            self._watch,
            [self.job, self.chosen],
            [*watched, *self._around, *self.word.components],
            show_progress="hidden",
            **private,
        )
        self.one.connect(private)
        self.before.click(self._earlier, [self.first], things, **private)
        self.after.click(self._later, [self.first], things, **private)

    # Looking

    def _opened(self, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
        except OWN_ERRORS as error:
            return wording.refusal(error, words_of(request)), *([gr.skip()] * 9)
        say = words_of(request)
        return *self._all(say), *self._waiting(say), self.one.listed(say), *self._things(0, request)

    def _waiting(self, say: Words) -> Outputs:
        """What is said of held rows, and their table."""
        total, rows = inventory.held_rows(self.serving.workspace, limit=_HELD_SHOWN)
        table = filled(data_words.HELD_HEADERS, data_words.held_rows(rows, say), say)
        return data_words.held_line(total, len(rows), say), gr.Dataframe(table, visible=bool(rows))

    def _all(self, say: Words) -> Outputs:
        """What is said of all chunks, and their table."""
        workspace = self.serving.workspace
        chunks = workspace.catalog.chunks()[::-1]
        total, _ = inventory.held_rows(workspace, limit=0)
        said = data_words.overview(
            chunks, len(workspace.catalog.gallery_ids()), len(inventory.waiting(workspace)), total, say
        )
        rows = data_words.chunk_rows(chunks, self._taught(), say)
        return said, filled(data_words.CHUNK_HEADERS, rows, say)

    def _taught(self) -> tuple[str, ...]:
        live = self.serving.live()
        return live.release.manifest.chunks if live is not None else ()

    def _select(self, values: list[list[str]], request: gr.Request, event: gr.SelectData) -> Outputs:
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        try:
            self.access.admin(request)
            record = self.serving.workspace.catalog.chunk(str(values[row][0]))
        except OWN_ERRORS as error:
            kept = [gr.skip()] * (len(self.pairs.components) + len(self.word.components))
            return (
                "",
                wording.refusal(error, words_of(request)),
                gr.Column(visible=False),
                *kept,
            )
        pairs = self._pairs_of(record, request)
        return record.id, *self._chunk(record, request), *pairs, *self.word.shown(record)

    def _chunk(self, record: ChunkRecord, request: gr.Request) -> Outputs:
        workspace = self.serving.workspace
        learned = [one.id for one in workspace.releases.releases() if record.id in one.manifest.chunks]
        view = data_words.chunk_view(
            record,
            learned,
            inventory.samples(workspace, record.id, _SAMPLES),
            wording.base_address(*base_of(request)),
            words_of(request),
        )
        return view, gr.Column(visible=record.id in self._taught())

    def _after_word(self, record: ChunkRecord, request: gr.Request) -> Outputs:
        said, rows = self._all(words_of(request))
        return *self._chunk(record, request), rows, said

    def _after_word_with_pairs(self, record: ChunkRecord, request: gr.Request) -> Outputs:
        return *self._after_word(record, request), *self._pairs_of(record, request)

    def _pairs_of(self, record: ChunkRecord, request: gr.Request) -> Outputs:
        return self.pairs.shown(record, wording.base_address(*base_of(request)), say=words_of(request))

    def _after_decision(self, record: ChunkRecord, request: gr.Request) -> Outputs:
        return *self._after_word(record, request), *self._waiting(words_of(request))

    # Removing

    def _remove(self, chunk: str, why: str, request: gr.Request) -> Outputs:
        try:
            job = deciding.remove(self.serving, chunk, why=why, by=self.access.admin(request).name)
        except OWN_ERRORS as error:
            return (
                "",
                gr.Timer(active=False),
                wording.refusal(error, words_of(request)),
                gr.skip(),
                gr.skip(),
            )
        said = data_words.removal_view(job, words_of(request))
        return job.id, gr.Timer(active=True), said, gr.Button(interactive=False), ""

    def _watch(self, job_id: str, chunk: str, request: gr.Request) -> Outputs:
        kept = [gr.skip()] * (1 + len(self._around) + len(self.word.components))
        try:
            self.access.admin(request)
            job = self.serving.workspace.catalog.job(job_id)
            record = self.serving.workspace.catalog.chunk(chunk)
        except OWN_ERRORS as error:
            return "", gr.Timer(active=False), wording.refusal(error, words_of(request)), *kept
        said = data_words.removal_view(job, words_of(request))
        if job.state not in FINAL_STATES:
            return job.id, gr.skip(), said, *kept
        self.serving.refresh()
        ended = "", gr.Timer(active=False), said, gr.Button(interactive=True)
        return *ended, *self._after_word(record, request), *self.word.shown(record)

    # Pictures of one thing

    def _earlier(self, first: int, request: gr.Request) -> Outputs:
        return self._things(max(0, first - _THINGS_SHOWN), request)

    def _later(self, first: int, request: gr.Request) -> Outputs:
        return self._things(first + _THINGS_SHOWN, request)

    def _things(self, first: int, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
        except OWN_ERRORS as error:
            return gr.skip(), wording.refusal(error, words_of(request)), *([gr.skip()] * 3)
        total, found = inventory.things(self.serving.workspace, limit=_THINGS_SHOWN, offset=first)
        return (
            first,
            data_words.things_line(total, first, len(found), words_of(request)),
            data_words.things_view(found, wording.base_address(*base_of(request)), words_of(request)),
            gr.Button(interactive=first > 0),
            gr.Button(interactive=first + len(found) < total),
        )


def _text(value: str, elem_id: str, classes: str) -> gr.Markdown:
    return gr.Markdown(value, elem_id=elem_id, elem_classes=classes, latex_delimiters=[])
