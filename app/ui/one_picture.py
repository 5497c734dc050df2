"""One picture on the Data tab: what is known of it, taking it out of everything, and putting it back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from app.learning.pictures import KnownPicture, picture
from app.server import deciding
from app.server.serving import OWN_ERRORS, Serving
from app.ui import wording
from app.ui.access import Access, base_of
from app.ui.words import ENGLISH, Words, filled, words_of
from ingest.pair import ImageId
from ingest.records import JobRecord
from ingest.sentence import phrase
from ingest.withheld import Withheld

HEADERS = ["picture", "taken out", "by", "why"]
HELP = phrase(
    "A picture that is taken out is in no answer any more, of any release, and nothing is taught or measured by it; an "
    "upload that brings it again leaves it out. What was learned from it stays learned. It can be put back."
)
_ID_SHOWN = 24
Outputs = tuple[Any, ...]


class OnePicture:
    """The box for an id, what it shows, and the two buttons."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.serving = serving
        self.access = access
        with gr.Accordion("One picture, and those that were taken out", open=False, elem_id="one-picture"):
            gr.Markdown(HELP, elem_classes="notice")
            with gr.Row():
                self.name = gr.Textbox(
                    label="Id of a picture, or its beginning",
                    placeholder="3f9a1c0b",
                    max_length=80,
                    scale=6,
                    elem_id="picture-id",
                )
                self.look = gr.Button("Show it", scale=1, min_width=110, elem_id="picture-look")
            self.view = _text("picture-view", "strip")
            self.why = gr.Textbox(
                label="Reason",
                placeholder="Kept with your name",
                max_length=500,
                elem_id="picture-why",
            )
            with gr.Row():
                self.out = gr.Button("Take it out", variant="stop", elem_id="picture-out")
                self.back = gr.Button("Put it back", elem_id="picture-back")
            self.said = _text("picture-said", "status")
            self.table = gr.Dataframe(
                headers=HEADERS,
                label="Pictures that were taken out, the latest first",
                interactive=False,
                visible=False,
                wrap=True,
                type="array",
                max_height=320,
                elem_id="withheld",
            )

    def connect(self, private: dict[str, Any]) -> None:
        """Connects them with what happens on them."""
        shown = [self.view, self.said, self.table]
        gr.on([self.look.click, self.name.submit], self._look, [self.name], shown, **private)
        self.out.click(self._take_out, [self.name, self.why], [*shown, self.why], **private)
        self.back.click(self._put_back, [self.name], [*shown, self.why], **private)
        self.table.select(self._chosen, [self.table], [self.name, *shown], **private)

    def listed(self, say: Words) -> Any:
        """Returns the table of those that are out."""
        found = self.serving.workspace.catalog.withheld.all()
        return gr.Dataframe(filled(HEADERS, rows(found), say), visible=bool(found))

    def _look(self, name: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            return self._view(name, request), "", self.listed(say)
        except OWN_ERRORS as error:
            return "", wording.refusal(error, say), gr.skip()

    def _chosen(self, values: list[list[str]], request: gr.Request, event: gr.SelectData) -> Outputs:
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        name = str(values[row][0])
        return name, *self._look(name, request)

    def _take_out(self, name: str, why: str, request: gr.Request) -> Outputs:
        def act() -> tuple[list[ImageId], JobRecord | None]:
            by = self.access.admin(request).name
            return deciding.take_out(self.serving, [name], why=why, by=by)

        return self._changed(
            name, act, phrase("It is out: nothing shows it any more."), phrase("It was out already."), request
        )

    def _put_back(self, name: str, request: gr.Request) -> Outputs:
        def act() -> tuple[list[ImageId], JobRecord | None]:
            return deciding.put_back(self.serving, [name], by=self.access.admin(request).name)

        return self._changed(name, act, phrase("It is back; search has it in a moment."), "", request)

    def _changed(
        self,
        name: str,
        act: Callable[[], tuple[list[ImageId], JobRecord | None]],
        done: str,
        nothing: str,
        request: gr.Request,
    ) -> Outputs:
        say = words_of(request)
        try:
            changed, _ = act()
        except OWN_ERRORS as error:
            return gr.skip(), wording.refusal(error, say), gr.skip(), gr.skip()
        try:
            view = self._view(name, request)
        except OWN_ERRORS:  # its chunk was withdrawn meanwhile, and nothing is to be seen
            view = ""
        return view, f"**{say.said(done if changed else nothing)}**", self.listed(say), ""

    def _view(self, name: str, request: gr.Request) -> str:
        known = picture(self.serving.workspace, name)
        return picture_view(known, wording.base_address(*base_of(request)), words_of(request))


def picture_view(known: KnownPicture, base: str, say: Words = ENGLISH) -> str:
    """Returns a picture with all its captions, and who took it out if somebody did; nothing in it is markup."""
    record = known.record
    spoken = [f"`{one.language}` {wording.escaped(one.text)}" for one in known.captions]
    if known.withheld:
        out = known.withheld
        spoken = [
            wording.escaped(say("Taken out by {by}, {when}: {why}", by=out.by, when=_when(out), why=out.why))
        ]
    facts = f"`{record.id[:_ID_SHOWN]}` · {wording.escaped(record.domain)} · {record.chunk_id}"
    lines = [
        f"![{say('Id')}]({wording.thumbnail_url(base, record.id)})",
        facts,
        *(spoken or [say("This picture has none.")]),
    ]
    return "  \n".join(lines)


def _when(out: Withheld) -> str:
    return f"{out.since[:16].replace('T', ' ')} UTC"


def rows(found: Sequence[Withheld]) -> list[list[str]]:
    """Returns a row for each picture that is out."""
    return [[one.image_id[:_ID_SHOWN], _when(one), one.by, one.why] for one in found]


def _text(elem_id: str, classes: str) -> gr.Markdown:
    return gr.Markdown("", elem_id=elem_id, elem_classes=classes, latex_delimiters=[])
