"""One picture on the Data tab: what is known of it, taking it out of everything, and putting it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.desk.errors import UsageProblem
from app.desk.pictures import Item, ItemResults, TakenOut
from app.desk.troubles import OWN_ERRORS
from app.ui import wording
from app.ui.access import Access, Shown, Visit
from app.ui.read_table import ReadTable
from app.ui.words import ENGLISH, Words
from ingest.sentence import phrase

HEADERS = ["picture", "taken out", "by", "why"]
HELP = phrase(
    "A picture that is taken out no longer appears in any answer of any release, and is not used for training "
    "or measuring. If it is uploaded again, it is left out. What was learned from it stays learned. You can "
    "put it back."
)
_ID_SHOWN = 24


class OnePicture:
    """The box for an id, what it shows, and the two buttons."""

    def __init__(self, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.access = access
        with gr.Accordion("Take out or put back a picture", open=False, elem_id="one-picture"):
            gr.Markdown(HELP, elem_classes="notice")
            with gr.Row():
                self.name = gr.Textbox(
                    label="Picture id, or the beginning of it",
                    placeholder="3f9a1c0b",
                    max_length=80,
                    scale=6,
                    elem_id="picture-id",
                )
                self.look = gr.Button("Show", scale=1, min_width=110, elem_id="picture-look")
            self.view = _text("picture-view", "strip")
            self.why = gr.Textbox(
                label="Reason",
                placeholder="Saved with your name",
                max_length=500,
                elem_id="picture-why",
            )
            with gr.Row():
                self.out = gr.Button("Take it out", variant="stop", elem_id="picture-out")
                self.back = gr.Button("Put it back", elem_id="picture-back")
            self.said = _text("picture-said", "status")
            latest_first = phrase("Pictures that were taken out, latest first")
            self.table = ReadTable("withheld", latest_first, HEADERS, picks=[0], height=320, visible=False)

    def connect(self, private: dict[str, Any]) -> None:
        """Connects them with what happens on them."""
        of_admin, shown = self.access.of_admin, [self.view, self.said, self.table.drawn]
        look = of_admin(self._look, self.said, {self.view: ""})
        gr.on([self.look.click, self.name.submit], look, [self.name], shown, **private)
        for button, act in ((self.out, self._take_out), (self.back, self._put_back)):
            done = of_admin(act, self.said)
            button.click(done, [self.name, self.why], [*shown, self.why], **private)
        chosen = self.access.on_row(self._chosen, self.said, {self.view: ""})
        self.table.connect(chosen, [], [self.name, *shown])

    def listed(self, visit: Visit) -> Any:
        """Returns the table of those that are out."""
        found = visit.desk.taken_out()
        return gr.update(value=self.table.of(rows(found), visit.say), visible=bool(found))

    def _look(self, visit: Visit, name: str) -> Shown:
        return {self.view: _view(visit, name), self.said: "", self.table.drawn: self.listed(visit)}

    def _chosen(self, visit: Visit, cells: list[str]) -> Shown:
        return {self.name: cells[0], **self._look(visit, cells[0])}

    def _take_out(self, visit: Visit, name: str, why: str) -> Shown:
        done, nothing = (
            phrase("It is taken out and no longer shown anywhere."),
            phrase("It was already taken out."),
        )
        return self._changed(visit, name, visit.desk.take_out([name], why), done, nothing)

    def _put_back(self, visit: Visit, name: str, _: str) -> Shown:
        done = phrase("It is back, and can be searched in a moment.")
        return self._changed(visit, name, visit.desk.put_back([name]), done, "")

    def _changed(self, visit: Visit, name: str, became: ItemResults, done: str, nothing: str) -> Shown:
        (result,) = became.results
        if result.error is not None:
            raise UsageProblem(result.error)
        try:
            view = _view(visit, name)
        except OWN_ERRORS:  # its chunk was withdrawn meanwhile, and nothing is to be seen
            view = ""
        said = f"**{visit.say.said(done if result.changed else nothing)}**"
        return {self.view: view, self.said: said, self.table.drawn: self.listed(visit), self.why: ""}


def _view(visit: Visit, name: str) -> str:
    return picture_view(visit.desk.item(name), visit.base, visit.say)


def picture_view(known: Item, base: str, say: Words = ENGLISH) -> str:
    """Returns a picture with all its captions, and who took it out if somebody did; nothing in it is markup."""
    spoken = [f"`{one.language}` {wording.escaped(one.text)}" for one in known.captions]
    if out := known.withheld:
        who = say("Taken out by {by}, {when}: {why}", by=out.by, when=_when(out), why=out.why)
        spoken = [wording.escaped(who)]
    lines = [
        f"![{say('Id')}]({base}{known.thumb_url})",
        f"`{known.id[:_ID_SHOWN]}` · {wording.escaped(known.domain)} · {known.chunk}",
        *(spoken or [say("This picture has none.")]),
    ]
    return "  \n".join(lines)


def _when(out: TakenOut) -> str:
    return f"{out.since[:16].replace('T', ' ')} UTC"


def rows(found: Sequence[TakenOut]) -> list[list[str]]:
    """Returns a row for each picture that is out."""
    return [[one.id[:_ID_SHOWN], _when(one), one.by, one.why] for one in found]


def _text(elem_id: str, classes: str) -> gr.Markdown:
    return gr.Markdown("", elem_id=elem_id, elem_classes=classes, latex_delimiters=[])
