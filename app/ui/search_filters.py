"""The row of filters below the search box: what they are, what they ask, and how they show what an address asks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gradio as gr

from app.desk.hits import Mode
from app.query.snapshot import AUTO, Snapshot
from app.server.serving import Serving
from app.ui import search_words, wording
from app.ui.asking import Asked
from app.ui.words import ENGLISH, Words, label

_NAMES = (
    "language",
    "translation",
    "domains",
    "languages",
    "chunks",
    "caption",
    "since",
    "until",
    "mode",
    "fold",
    "rerank",
)
"""The fields of `Asked` that a filter fills, in the order in which they stand."""
_MENUS = ("language", "domains", "languages", "chunks")
_WIDTH: dict[str, Any] = {"min_width": 170}


class FilterRow:
    """The filters.

    Attributes:
        parts: the components, in their order.
        fold: what opens and closes them.
    """

    def __init__(self, serving: Serving) -> None:
        """Draws them; call where they are to stand."""
        self._serving = serving
        longest = serving.settings.max_query_characters
        with gr.Accordion(
            label("Language and filters"), open=False, elem_classes="fold", elem_id="filters"
        ) as self.fold:
            with gr.Row(elem_classes="chips"):
                self.language = gr.Dropdown(
                    [(search_words.ANY_LANGUAGE, AUTO)],
                    value=AUTO,
                    label=label("Language of the words"),
                    elem_id="language",
                    **_WIDTH,
                )
                self.translation = _text(label("The same in English"), "translation", longest)
                self.domains = _several(label("Domains"), "domains")
                self.languages = _several(label("Captioned in"), "captioned")
                self.chunks = _several(label("Chunks"), "chunks")
            with gr.Row(elem_classes="chips"):
                self.caption = _text(label("Captions with"), "captions-with", 500)
                self.since = _text(label("Taken in since"), "since", 10, placeholder="2026-01-31")
                self.until = _text(label("Taken in until"), "until", 10, placeholder="2026-01-31")
                self.mode = gr.Dropdown(
                    search_words.modes(),
                    value=Mode.VECTORS.value,
                    label=label("Look at"),
                    elem_id="mode",
                    filterable=False,
                    **_WIDTH,
                )
                self.copies = gr.Checkbox(False, label=label("Fold near-copies"), elem_id="fold", **_WIDTH)
                self.rerank = gr.Checkbox(
                    False, label=label("Re-rank the first 50"), elem_id="rerank", visible=False, **_WIDTH
                )
        self.typed: list[Any] = [self.translation, self.caption, self.since, self.until]
        self.chosen: list[Any] = [
            self.language,
            self.domains,
            self.languages,
            self.chunks,
            self.mode,
            self.copies,
            self.rerank,
        ]

    @property
    def parts(self) -> list[Any]:
        """The components in the order of `_NAMES`."""
        return [
            self.language,
            self.translation,
            self.domains,
            self.languages,
            self.chunks,
            self.caption,
            self.since,
            self.until,
            self.mode,
            self.copies,
            self.rerank,
        ]

    def asked(self, values: tuple[Any, ...]) -> Asked:
        """Returns what the components' values ask."""
        blank = Asked()
        given = {}
        for name, value in zip(_NAMES, values, strict=True):
            default = getattr(blank, name)
            given[name] = _as(type(default), value) if value else default
        return Asked(**given)

    def known(self, asked: Asked, snapshot: Snapshot) -> tuple[Asked, list[str]]:
        """Returns what an address asks without what no menu has, and that; a menu cannot show it."""
        offered = {name: {value for _, value in choices} for name, choices in self._choices(snapshot).items()}
        missing = []
        if asked.language not in offered["language"]:
            missing.append(asked.language)
            asked = replace(asked, language=AUTO)
        for name in _MENUS[1:]:
            given: tuple[str, ...] = getattr(asked, name)
            missing += [one for one in given if one not in offered[name]]
            kept: dict[str, Any] = {name: tuple(one for one in given if one in offered[name])}
            asked = replace(asked, **kept)
        if asked.mode not in list(Mode):
            missing.append(asked.mode)
            asked = replace(asked, mode=Mode.VECTORS.value)
        return asked, missing

    def shown(self, asked: Asked, snapshot: Snapshot, say: Words) -> list[Any]:
        """Returns the components with menus as they are today and the values of what is asked."""
        choices = self._choices(snapshot, say)
        updates: list[Any] = []
        for name in _NAMES:
            value = getattr(asked, name)
            if name in choices:
                given = list(value) if isinstance(value, tuple) else value
                updates.append(gr.Dropdown(choices=choices[name], value=given))
            elif name == "mode":
                updates.append(gr.Dropdown(choices=search_words.modes(say), value=value))
            elif name == "rerank":
                updates.append(gr.Checkbox(value=value, visible=snapshot.reranker is not None))
            elif name == "fold":
                updates.append(gr.Checkbox(value=value))
            else:
                updates.append(gr.Textbox(value=value))
        return updates

    def heading(self, asked: Asked, say: Words, *, is_open: bool) -> gr.Accordion:
        """Returns what opens them with the number of those in use, opened where one is needed."""
        blank = Asked()
        used = sum(getattr(asked, name) != getattr(blank, name) for name in _NAMES)
        text = (
            say("Language and filters · in use: {count}", count=used) if used else say("Language and filters")
        )
        return gr.Accordion(label=text, open=True) if is_open else gr.Accordion(label=text)

    def _choices(self, snapshot: Snapshot, say: Words = ENGLISH) -> dict[str, list[tuple[str, str]]]:
        catalog = self._serving.workspace.catalog
        return {
            "language": search_words.language_choices(snapshot.release, snapshot.languages, say),
            "domains": [(name, name) for name in catalog.domains()],
            "languages": wording.plain_languages(catalog.languages()),
            "chunks": search_words.chunk_choices(catalog.chunks()),
        }


def _as(kind: type, value: Any) -> Any:
    """Returns a value as the browser sends it in the kind that its field has."""
    if kind is tuple:
        return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
    return kind(value)


def _text(label: Any, elem_id: str, longest: int, placeholder: str = "") -> gr.Textbox:
    return gr.Textbox(
        label=label, elem_id=elem_id, max_length=longest, placeholder=placeholder or None, **_WIDTH
    )


def _several(label: Any, elem_id: str) -> gr.Dropdown:
    return gr.Dropdown([], multiselect=True, label=label, elem_id=elem_id, **_WIDTH)
