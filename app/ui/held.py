"""Held and rejected pairs of one chunk with their pictures, and a person's decision on single held ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from app.desk.chunks import PutAside
from app.learning import inventory
from app.server import deciding
from app.server.serving import OWN_ERRORS, Serving
from app.ui import held_words, wording
from app.ui.access import Access, base_of
from app.ui.words import ENGLISH, Words, words_of
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase

_SHOWN = 12
Outputs = tuple[Any, ...]
Shown = Callable[[ChunkRecord, gr.Request], Outputs]
"""What the components around show of a chunk."""


class HeldPairs:
    """The cards, the boxes to tick, and what happens on them; hidden while a chunk has no such pair."""

    def __init__(self, serving: Serving, access: Access, name: str = "") -> None:
        """Draws them; call where they are to stand.

        Args:
            serving: does what the buttons say.
            access: knows who may press them.
            name: begins the ids of the components, where a page has them twice.
        """
        self.serving = serving
        self.access = access
        self.first = gr.State(0)
        with gr.Accordion(
            "Held and rejected pairs, with their pictures", visible=False, elem_id=f"{name}aside"
        ) as self.box:
            gr.Markdown(held_words.HELP, elem_classes="notice")
            self.which = gr.Radio(
                held_words.choices(dict.fromkeys(("waiting", "accepted", "left_out", "rejected"), 0), 0),
                value="waiting",
                label="Which pairs",
                elem_id=f"{name}aside-which",
            )
            self.cards = _text(f"{name}aside-cards", "cards pairs")
            self.line = _text(f"{name}aside-line", "status")
            with gr.Row(visible=False) as self.turning:
                self.before = gr.Button("Earlier ones", interactive=False, elem_id=f"{name}aside-before")
                self.after = gr.Button("More", interactive=False, elem_id=f"{name}aside-after")
            with gr.Group(visible=False) as self.deciding:
                self.chosen = gr.CheckboxGroup(
                    [], label="Pairs to decide", show_select_all=True, elem_id=f"{name}aside-chosen"
                )
                self.language = gr.Textbox(
                    label="Language of captions that do not say",
                    placeholder="de",
                    max_length=40,
                    elem_id=f"{name}aside-language",
                )
                self.why = gr.Textbox(
                    label="Your note",
                    placeholder="Kept with your name",
                    max_length=500,
                    elem_id=f"{name}aside-why",
                )
            with gr.Row(visible=False) as self.buttons:
                self.accept = gr.Button("Accept the ticked pairs", elem_id=f"{name}aside-accept")
                self.leave = gr.Button("Leave the ticked pairs out", elem_id=f"{name}aside-leave")
        self.said = _text(f"{name}aside-said", "status")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [self.box, self.which, *self._page_parts, self.why, self.said]

    @property
    def _page_parts(self) -> list[Any]:
        return [
            self.first, self.cards, self.line, self.turning, self.before, self.after,
            self.deciding, self.chosen, self.language, self.buttons, self.accept,
        ]  # fmt: skip

    def shown(self, chunk: ChunkRecord, base: str, said: str = "", say: Words = ENGLISH) -> Outputs:
        """Returns what is shown of a chunk, those first that wait.

        Args:
            chunk: as the catalog has it now.
            base: address that the browser reached us by.
            said: what became of the last decision.
            say: the words.
        """
        found = inventory.put_aside(self.serving.workspace, chunk.id)
        which = next((one for one in held_words.WHICH if _count(found, one)), "waiting")
        there = bool(found.pairs or found.questioned)
        return (
            gr.Accordion(visible=there and chunk.standing != "withdrawn"),
            gr.Radio(choices=held_words.choices(found.counts, len(found.questioned), say), value=which),
            *self._page(found, which, 0, base, say),
            gr.Textbox(value=""),
            said,
        )

    def connect(self, chunk: gr.State, around: Sequence[Any], shown: Shown, private: dict[str, Any]) -> None:
        """Connects the components.

        Args:
            chunk: the id of the chunk that is shown.
            around: the other components that show the chunk.
            shown: what they show of it.
            private: how Gradio is to call functions of admins.
        """
        self._shown_around, self._around = shown, list(around)
        page = [*self._page_parts, self.said]
        asked = [chunk, self.which, self.first]
        self.which.input(self._turn(0, from_start=True), asked, page, **private)
        self.before.click(self._turn(-_SHOWN), asked, page, **private)
        self.after.click(self._turn(_SHOWN), asked, page, **private)
        outputs = [*self.components, *self._around]
        said = [chunk, self.which, self.chosen, self.language, self.why]
        self.accept.click(self._accept, said, outputs, **private)
        self.leave.click(self._leave_out, said, outputs, **private)

    def _turn(self, by: int, *, from_start: bool = False) -> Callable[..., Outputs]:
        def turn(chunk: str, which: str, first: int, request: gr.Request) -> Outputs:
            say = words_of(request)
            try:
                self.access.admin(request)
                found = inventory.put_aside(self.serving.workspace, chunk)
            except OWN_ERRORS as error:
                return *([gr.skip()] * len(self._page_parts)), wording.refusal(error, say)
            begin = 0 if from_start else max(0, first + by)
            return *self._page(found, which, begin, wording.base_address(*base_of(request)), say), ""

        return turn

    def _page(self, found: PutAside, which: str, first: int, base: str, say: Words) -> Outputs:
        total = _count(found, which)
        if which == "questioned":
            named = found.questioned[first : first + _SHOWN]
            cards, labels = held_words.questioned_cards(named, base, say), held_words.questioned_labels(named)
            shown, is_silent = len(named), False
        else:
            part = found.of(which)[first : first + _SHOWN]
            open_ones = [pair for pair in part if pair.outcome == "held" and pair.decided != "accepted"]
            cards, labels = held_words.cards(part, base, say), held_words.labels(open_ones, say)
            shown, is_silent = len(part), any(not pair.language for pair in open_ones)
        line = held_words.line(which, total, first, shown, say)
        return (
            first,
            cards,
            gr.Markdown(line, visible=bool(line)),
            gr.Row(visible=total > _SHOWN),
            gr.Button(interactive=first > 0),
            gr.Button(interactive=first + shown < total),
            gr.Group(visible=bool(labels)),
            gr.CheckboxGroup(choices=labels, value=[]),
            gr.Textbox(visible=is_silent),
            gr.Row(visible=bool(labels)),
            gr.Button(visible=which != "questioned"),
        )

    def _accept(
        self,
        chunk: str,
        which: str,
        chosen: list[str],
        language: str | None,
        why: str | None,
        request: gr.Request,
    ) -> Outputs:
        return self._decide(chunk, {"accept": chosen}, language, why, request)

    def _leave_out(
        self,
        chunk: str,
        which: str,
        chosen: list[str],
        language: str | None,
        why: str | None,
        request: gr.Request,
    ) -> Outputs:
        what = "take_out" if which == "questioned" else "leave_out"
        return self._decide(chunk, {what: chosen}, language, why, request)

    def _decide(
        self,
        chunk: str,
        ticked: dict[str, list[str]],
        language: str | None,
        why: str | None,
        request: gr.Request,
    ) -> Outputs:
        say = words_of(request)
        numbers = {what: [int(one) for one in ids or [] if one.isdecimal()] for what, ids in ticked.items()}
        try:
            by = self.access.admin(request).name
            decided, job = deciding.decide(
                self.serving,
                chunk,
                by=by,
                language=(language or "").strip() or None,
                why=why or "",
                **numbers,
            )
        except OWN_ERRORS as error:
            kept = [gr.skip()] * (len(self.components) - 1)
            return *kept, wording.refusal(error, say), *([gr.skip()] * len(self._around))
        checking = (
            phrase("Job {job} makes new pictures searchable and checks the chunk again.", job=job.id)
            if job
            else ""
        )
        said = wording.refusal(joined((decided.sentence, checking)), say)
        shown = self.shown(decided.chunk, wording.base_address(*base_of(request)), said, say)
        return *shown, *self._shown_around(decided.chunk, request)


def _count(found: PutAside, which: str) -> int:
    return len(found.questioned) if which == "questioned" else len(found.of(which))


def _text(elem_id: str, classes: str) -> gr.Markdown:
    return gr.Markdown("", elem_id=elem_id, elem_classes=classes.split(), latex_delimiters=[])
