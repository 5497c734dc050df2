"""The Compare tab: two releases, one query, side by side; blind, with a vote, or many queries at once."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import gradio as gr

from app.feedback import shadow
from app.feedback import votes as feedback
from app.query.snapshot import AUTO, CompareAnswer
from app.server.served import Served
from app.server.serving import OWN_ERRORS, Serving
from app.ui import compare_words as words
from app.ui import wording
from app.ui.access import base_of, person
from app.ui.compare_many import ManyQueries
from app.ui.drawn import Markup, drawing, drawn, tag
from app.ui.drift import Drift
from app.ui.events import AT_ONCE
from app.ui.grid import picture_grid, shown
from app.ui.search_words import language_choices
from app.ui.shadow_plot import shadow_view
from app.ui.words import Words, filled, words_of

_SHOWN = 12
Outputs = tuple[Any, ...]


@dataclass(frozen=True)
class _Round:
    """A blind round: what was asked, and what stands on which side."""

    query: str
    language: str
    compared: CompareAnswer


def add_compare_tab(serving: Serving, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _CompareTab(serving).connect(tab)


class _CompareTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.round = gr.State(None)
        self._draw_question()
        self.status = gr.Markdown(
            words.HINT, elem_classes="empty", elem_id="compare-status", latex_delimiters=[]
        )
        with gr.Row(visible=False, elem_id="votes") as self.voting:
            self.choices = {
                choice: gr.Button(label, elem_id=f"vote-{choice.replace('_', '-')}")
                for choice, label in words.CHOICES.items()
            }
        self.tally = drawing("compare-votes")
        self._draw_answers()
        self.many = ManyQueries(serving)
        self.drift = Drift(serving, "compare-drift", lambda request: person(request).require_admin())
        with gr.Accordion("How far the vectors of two releases have turned", open=False, elem_id="turned"):
            self.drift.draw_button()
            self.drift.draw_found()
        self.table = gr.Dataframe(
            headers=wording.COMPARED_HEADERS,
            label="Recall on held-out pairs, text to image, in percent",
            interactive=False,
            visible=False,
            wrap=True,
            elem_id="compare-slices",
        )
        self.shadow = drawing("compare-shadow", "tables")

    def _draw_question(self) -> None:
        with gr.Row():
            self.left = gr.Dropdown([], label="Release A", elem_id="release-a")
            self.right = gr.Dropdown([], label="Release B", elem_id="release-b")
            self.language = gr.Dropdown([("Any language", AUTO)], value=AUTO, label="Language")
        with gr.Row(equal_height=True, elem_classes="asking"):
            self.query = gr.Textbox(
                placeholder="Ask both releases …",
                show_label=False,
                container=False,
                scale=8,
                max_length=self.serving.settings.max_query_characters,
                elem_classes="query",
                elem_id="compare-query",
            )
            self.go = gr.Button("Compare", variant="primary", scale=1, min_width=120, elem_id="compare-go")
            self.blind = gr.Button("Blind vote", scale=1, min_width=120, elem_id="compare-blind")

    def _draw_answers(self) -> None:
        with gr.Row(visible=False) as self.answers:
            with gr.Column(min_width=300):
                self.first_name = gr.Markdown(elem_classes="side")
                self.first = picture_grid("compare-a")
            with gr.Column(min_width=300):
                self.second_name = gr.Markdown(elem_classes="side")
                self.second = picture_grid("compare-b")

    def connect(self, tab: gr.Tab) -> None:
        """Connects the components with what happens on them."""
        grids = [self.first_name, self.first, self.second_name, self.second]
        shown = [
            self.status,
            self.answers,
            *grids,
            self.table,
            self.shadow,
            self.voting,
            self.tally,
            self.round,
        ]
        asked = [self.left, self.right, self.query, self.language]
        search: dict[str, Any] = {
            **AT_ONCE,
            "show_progress": "minimal",
            "show_progress_on": [self.first, self.second],
        }
        gr.on([self.query.submit, self.go.click], self._ask, asked, shown, **search)
        self.blind.click(self._ask_blind, asked, shown, **search)
        for choice, button in self.choices.items():
            button.click(self._voter(choice), [self.round], shown, **search)
        self.many.connect([self.left, self.right], self.language)
        self.drift.connect(self.left, self.right)
        self.many.table.select(
            self._again,
            [self.many.table, self.left, self.right, self.language],
            [self.query, *shown],
            **search,
        )
        menus = [self.left, self.right, self.language]
        tab.select(self._menus, None, menus, show_progress="hidden", **AT_ONCE)

    def _menus(self, request: gr.Request) -> Outputs:
        say = words_of(request)
        live = self.serving.live_id()
        records = self.serving.releases()
        choices = wording.release_choices(Served(self.serving, person(request)).releases(), say)
        current = next((record for record in records if record.id == live), None)
        others = [record for record in records if current and record.version != current.version] or records
        other = next((record.id for record in others if record.id != live), live)
        spoken = current.manifest.languages if current else ()
        languages = language_choices(current, spoken, say) if current else [(say("Any language"), AUTO)]
        return (
            gr.Dropdown(choices=choices, value=other),
            gr.Dropdown(choices=choices, value=live),
            gr.Dropdown(choices=languages),
        )

    def _ask(self, a: str, b: str, text: str, spoken: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        if not (a and b):
            return _only(say.said(words.CHOOSE))
        if not text.strip():
            return _only(say.said(words.HINT))
        try:
            compared = self.serving.compare(text, a, b, language=spoken, k=_SHOWN)
            return self._named(compared, words.status_line(compared, say), request)
        except OWN_ERRORS as error:
            return _only(wording.refusal(error, say))

    def _again(
        self, rows: list[list[str]], a: str, b: str, spoken: str, request: gr.Request, event: gr.SelectData
    ) -> Outputs:
        row = event.index[0] if isinstance(event.index, (list, tuple)) else event.index
        query = str(rows[row][0])
        return query, *self._ask(a, b, query, spoken, request)

    def _ask_blind(self, a: str, b: str, text: str, spoken: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        if not (a and b):
            return _only(say.said(words.CHOOSE))
        if not text.strip():
            return _only(say.said(words.HINT))
        sides = [a, b]
        random.shuffle(sides)
        try:
            compared = self.serving.compare(text, *sides, language=spoken, k=_SHOWN)
        except OWN_ERRORS as error:
            return _only(wording.refusal(error, say))
        if compared.a.release == compared.b.release:
            return _only(say.said(words.SAME))
        said, base = self._captions(compared), wording.base_address(*base_of(request))
        one, two = (words.blind_pictures(answer, said, base) for answer in (compared.a, compared.b))
        return (
            gr.Markdown(say.said(words.BLIND), elem_classes="status"),
            gr.Row(visible=True),
            words.side_title("A"),
            shown(one),
            words.side_title("B"),
            shown(two),
            gr.Dataframe(visible=False),
            drawn(None),
            gr.Row(visible=True),
            drawn(None),
            _Round(text, spoken, compared),
        )

    def _voter(self, choice: str) -> Any:
        def vote(asked: _Round | None, request: gr.Request) -> Outputs:
            return self._vote(choice, asked, request)

        return vote

    def _vote(self, choice: str, asked: _Round | None, request: gr.Request) -> Outputs:
        say = words_of(request)
        if asked is None:
            return _only(say.said(words.NO_ROUND))
        compared, workspace = asked.compared, self.serving.workspace
        a, b = compared.a.release, compared.b.release
        try:
            feedback.vote(
                workspace,
                query=compared.a.query,
                language=_read_in(asked.language, choice, compared),
                a=a,
                b=b,
                choice=choice,
                by=person(request).name,
            )
            counted = feedback.votes_between(workspace, a, b)
            line = f"{say.said(words.voted_line(choice, a, b))}  \n{words.status_line(compared, say)}"
            outputs = self._named(compared, line, request)
        except OWN_ERRORS as error:
            return _only(wording.refusal(error, say))
        return *outputs[:-2], drawn(words.votes_view(counted, say)), None

    def _named(self, compared: CompareAnswer, line: str, request: gr.Request) -> Outputs:
        """The outputs with the releases' names, moves and slices."""
        a, b = compared.a.release, compared.b.release
        records = [self.serving.workspace.releases.release(name) for name in (a, b)]
        said, base = self._captions(compared), wording.base_address(*base_of(request))
        one, two = wording.compared_pictures(compared, said, base)
        say = words_of(request)
        slices = filled(wording.COMPARED_HEADERS, wording.compared_slices(records[0], records[1], say), say)
        return (
            gr.Markdown(line, elem_classes="status"),
            gr.Row(visible=True),
            words.side_title("A", a),
            shown(one),
            words.side_title("B", b),
            shown(two),
            gr.Dataframe(value=slices, visible=True),
            drawn(self._shadowed(a, b, say)),
            gr.Row(visible=False),
            drawn(None),
            None,
        )

    def _shadowed(self, a: str, b: str, say: Words) -> Markup | None:
        """What either release has shown in the shadow of the other."""
        found = shadow.reports_of_two(self.serving.workspace, a, b)
        return tag("div", [shadow_view(told, say) for told in found]) if found else None

    def _captions(self, compared: CompareAnswer) -> dict[str, str]:
        ids = list(dict.fromkeys(hit.image_id for hit in (*compared.a.hits, *compared.b.hits)))
        found = self.serving.found(ids, compared.b.language.split(" + ")[0], most=1)
        return {image_id: one.captions[0].text for image_id, one in found.items() if one.captions}


def _read_in(language: str, choice: str, compared: CompareAnswer) -> str:
    """The language that a vote is kept with: as told, or as the preferred release read the query."""
    answer = compared.a if choice == "a" else compared.b
    return language if language != AUTO else answer.language.split(" + ")[0]


def _only(line: str) -> Outputs:
    """The outputs when there is nothing to compare."""
    return (
        gr.Markdown(line, elem_classes="empty"),
        gr.Row(visible=False),
        "",
        shown([]),
        "",
        shown([]),
        gr.Dataframe(visible=False),
        drawn(None),
        gr.Row(visible=False),
        drawn(None),
        None,
    )
