"""What stands at the beginning of the Teach step: the strategy with its reason, its options, and the button."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.desk.jobs import StartUpdate
from app.desk.troubles import OWN_ERRORS
from app.ui.access import Access, Shown, Visit
from app.ui.events import AT_ONCE
from app.ui.option_form import OptionForm, chosen
from app.ui.parts import text
from app.ui.wording import escaped
from app.ui.words import Words
from app.words import strategies as strategy_words
from app.words.forecast import forecast_sentences
from ingest.records import JobRecord
from model_updates.strategies import DEFAULT_STRATEGY
from model_updates.strategy_pages import every_strategy, facts_named


class TeachStep:
    """The components of the step, and what happens on them."""

    def __init__(self, access: Access) -> None:
        """Draws the step; call inside it."""
        self.access = access
        with gr.Row():
            with gr.Column(scale=3, min_width=300):
                menu = strategy_words.menu(every_strategy())
                self.strategy = gr.Dropdown(menu, label="Strategy", elem_id="strategy")
                self.explained = text("strategy-explained", "notice")
                self.at_once = gr.Checkbox(
                    False,
                    label="Go live at once if it passes",
                    info="Otherwise you decide after reading the report.",
                )
                self.why = gr.Textbox(
                    label="Reason", placeholder="Saved in the history", max_length=500, elem_id="teach-why"
                )
            with gr.Column(scale=2, min_width=260), gr.Accordion("Options", open=False):
                self.options = OptionForm()
                self.seed = gr.Number(0, label="Seed", precision=0, minimum=0)
        self.begin = gr.Button("Start", variant="primary", interactive=False, elem_id="start")

    @property
    def components(self) -> list[Any]:
        """What `chosen` fills."""
        return [self.strategy, self.explained, *self._form, self.begin]

    @property
    def _form(self) -> list[Any]:
        return [self.options.drawn, self.options.given]

    @property
    def asked(self) -> list[Any]:
        """What `start` is given after the chunk, in its order."""
        return [self.strategy, self.options.given, self.seed, self.at_once, self.why]

    def connect(self, chunk: gr.State) -> None:
        """Connects the menu; `chunk` is the id of the one that is to teach."""
        self.strategy.input(
            self.access.of_admin(self._explained, self.explained),
            [chunk, self.strategy],
            [self.explained, *self._form],
            show_progress="hidden",
            **AT_ONCE,
        )

    def chosen(self, visit: Visit, chunk: str) -> Shown:
        """Returns what the step shows of a chunk: the recommended strategy, explained."""
        name, foreseen = _foreseen(visit, StartUpdate(chunk=chunk))
        menu = strategy_words.menu(every_strategy(), recommended=name)
        return {
            self.strategy: gr.update(
                choices=[(visit.say.said(label), one) for label, one in menu], value=name
            ),
            **self._described(name, foreseen, visit.say),
            self.begin: gr.update(interactive=True),
        }

    def start(
        self,
        visit: Visit,
        chunk: str,
        name: str,
        options: str,
        seed: float,
        at_once: bool,
        why: str,
    ) -> JobRecord:
        """Starts the update that was asked for; errors as `Desk.update`."""
        return visit.desk.update(
            StartUpdate(
                chunk=chunk,
                strategy=name,
                options=chosen(options),
                seed=int(seed or 0),
                promote=at_once,
                why=why,
            )
        )

    def _explained(self, visit: Visit, chunk: str, name: str) -> Shown:
        foreseen = _foreseen(visit, StartUpdate(chunk=chunk, strategy=name))[1] if chunk else []
        return self._described(name, foreseen, visit.say)

    def _described(self, name: str, foreseen: list[str], say: Words) -> Shown:
        strategy = facts_named(name)
        facts = "\n".join(
            f"- {say.said(what)}: {escaped(say.said(which))}" for what, which in strategy_words.said(strategy)
        )
        return {
            self.explained: "\n\n".join([escaped(say.said(strategy.summary)), *foreseen, facts]),
            **self.options.of(strategy, say),
        }


def _foreseen(visit: Visit, asked: StartUpdate) -> tuple[str, list[str]]:
    """Returns the strategy that would teach, and lines that say whether it suits the chunk and what it would take."""
    say = visit.say
    try:
        found = visit.desk.forecast(asked)
    except OWN_ERRORS as error:
        why_not = escaped(say("No estimate: {why}", why=error))
        return asked.strategy or DEFAULT_STRATEGY, [why_not]
    recommended = (
        say("It is recommended: {why}", why=found.why)
        if found.recommended == found.strategy
        else say("{name} is recommended: {why}", name=found.recommended, why=found.why)
    )
    lines = [escaped(recommended)]
    if found.misfit is not None:
        lines.append(f"**{say('It does not fit this chunk:')}** {escaped(say.said(found.misfit))}.")
    said = " ".join(map(say.said, forecast_sentences(found)))
    return found.strategy, [*lines, f"**{say('Estimate:')}** {escaped(said)}"]
