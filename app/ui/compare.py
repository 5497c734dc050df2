"""The Compare tab: two releases, one query, side by side; blind, with a vote, or many queries at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from app.desk.desk import Desk
from app.desk.errors import NoRelease
from app.desk.hits import AUTO, Compared
from app.desk.opinions import Opinion, ShadowReport
from app.home.settings import Settings
from app.ui import compare_words as words
from app.ui import wording
from app.ui.access import Access, Shown, Visit
from app.ui.compare_many import ManyQueries
from app.ui.drawn import drawing, drawn, tag
from app.ui.drift import DriftPanel
from app.ui.events import AT_ONCE
from app.ui.grid import Picture, picture_grid, shown
from app.ui.read_table import ReadTable
from app.ui.search_words import language_choices
from app.ui.shadow_plot import shadow_view
from ingest.sentence import phrase

_SHOWN = 12


@dataclass(frozen=True)
class _Round:
    """A blind round: the language that was told, and what stands on which side."""

    language: str
    compared: Compared


def add_compare_tab(access: Access, settings: Settings, tab: gr.Tab) -> None:
    """Draws the tab and connects it; call inside `tab`."""
    _CompareTab(access, settings.max_query_characters).connect(tab)


class _CompareTab:
    """The components of the tab, and what happens on them."""

    def __init__(self, access: Access, longest: int) -> None:
        self.access = access
        self.round = gr.State(None)
        self._draw_question(longest)
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
        self.many = ManyQueries(access)
        self.drift = DriftPanel(access, "compare-drift")
        with gr.Accordion("How far the vectors of two releases have turned", open=False, elem_id="turned"):
            self.drift.draw_button()
            self.drift.draw_found()
        recall = phrase("Recall on held-out pairs, text to image, in percent")
        self.table = ReadTable("compare-slices", recall, words.COMPARED_HEADERS, visible=False)
        self.shadow = drawing("compare-shadow", "tables")

    def _draw_question(self, longest: int) -> None:
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
                max_length=longest,
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
        hidden = self._hidden
        shown, asked = list(hidden), [self.left, self.right, self.query, self.language]
        search: dict[str, Any] = {
            **AT_ONCE,
            "show_progress": "minimal",
            "show_progress_on": [self.first, self.second],
        }
        of_anyone = self.access.of_anyone
        gr.on(
            [self.query.submit, self.go.click],
            of_anyone(self._ask, self.status, hidden),
            asked,
            shown,
            **search,
        )
        self.blind.click(of_anyone(self._ask_blind, self.status, hidden), asked, shown, **search)
        for choice, button in self.choices.items():
            vote = of_anyone(partial(self._vote, choice), self.status, hidden)
            button.click(vote, [self.round], shown, **search)
        self.many.connect([self.left, self.right], self.language)
        self.drift.connect(self.left, self.right)
        again = self.access.on_row(self._again, self.status, hidden, of_anyone=True)
        others = [self.left, self.right, self.language]
        self.many.table.connect(again, others, [self.query, *shown], **search)
        menus = [self.left, self.right, self.language]
        tab.select(
            of_anyone(self._menus, self.status),
            None,
            [*menus, self.status],
            show_progress="hidden",
            **AT_ONCE,
        )

    @property
    def _hidden(self) -> dict[Any, Any]:
        """What the outputs show where there is nothing to compare."""
        return {
            self.status: "",
            self.answers: gr.update(visible=False),
            self.first_name: "",
            self.first: shown([]),
            self.second_name: "",
            self.second: shown([]),
            self.table.drawn: gr.update(visible=False),
            self.shadow: drawn(None),
            self.voting: gr.update(visible=False),
            self.tally: drawn(None),
            self.round: None,
        }

    def _only(self, visit: Visit, line: str) -> Shown:
        said = gr.update(value=visit.say.said(line), elem_classes="empty")
        return {**self._hidden, self.status: said}

    def _menus(self, visit: Visit) -> Shown:
        releases = visit.desk.releases()
        live = next((one for one in releases if one.live), None)
        kept = [one for one in releases if not one.pruned]
        others = [one for one in kept if live and one.version != live.version] or kept
        other = next((one for one in others if not one.live), live)
        choices = wording.release_choices(releases, visit.say)
        try:
            languages = language_choices(visit.desk.choices(), visit.say)
        except NoRelease:
            languages = [(visit.say("Any language"), AUTO)]
        return {
            self.left: gr.update(choices=choices, value=live.id if live else None),
            self.right: gr.update(choices=choices, value=other.id if other else None),
            self.language: gr.update(choices=languages),
        }

    def _ask(self, visit: Visit, a: str, b: str, text: str, spoken: str) -> Shown:
        if lacks := words.lacking(a, b, text):
            return self._only(visit, lacks)
        compared = visit.desk.compare(text, a, b, spoken, _SHOWN)
        return self._named(visit, compared, words.status_line(compared, visit.say))

    def _again(self, visit: Visit, cells: list[str], a: str, b: str, spoken: str) -> Shown:
        return {self.query: cells[0], **self._ask(visit, a, b, cells[0], spoken)}

    def _ask_blind(self, visit: Visit, a: str, b: str, text: str, spoken: str) -> Shown:
        if lacks := words.lacking(a, b, text):
            return self._only(visit, lacks)
        sides = [a, b]
        random.shuffle(sides)
        compared = visit.desk.compare(text, sides[0], sides[1], spoken, _SHOWN)
        if compared.a.release == compared.b.release:
            return self._only(visit, words.SAME)
        pictures = words.blind_pictures(compared, visit.base)
        return {
            **self._answered(visit.say.said(words.BLIND), ("A", "B"), pictures),
            self.voting: gr.update(visible=True),
            self.round: _Round(spoken, compared),
        }

    def _vote(self, choice: str, visit: Visit, asked: _Round | None) -> Shown:
        if asked is None:
            return self._only(visit, words.NO_ROUND)
        compared, say = asked.compared, visit.say
        a, b = compared.a.release, compared.b.release
        language = _read_in(asked.language, choice, compared)
        vote = Opinion(query=compared.a.query, language=language, a=a, b=b, choice=choice)
        visit.desk.give_feedback(vote)
        line = f"{say.said(words.voted_line(choice, a, b))}  \n{words.status_line(compared, say)}"
        tally = words.votes_view(visit.desk.votes(a, b), say)
        return {**self._named(visit, compared, line), self.tally: drawn(tally)}

    def _named(self, visit: Visit, compared: Compared, line: str) -> Shown:
        """The outputs with the releases' names, moves and slices."""
        a, b, say = compared.a.release, compared.b.release, visit.say
        names = (f"A · {wording.escaped(a)}", f"B · {wording.escaped(b)}")
        slices = self.table.of(words.compared_slices(compared, say), say)
        shadows = shadows_between(visit.desk, a, b)
        return {
            **self._answered(line, names, words.compared_pictures(compared, visit.base)),
            self.table.drawn: gr.update(value=slices, visible=bool(slices)),
            self.shadow: drawn(tag("div", [shadow_view(told, say) for told in shadows]) if shadows else None),
        }

    def _answered(
        self, line: str, names: tuple[str, str], pictures: Sequence[Sequence[Picture]]
    ) -> dict[Any, Any]:
        """The outputs with both answers, and nothing else."""
        return {
            **self._hidden,
            self.status: gr.update(value=line, elem_classes="status"),
            self.answers: gr.update(visible=True),
            self.first_name: f"## {names[0]}",
            self.first: shown(pictures[0]),
            self.second_name: f"## {names[1]}",
            self.second: shown(pictures[1]),
        }


def shadows_between(desk: Desk, a: str, b: str) -> list[ShadowReport]:
    """Returns what one of two releases has shown in the shadow of the other, if it ever was there."""
    versions = {one.id: one.version for one in desk.releases()}
    told = [(desk.shadow(this), other) for this, other in ((a, b), (b, a))]
    return [report for report, other in told if versions.get(report.against) == versions[other]]


def _read_in(language: str, choice: str, compared: Compared) -> str:
    """The language that a vote is kept with: as told, or as the preferred release read the query."""
    answer = compared.a if choice == "a" else compared.b
    return language if language != AUTO else answer.language.split(" + ")[0]
