"""The Data tab: chunks and a person's word on them, what waits for a decision, near-copies, removing a chunk."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.desk.chunks import Chunk
from app.ui import data_words
from app.ui.access import Access, Shown, Visit
from app.ui.domain_name import DomainName
from app.ui.events import AT_ONCE
from app.ui.held import HeldPairs
from app.ui.one_picture import OnePicture
from app.ui.parts import text
from app.ui.read_table import ReadTable
from app.ui.word import PersonsWord
from ingest.records import FINAL_STATES, ChunkRecord, JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.5
_HELD_SHOWN = 200
_THINGS_SHOWN = 12


def add_data_tab(access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _DataTab(access).connect(tab)


class _DataTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.chosen = gr.State("")
        self.job = gr.State("")
        self.first = gr.State(0)
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        self.overview = text("data-overview", "status")
        self.table = ReadTable(
            "chunks", phrase("All chunks, newest first"), data_words.CHUNK_HEADERS, picks=[0]
        )
        self.about = text("chunk-about", "strip", phrase("Select a chunk to see what it holds."))
        self.pairs = HeldPairs(access, name="data-")
        self.word = PersonsWord(access, name="data-")
        self.naming = DomainName(access)
        with gr.Column(visible=False) as self.removing:
            gr.Markdown(data_words.REMOVE_HELP, elem_classes="notice")
            self.remove = gr.Button("Remove it from the live release", variant="stop", elem_id="remove")
        self.removed = text("removed", "status")
        with gr.Accordion("Held rows", open=False):
            self.held_line = text("held-said", "status")
            newest_first = phrase("Held rows, newest chunk first")
            self.held = ReadTable("held", newest_first, data_words.HELD_HEADERS)
        with gr.Accordion("Built-in checks", open=False, elem_id="built-in"):
            self.built_in = text("built-in-said", "tables")
        self.one = OnePicture(access)
        with gr.Accordion("Near-duplicates", open=False):
            self.things_line = text("things-said", "status")
            self.things = text("things", "cards")
            with gr.Row():
                self.before = gr.Button("Previous", interactive=False, elem_id="things-before")
                self.after = gr.Button("Next", interactive=False, elem_id="things-after")

    @property
    def _around(self) -> list[Any]:
        return [self.about, self.removing, self.table.drawn, self.overview]

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        of_admin, quietly = self.access.of_admin, {**AT_ONCE, "show_progress": "hidden"}
        waiting = [self.held_line, self.held.drawn]
        things = [self.first, self.things_line, self.things, self.before, self.after]
        opened = [self.overview, self.table.drawn, self.built_in, *waiting, self.one.table.drawn, *things]
        tab.select(of_admin(self._opened, self.overview), None, opened, **quietly)
        one = [self.about, self.removing, *self.pairs.components, *self.word.components]
        one += self.naming.components
        missing = {self.chosen: "", self.removing: gr.update(visible=False)}
        select = self.access.on_row(self._select, self.about, missing)
        self.table.connect(select, [], [self.chosen, *one])
        self.word.connect(self.chosen, [*self._around, *self.pairs.components], self._after_word_with_pairs)
        self.pairs.connect(self.chosen, [*self._around, *waiting], self._after_decision)
        self.naming.connect(self.chosen, self._around, self._after_word)
        stopped = {self.job: "", self.timer: gr.update(active=False)}
        watched, asked = [self.job, self.timer, self.removed, self.remove], [self.chosen, self.word.why]
        remove = of_admin(self._remove, self.removed, stopped)
        self.remove.click(remove, asked, [*watched, self.word.said], **AT_ONCE)
        ended = [*watched, *self._around, *self.word.components]
        watch = of_admin(self._watch, self.removed, stopped)
        self.timer.tick(watch, [self.job, self.chosen], ended, **quietly)
        self.one.connect(AT_ONCE)
        for button, by in ((self.before, -_THINGS_SHOWN), (self.after, _THINGS_SHOWN)):
            button.click(of_admin(self._turn(by), self.things_line), [self.first], things, **AT_ONCE)

    # Looking

    def _opened(self, visit: Visit) -> Shown:
        listed = {self.one.table.drawn: self.one.listed(visit)}
        built_in = {self.built_in: data_words.built_in_view(visit.desk.status(probes=True), visit.say)}
        return {**self._all(visit), **self._waiting(visit), **built_in, **listed, **self._things(visit, 0)}

    def _waiting(self, visit: Visit) -> Shown:
        """What is said of held rows, and their table."""
        found, say = visit.desk.held(_HELD_SHOWN), visit.say
        listed = self.held.of(data_words.held_rows(found.rows, say), say)
        return {
            self.held_line: data_words.held_line(found.total, len(found.rows), say),
            self.held.drawn: gr.update(value=listed, visible=bool(found.rows)),
        }

    def _all(self, visit: Visit) -> Shown:
        """What is said of all chunks, and their table."""
        status, held, say = visit.desk.status(), visit.desk.held(limit=0), visit.say
        live = status.live.release if status.live else ""
        taught = visit.desk.release(live).manifest["chunks"] if live else ()
        rows = data_words.chunk_rows(status.chunks, taught, say)
        return {
            self.overview: data_words.overview(
                status.chunks, status.counts["gallery"], len(held.chunks), held.total, say
            ),
            self.table.drawn: self.table.of(rows, say),
        }

    def _select(self, visit: Visit, cells: list[str]) -> Shown:
        chunk = visit.desk.chunk(cells[0])
        pairs, word = self.pairs.shown(visit, chunk), self.word.shown(chunk)
        naming = self.naming.shown(chunk)
        return {self.chosen: chunk.id, **self._chunk(visit, chunk), **pairs, **word, **naming}

    def _chunk(self, visit: Visit, chunk: Chunk) -> Shown:
        is_taught = any(one.live and one.id in chunk.learned for one in visit.desk.releases())
        return {
            self.about: data_words.chunk_view(chunk, visit.base, visit.say),
            self.removing: gr.update(visible=is_taught),
        }

    def _after_word(self, visit: Visit, chunk: ChunkRecord) -> Shown:
        return {**self._chunk(visit, visit.desk.chunk(chunk.id)), **self._all(visit)}

    def _after_word_with_pairs(self, visit: Visit, chunk: ChunkRecord) -> Shown:
        return {**self._after_word(visit, chunk), **self.pairs.shown(visit, chunk)}

    def _after_decision(self, visit: Visit, chunk: ChunkRecord) -> Shown:
        return {**self._after_word(visit, chunk), **self._waiting(visit)}

    # Removing

    def _remove(self, visit: Visit, chunk: str, why: str) -> Shown:
        job = visit.desk.remove(chunk, why)
        started = {self.timer: gr.update(active=True), self.remove: gr.update(interactive=False)}
        return {**self._removal(visit, job), **started, self.word.said: ""}

    def _removal(self, visit: Visit, job: JobRecord) -> Shown:
        return {self.job: job.id, self.removed: data_words.removal_view(job, visit.say)}

    def _watch(self, visit: Visit, job_id: str, chunk: str) -> Shown:
        job = visit.desk.job(job_id)
        if job.state not in FINAL_STATES:
            return self._removal(visit, job)
        record = visit.desk.chunk(chunk)
        ended = {
            self.job: "", self.timer: gr.update(active=False), self.remove: gr.update(interactive=True),
        }  # fmt: skip
        about = {**self._after_word(visit, record), **self.word.shown(record)}
        return {**self._removal(visit, job), **ended, **about}

    # Pictures of one thing

    def _turn(self, by: int) -> Any:
        """Returns what goes on by so many things."""
        return lambda visit, first: self._things(visit, max(0, first + by))

    def _things(self, visit: Visit, first: int) -> Shown:
        found = visit.desk.copies(_THINGS_SHOWN, first)
        last = first + len(found.things)
        return {
            self.first: first,
            self.things_line: data_words.things_line(found.total, first, len(found.things), visit.say),
            self.things: data_words.things_view(found.things, visit.base, visit.say),
            self.before: gr.update(interactive=first > 0),
            self.after: gr.update(interactive=last < found.total),
        }
