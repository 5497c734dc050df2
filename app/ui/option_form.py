"""The options of a strategy as a form: a field each, with what it means and the default in it."""

from __future__ import annotations

import json

import gradio as gr

from app.ui.access import Shown
from app.ui.drawn import Markup, drawing, drawn, tag
from app.ui.words import Words
from model_updates.strategy_facts import StrategyFacts


class OptionForm:
    """The fields, and what a person wrote into them.

    Attributes:
        drawn: the component that shows the fields.
        given: a hidden field, into which `pages.js` writes what differs from a default, as JSON.
    """

    def __init__(self) -> None:
        """Draws the form, empty."""
        self.drawn = drawing("options", "option-form")
        self.given = gr.Textbox(
            "", label="Options", visible="hidden", interactive=True, elem_id="options-given"
        )

    def of(self, strategy: StrategyFacts, say: Words) -> Shown:
        """Returns the form of a strategy, as nobody has changed it."""
        fields = [
            _field(name, str(default), strategy.meanings[name]) for name, default in strategy.options.items()
        ]
        nothing = tag("p", say("This strategy has no options."))
        return {self.drawn: drawn(tag("div", fields or nothing)), self.given: ""}


def chosen(given: str) -> dict[str, str]:
    """Returns by name the options that a person changed; a default may depend on the encoder, and is not sent."""
    return {str(name): str(value) for name, value in json.loads(given or "{}").items()}


def _field(name: str, default: str, meaning: str) -> Markup:
    said = tag("small", meaning, id=f"option-{name}", lang="en")
    box = tag(
        "input",
        type="text",
        value=default,
        autocomplete="off",
        spellcheck="false",
        data_option=name,
        data_default=default,
        aria_describedby=f"option-{name}" if meaning else None,
    )
    return tag("div", tag("label", tag("span", name, dir="ltr"), box), said if meaning else [])
