"""What stands at the beginning of the Teach step: the strategy with its reason, its options, and the button."""

from __future__ import annotations

import dataclasses
from typing import Any

import gradio as gr

from app.desk.jobs import UpdateRequest
from app.server.serving import OWN_ERRORS, Serving
from app.ui.access import Access
from app.ui.wording import escaped
from app.ui.words import ENGLISH, Words, filled, words_of
from app.words import strategies as strategy_words
from app.words.forecast import forecast_sentences
from ingest.records import JobRecord
from model_updates.strategies import STRATEGIES, strategy_named

OPTION_HEADERS = ["option", "value"]
Outputs = tuple[Any, ...]


class TeachStep:
    """The components of the step, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws the step; call inside it."""
        self.serving = serving
        self.access = access
        with gr.Row():
            with gr.Column(scale=3, min_width=300):
                self.strategy = gr.Dropdown(
                    strategy_words.menu(STRATEGIES), label="Strategy", elem_id="strategy"
                )
                self.explained = gr.Markdown(
                    elem_classes="notice", elem_id="strategy-explained", latex_delimiters=[]
                )
                self.at_once = gr.Checkbox(
                    False,
                    label="Go live at once if it passes",
                    info="Otherwise you decide after reading the report.",
                )
                self.why = gr.Textbox(
                    label="Reason", placeholder="Kept in the history", max_length=500, elem_id="teach-why"
                )
            with gr.Column(scale=2, min_width=260), gr.Accordion("Options", open=False):
                self.options = gr.Dataframe(
                    headers=OPTION_HEADERS,
                    static_columns=[0],
                    interactive=True,
                    type="array",
                    show_label=False,
                    elem_id="options",
                )
                self.seed = gr.Number(0, label="Seed", precision=0, minimum=0)
        self.begin = gr.Button("Start", variant="primary", interactive=False, elem_id="start")

    @property
    def components(self) -> list[Any]:
        """What `chosen` fills, in its order."""
        return [self.strategy, self.explained, self.options, self.begin]

    @property
    def asked(self) -> list[Any]:
        """What `start` is given after the chunk, in its order."""
        return [self.strategy, self.options, self.seed, self.at_once, self.why]

    def connect(self, chunk: gr.State, private: dict[str, Any]) -> None:
        """Connects the menu.

        Args:
            chunk: the id of the chunk that is to teach.
            private: how Gradio is to call functions of admins.
        """
        self.strategy.input(
            self._explain,
            [chunk, self.strategy],
            [self.explained, self.options],
            show_progress="hidden",
            **private,
        )

    def chosen(self, chunk_id: str, say: Words) -> Outputs:
        """Returns what the step shows of a chunk: the recommended strategy, explained."""
        name, _ = self.serving.recommended(chunk_id)
        choices = [(say.said(label), one) for label, one in strategy_words.menu(STRATEGIES, recommended=name)]
        explained, options = self._describe(chunk_id, name, say)
        return (
            gr.Dropdown(choices=choices, value=name),
            explained,
            filled(OPTION_HEADERS, options, say),
            gr.Button(interactive=True),
        )

    def start(
        self,
        chunk_id: str,
        name: str,
        options: list[list[str]],
        seed: float,
        at_once: bool,
        why: str,
        *,
        by: str,
    ) -> JobRecord:
        """Starts the update that was asked for; errors as `Work.start_update`."""
        # Only what was changed is passed on: a default may depend on the encoder.
        usual = {key: value for key, value in self._describe("", name, ENGLISH)[1]}
        changed = {str(key): str(value) for key, value in options if str(value) != usual.get(str(key))}
        request = UpdateRequest(chunk_id, name, changed, int(seed or 0), at_once, why, by)
        return self.serving.work.start_update(request)

    def _explain(self, chunk_id: str, name: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        try:
            self.access.admin(request)
            explained, options = self._describe(chunk_id, name, say)
        except OWN_ERRORS as error:
            return escaped(say.said(str(error))), filled(OPTION_HEADERS, [], say)
        return explained, filled(OPTION_HEADERS, options, say)

    def _forecast(self, chunk_id: str, name: str, say: Words) -> str:
        try:
            found = self.serving.forecast(UpdateRequest(chunk_id, name))
        except OWN_ERRORS as error:
            return escaped(say("What it will take cannot be said: {why}", why=error))
        said = " ".join(map(say.said, forecast_sentences(found)))
        return f"**{say('What it will take:')}** {escaped(said)}"

    def _describe(self, chunk_id: str, name: str, say: Words) -> tuple[str, list[list[str]]]:
        strategy = strategy_named(name)
        lines = [escaped(say.said(strategy.summary))]
        if chunk_id:
            recommended, why = self.serving.recommended(chunk_id)
            if recommended == name:
                lines.append(escaped(say("It is recommended: {why}", why=why)))
            else:
                lines.append(escaped(say("{name} is recommended: {why}", name=recommended, why=why)))
            unfit = self.serving.misfit(chunk_id, name)
            if unfit is not None:
                lines.append(f"**{say('It does not fit this chunk:')}** {escaped(say.said(unfit))}.")
            lines.append(self._forecast(chunk_id, name, say))
        lines.append(
            "\n".join(
                f"- {say.said(what)}: {escaped(say.said(which))}"
                for what, which in strategy_words.said(strategy)
            )
        )
        defaults = strategy.Options()
        return "\n\n".join(lines), [
            [option.name, str(getattr(defaults, option.name))] for option in dataclasses.fields(defaults)
        ]
