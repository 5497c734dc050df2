"""The row of filters below the search box: what they are, what they ask, and how they show what an address asks.

Each is a component under the name of the field of a search that it fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gradio as gr

from app.desk.hits import AUTO, Choices, Mode, SearchRequest
from app.desk.troubles import request_of
from app.ui import search_words, wording
from app.ui.access import Shown
from app.ui.parts import text
from app.ui.words import ENGLISH, Words, label
from ingest.captions import normalise_language
from ingest.errors import UnknownLanguage

_LANGUAGES = ("language", "languages")
_WIDTH: dict[str, Any] = {"min_width": 170}


class FilterRow:
    """The filters.

    Attributes:
        parts: the components by the names of their fields, in their order.
        fold: what opens and closes them.
        facets: counts of what the filters leave, each a link.
    """

    def __init__(self, longest: int) -> None:
        """Draws them; call where they are to stand.

        Args:
            longest: characters that a query may have.
        """
        with gr.Accordion(
            label("Language and filters"), open=False, elem_classes="fold", elem_id="filters"
        ) as self.fold:
            self.facets = text("facets", "strip")
            self.parts: dict[str, Any] = {
                "where": _text(
                    label("Filter"),
                    "where",
                    1000,
                    placeholder="taken = 2024 AND (folder = Italy OR NOT width < 2000)",
                )
            }
            with gr.Row(elem_classes="chips"):
                self.parts |= {
                    "language": gr.Dropdown(
                        [(search_words.ANY_LANGUAGE, AUTO)],
                        value=AUTO,
                        label=label("Query language"),
                        elem_id="language",
                        **_WIDTH,
                    ),
                    "translation": _text(label("English translation"), "translation", longest),
                    "domains": _several(label("Domains"), "domains"),
                    "languages": _several(label("Captioned in"), "captioned"),
                    "chunks": _several(label("Chunks"), "chunks"),
                }
            with gr.Row(elem_classes="chips"):
                self.parts |= {
                    "caption": _text(label("Caption contains"), "captions-with", 500),
                    "since": _text(label("Added since"), "since", 10, placeholder="2026-01-31"),
                    "until": _text(label("Added until"), "until", 10, placeholder="2026-01-31"),
                    "mode": gr.Dropdown(
                        search_words.modes(),
                        value=Mode.VECTORS.value,
                        label=label("Search in"),
                        elem_id="mode",
                        filterable=False,
                        **_WIDTH,
                    ),
                    "dedup": gr.Checkbox(
                        False, label=label("Hide near-duplicates"), elem_id="fold", **_WIDTH
                    ),
                    "rerank": gr.Checkbox(
                        False, label=label("Re-rank the first 50"), elem_id="rerank", visible=False, **_WIDTH
                    ),
                }

    @property
    def asking(self) -> list[Any]:
        """What happens on a component when a person has filled it in."""
        return [one.submit if isinstance(one, gr.Textbox) else one.input for one in self.parts.values()]

    def asked(self, values: Sequence[Any], **more: Any) -> SearchRequest:
        """Returns what the components' values ask, and what else is to be in it.

        Raises:
            UsageProblem: a value is none that its field can have.
        """
        filled = {name: value for name, value in zip(self.parts, values, strict=True) if value}
        return request_of(SearchRequest, **filled | more)

    def shown(self, asked: SearchRequest, choices: Choices, say: Words) -> Shown:
        """Returns the components with menus as they are today and the values of what is asked."""
        menus, values = _menus(choices, say), asked.model_dump(mode="json")
        for name in _LANGUAGES:  # one that nothing is in can be asked for, too
            offered = {value for _, value in menus[name]}
            menus[name] += wording.plain_languages(
                one for one in _several_of(values[name]) if one not in offered
            )
        more: dict[str, Any] = {name: {"choices": menu} for name, menu in menus.items()}
        more["rerank"] = {"visible": choices.can_rerank}
        updates = {}
        for name, part in self.parts.items():
            blank = "" if isinstance(part, gr.Textbox) else []
            value = blank if values[name] is None else values[name]
            updates[part] = gr.update(value=value, **more.get(name, {}))
        return updates

    def heading(self, asked: SearchRequest, say: Words) -> Any:
        """Returns what opens them, with the number of those in use."""
        used = len(asked.model_dump(include=set(self.parts), exclude_defaults=True))
        words = (
            say("Language and filters · in use: {count}", count=used) if used else say("Language and filters")
        )
        return gr.update(label=words)


def known(asked: SearchRequest, choices: Choices) -> tuple[SearchRequest, list[str]]:
    """Returns what an address asks, as the menus have it, without what is not here; and that."""
    kept: dict[str, Any] = {}
    missing: list[str] = []
    for name, menu in _menus(choices).items():
        offered = {value for _, value in menu}
        given = getattr(asked, name)
        several = _several_of(given)
        found = [one if one in offered else _meant(name, one, choices) for one in several]
        missing += [one for one, value in zip(several, found, strict=True) if not value]
        values = [value for value in found if value]
        if isinstance(given, list):
            kept[name] = values or None
        elif given:
            kept[name] = values[0] if values else AUTO
    return asked.model_copy(update=kept), missing


def _several_of(given: list[str] | str | None) -> list[str]:
    return given if isinstance(given, list) else [given] if given else []


def _meant(name: str, given: str, choices: Choices) -> str:
    """Returns the value that another spelling means, as REST takes it; "" of what is not here."""
    if name in _LANGUAGES:
        try:
            return normalise_language(given)
        except UnknownLanguage:
            return ""
    if name != "chunks" or not given.strip():
        return ""
    begun = [
        one.id
        for one in choices.chunks
        if one.name == given.strip() or one.id.startswith(given.strip().lower())
    ]
    return begun[0] if len(begun) == 1 else ""


def _menus(choices: Choices, say: Words = ENGLISH) -> dict[str, list[tuple[str, str]]]:
    """Returns what each menu offers: words, and the value of its field."""
    return {
        "language": search_words.language_choices(choices, say),
        "domains": [(name, name) for name in choices.domains],
        "languages": wording.plain_languages(choices.languages),
        "chunks": [(f"{one.name} · {one.created[:10]}", one.id) for one in choices.chunks],
        "mode": search_words.modes(say),
    }


def _text(label: Any, elem_id: str, longest: int, placeholder: str = "") -> gr.Textbox:
    return gr.Textbox(
        label=label, elem_id=elem_id, max_length=longest, placeholder=placeholder or None, **_WIDTH
    )


def _several(label: Any, elem_id: str) -> gr.Dropdown:
    return gr.Dropdown([], multiselect=True, label=label, elem_id=elem_id, **_WIDTH)
