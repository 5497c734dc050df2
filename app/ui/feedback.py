"""The Feedback tab: what people said of answers, canaries made of it, and the chunk that it proposes."""

from __future__ import annotations

import gradio as gr

from app.desk.errors import UnknownFeedback, UsageProblem
from app.desk.hits import SearchRequest
from app.ui import feedback_words as words
from app.ui.access import Access, Shown, Visit
from app.ui.drawn import drawing, drawn
from app.ui.events import AT_ONCE
from app.ui.grid import picture_grid, shown
from app.ui.parts import text
from app.ui.read_table import ReadTable
from ingest.errors import UnknownImage
from ingest.sentence import phrase

_CANDIDATES = 12
_MOST = 10_000


def add_feedback_tab(access: Access, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _FeedbackTab(access).connect(tab)


class _FeedbackTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.number = gr.State(0)
        self.pictures = gr.State([])
        self.picture = gr.State("")
        self.canary = gr.State(("", ""))
        self._draw_proposal()
        gr.Markdown("## Votes between releases", elem_classes="section")
        self.votes = drawing("feedback-votes")
        gr.Markdown("## What people said, newest first", elem_classes="section")
        self.said = text("feedback-said", "status")
        self.table = ReadTable(
            "feedback-table", phrase("Ratings and votes"), words.HEADERS, picks=[0], height=360
        )
        self._draw_chosen()
        with gr.Accordion(
            "Canaries: queries whose first answer updates must keep", open=False, elem_id="canary-list"
        ):
            self.pins = ReadTable("canaries", phrase("Canaries"), words.PIN_HEADERS, picks=[0, 1], height=360)
            self.canary_said = text("canary-said", "status", words.CHOOSE_CANARY)
            self.take_away = gr.Button("Remove this canary", interactive=False, elem_id="canary-remove")

    def _draw_proposal(self) -> None:
        gr.Markdown("## The proposed chunk", elem_classes="section")
        self.proposed = text("proposal-said", "status")
        self.pair_grid = picture_grid("proposal-pictures", visible=False)
        self.pairs = gr.CheckboxGroup(
            [], label="Pairs that stay", visible=False, elem_id="proposal-pairs", elem_classes="pairs"
        )
        self.take = gr.Button(
            "Add these pairs as a chunk", variant="primary", visible=False, elem_id="proposal-take"
        )

    def _draw_chosen(self) -> None:
        with gr.Column(visible=False, elem_id="feedback-chosen") as self.chosen:
            self.about = text("feedback-about")
            self.grid = picture_grid("feedback-pictures")
            self.pin = gr.Button("Make the chosen picture a canary", elem_id="feedback-pin")

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        of_admin, on_row = self.access.of_admin, self.access.on_row
        proposal = [self.proposed, self.pair_grid, self.pairs, self.take]
        everything = [*proposal, self.votes, self.said, self.table.drawn, self.pins.drawn]
        everything_of = of_admin(self._everything, self.proposed)
        tab.select(everything_of, None, everything, show_progress="hidden", **AT_ONCE)
        one = [self.chosen, self.about, self.grid, self.number, self.pictures, self.picture]
        missing = {self.chosen: gr.update(visible=True), self.number: 0, self.pictures: [], self.picture: ""}
        self.table.connect(on_row(self._choose, self.about, missing), [], one)
        self.grid.select(self._pick, [self.pictures], [self.picture], show_progress="hidden", **AT_ONCE)
        pinned = [self.about, self.pins.drawn]
        self.pin.click(of_admin(self._pin, self.about), [self.number, self.picture], pinned, **AT_ONCE)
        canary = [self.canary_said, self.take_away, self.canary]
        self.pins.connect(on_row(self._choose_canary, self.canary_said), [], canary)
        remove = of_admin(self._remove_canary, self.canary_said)
        self.take_away.click(remove, [self.canary], [*canary, self.pins.drawn], **AT_ONCE)
        taken = [self.proposed, self.take]
        self.take.click(of_admin(self._take, self.proposed), [self.pairs], taken, **AT_ONCE)

    def _everything(self, visit: Visit) -> Shown:
        found, say = visit.desk.feedback(_MOST), visit.say
        return {
            **self._proposal(visit),
            self.votes: drawn(words.votes_view(found.votes, say)),
            self.said: words.said_line(len(found.feedback), say),
            self.table.drawn: self.table.of(words.rows(found.feedback, say), say),
            **self._pins(visit),
        }

    def _pins(self, visit: Visit) -> Shown:
        return {self.pins.drawn: self.pins.of(words.pin_rows(visit.desk.canaries()), visit.say)}

    def _proposal(self, visit: Visit) -> Shown:
        found, say = visit.desk.proposal(), visit.say
        pairs = found.pairs[: words.MOST_PAIRS]
        choices = [(words.pair_label(pair, number, say), pair.id) for number, pair in enumerate(pairs, 1)]
        is_any = bool(pairs)
        return {
            self.proposed: words.proposal_line(found, say),
            self.pair_grid: shown(words.pair_pictures(pairs, visit.base), visible=is_any),
            self.pairs: gr.update(choices=choices, value=[pair.id for pair in pairs], visible=is_any),
            self.take: gr.update(visible=is_any),
        }

    def _choose(self, visit: Visit, cells: list[str]) -> Shown:
        said = {one.id: one for one in visit.desk.feedback(_MOST).feedback}
        record = said.get(int(cells[0]))
        if record is None:  # a newer word has taken its place
            raise UnknownFeedback(f"There is no feedback {cells[0]}.")
        answer = visit.desk.search(SearchRequest(text=record.query, k=_CANDIDATES))
        captions = {hit.id: hit.captions[0].text for hit in answer.hits if hit.captions}
        if record.image_id and record.image_id not in captions:
            captions[record.image_id] = _caption(visit, record.image_id)
        ids = [hit.id for hit in answer.hits]
        found = words.candidates(record, ids, captions, visit.base, visit.say)
        return {
            self.chosen: gr.update(visible=True),
            self.about: words.chosen_line(record, visit.say),
            self.grid: shown([picture for _, picture in found]),
            self.number: record.id,
            self.pictures: [image_id for image_id, _ in found],
            self.picture: record.image_id if record.verdict == "up" else "",
        }

    def _pick(self, pictures: list[str], event: gr.SelectData) -> str:
        place = event.index if isinstance(event.index, int) else -1
        return pictures[place] if 0 <= place < len(pictures) else ""

    def _pin(self, visit: Visit, number: int, picture: str) -> Shown:
        if not picture:
            raise UsageProblem(words.CHOOSE_PICTURE)
        pinned = visit.desk.pin_feedback(number, picture)
        return {self.about: words.pinned_line(pinned, visit.say), **self._pins(visit)}

    def _choose_canary(self, visit: Visit, cells: list[str]) -> Shown:
        query, language = str(cells[0]), str(cells[1])
        return {
            self.canary_said: words.chosen_canary_line(query, language, visit.say),
            self.take_away: gr.update(interactive=True),
            self.canary: (query, language),
        }

    def _remove_canary(self, visit: Visit, canary: tuple[str, str]) -> Shown:
        gone = visit.desk.remove_canary(*canary)
        return {
            self.canary_said: words.removed_canary_line(gone, visit.say),
            self.take_away: gr.update(interactive=False),
            self.canary: ("", ""),
            **self._pins(visit),
        }

    def _take(self, visit: Visit, pairs: list[str]) -> Shown:
        job = visit.desk.take_proposal(pairs)
        line = words.taken_line(job.id, len(pairs), visit.say)
        return {self.proposed: line, self.take: gr.update(visible=False)}


def _caption(visit: Visit, image_id: str) -> str:
    """Returns a caption of a picture; empty where it has none, or is gone."""
    try:
        return next((one.text for one in visit.desk.item(image_id).captions), "")
    except UnknownImage:
        return ""
