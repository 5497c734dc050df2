"""Held and rejected pairs of one chunk with their pictures, and a person's decision on single held ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from app.desk.chunks import PutAside
from app.ui import held_words
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.word import About
from app.ui.wording import refusal
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase

_SHOWN = 12


class HeldPairs:
    """The cards, the boxes to tick, and what happens on them; hidden while a chunk has no such pair."""

    def __init__(self, access: Access, name: str = "", *, is_open: bool = True) -> None:
        """Draws them; call where they are to stand. `name` begins their ids, where a page has them twice."""
        self.access = access
        self.first = gr.State(0)
        with gr.Accordion(
            "Held and rejected pairs, with their pictures",
            open=is_open,
            visible=False,
            elem_id=f"{name}aside",
        ) as self.box:
            gr.Markdown(held_words.HELP, elem_classes="notice")
            self.which = gr.Radio(
                held_words.choices(dict.fromkeys(("waiting", "accepted", "left_out", "rejected"), 0), 0),
                value="waiting",
                label="Show",
                elem_id=f"{name}aside-which",
            )
            self.cards = text(f"{name}aside-cards", "cards pairs")
            self.line = text(f"{name}aside-line", "status")
            with gr.Row(visible=False) as self.turning:
                self.before = gr.Button("Previous", interactive=False, elem_id=f"{name}aside-before")
                self.after = gr.Button("Next", interactive=False, elem_id=f"{name}aside-after")
            with gr.Group(visible=False) as self.deciding:
                self.chosen = gr.CheckboxGroup(
                    [], label="Pairs to decide", show_select_all=True, elem_id=f"{name}aside-chosen"
                )
                self.language = gr.Textbox(
                    label="Language, where captions state none",
                    placeholder="de",
                    max_length=40,
                    elem_id=f"{name}aside-language",
                )
                self.why = gr.Textbox(
                    label="Your note",
                    placeholder="Saved with your name",
                    max_length=500,
                    elem_id=f"{name}aside-why",
                )
            with gr.Row(visible=False) as self.buttons:
                self.accept = gr.Button("Accept selected pairs", elem_id=f"{name}aside-accept")
                self.leave = gr.Button("Leave out selected pairs", elem_id=f"{name}aside-leave")
        self.said = text(f"{name}aside-said", "status", visible=False)

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        return [self.box, self.which, *self._page_parts, self.why, self.said]

    @property
    def _page_parts(self) -> list[Any]:
        return [
            self.first, self.cards, self.line, self.turning, self.before, self.after,
            self.deciding, self.chosen, self.language, self.buttons, self.accept,
        ]  # fmt: skip

    def shown(self, visit: Visit, chunk: ChunkRecord, said: str = "") -> Shown:
        """Returns what is shown of a chunk, those first that wait, and what became of the last decision."""
        found = visit.desk.put_aside(chunk.id)
        which = next((one for one in held_words.WHICH if _count(found, one)), "waiting")
        there = bool(found.pairs or found.questioned) and chunk.standing != "withdrawn"
        choices = held_words.choices(found.counts, len(found.questioned), visit.say)
        return {
            self.box: gr.update(visible=there),
            self.which: gr.update(choices=choices, value=which),
            **self._page(visit, found, which, 0),
            self.why: "",
            self.said: gr.update(value=said, visible=bool(said)),
        }

    def connect(self, chunk: gr.State, around: Sequence[Any], about: About) -> None:
        """Connects the components.

        Args:
            chunk: the id of the chunk that is shown.
            around: the other components that show the chunk.
            about: what they show of it.
        """
        self._about = about
        of_admin, asked, page = self.access.of_admin, [chunk, self.which, self.first], self._page_parts
        turns = ((self.which.input, 0), (self.before.click, -_SHOWN), (self.after.click, _SHOWN))
        for on, by in turns:
            on(of_admin(self._turn(by), self.said), asked, [*page, self.said], **AT_ONCE)
        given = [chunk, self.which, self.chosen, self.language, self.why]
        for button, act in ((self.accept, self._accept), (self.leave, self._leave_out)):
            button.click(of_admin(act, self.said), given, [*self.components, *around], **AT_ONCE)

    def _turn(self, by: int) -> Callable[..., Shown]:
        """Returns what turns the pages by so many pairs, or with 0 to the first one."""

        def turn(visit: Visit, chunk: str, which: str, first: int) -> Shown:
            begin = max(0, first + by) if by else 0
            return {**self._page(visit, visit.desk.put_aside(chunk), which, begin), self.said: ""}

        return turn

    def _page(self, visit: Visit, found: PutAside, which: str, first: int) -> Shown:
        total, say = _count(found, which), visit.say
        if which == "questioned":
            named = found.questioned[first : first + _SHOWN]
            cards = held_words.questioned_cards(named, visit.base, say)
            labels, shown, is_silent = held_words.questioned_labels(named), len(named), False
        else:
            part = found.of(which)[first : first + _SHOWN]
            open_ones = [pair for pair in part if pair.outcome == "held" and pair.decided != "accepted"]
            cards, labels = held_words.cards(part, visit.base, say), held_words.labels(open_ones, say)
            shown, is_silent = len(part), any(not pair.language for pair in open_ones)
        line = held_words.line(which, total, first, shown, say)
        return {
            self.first: first,
            self.cards: cards,
            self.line: gr.update(value=line, visible=bool(line)),
            self.turning: gr.update(visible=total > _SHOWN),
            self.before: gr.update(interactive=first > 0),
            self.after: gr.update(interactive=first + shown < total),
            self.deciding: gr.update(visible=bool(labels)),
            self.chosen: gr.update(choices=labels, value=[]),
            self.language: gr.update(visible=is_silent),
            self.buttons: gr.update(visible=bool(labels)),
            self.accept: gr.update(visible=which != "questioned"),
        }

    def _accept(
        self, visit: Visit, chunk: str, _which: str, chosen: list[str], language: str | None, why: str | None
    ) -> Shown:
        return self._decide(visit, chunk, "accept", chosen, language, why)

    def _leave_out(
        self, visit: Visit, chunk: str, which: str, chosen: list[str], language: str | None, why: str | None
    ) -> Shown:
        what = "take_out" if which == "questioned" else "leave_out"
        return self._decide(visit, chunk, what, chosen, language, why)

    def _decide(
        self, visit: Visit, chunk: str, what: str, ticked: list[str], language: str | None, why: str | None
    ) -> Shown:
        numbers: dict[str, Any] = {what: [int(one) for one in ticked or [] if one.isdecimal()]}
        language = (language or "").strip() or None
        decided = visit.desk.decide(chunk, language=language, why=why or "", **numbers)
        checking = (
            phrase("Job {job} makes new pictures searchable and checks the chunk again.", job=decided.job.id)
            if decided.job
            else ""
        )
        said = refusal(joined((decided.sentence, checking)), visit.say)
        return {**self.shown(visit, decided.chunk, said), **self._about(visit, decided.chunk)}


def _count(found: PutAside, which: str) -> int:
    return len(found.questioned) if which == "questioned" else len(found.of(which))
