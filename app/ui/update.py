"""The Update tab: upload, read the report, choose how to learn, watch, decide.

The job runs in a process of its own: closing the page stops nothing, and opening it again finds the job.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import gradio as gr

from app import strategy_words
from app.learning.outcomes import UpdateRequest
from app.server.serving import OWN_ERRORS, Serving
from app.ui import update_words, wording
from app.ui.access import Access, base_of
from app.ui.check import CheckStep
from app.ui.decide import DECIDE, DecideStep
from app.ui.upload import UploadStep
from ingest.records import FINAL_STATES
from model_updates.strategies import STRATEGIES, strategy_named

UPLOAD, CHECK, TEACH = range(DECIDE)
_POLL_SECONDS = 1.5
Outputs = tuple[Any, ...]


def add_update_tab(blocks: gr.Blocks, serving: Serving, access: Access) -> None:
    """Draws the tab and connects it; call inside the page's tabs."""
    _UpdateTab(serving, access).connect(blocks)


class _UpdateTab:
    """The components of the tab, step by step, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        self.serving = serving
        self.access = access
        self.chunk = gr.State("")
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        with gr.Walkthrough(selected=UPLOAD, elem_id="steps") as self.steps:
            with gr.Step("Upload", id=UPLOAD):
                self._draw_upload()
            with gr.Step("Check", id=CHECK):
                self.check = CheckStep(self.serving, self.access)
            with gr.Step("Teach", id=TEACH):
                self._draw_teach()
            with gr.Step("Decide", id=DECIDE):
                self.decide = DecideStep(self.serving, self.access)

    # What there is to see

    def _draw_upload(self) -> None:
        self.upload = UploadStep(self.serving, self.access)
        with gr.Row(elem_classes="beside"):
            self.known = gr.Dropdown(
                [], label="… or teach a chunk that is here already", scale=4, elem_id="known"
            )
            self.use = gr.Button("Use this chunk", scale=1, min_width=150, elem_id="use-known")
        with gr.Row(elem_classes="beside"):
            self.past = gr.Dropdown([], label="… or read how an update was judged", scale=4, elem_id="past")
            self.read = gr.Button("Show its report", scale=1, min_width=150, elem_id="read-past")

    def _draw_teach(self) -> None:
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
                self.why = gr.Textbox(label="Reason", placeholder="Kept in the history", max_length=500)
            with gr.Column(scale=2, min_width=260), gr.Accordion("Options", open=False):
                self.options = gr.Dataframe(
                    headers=["option", "value"],
                    static_columns=[0],
                    interactive=True,
                    type="array",
                    show_label=False,
                    elem_id="options",
                )
                self.seed = gr.Number(0, label="Seed", precision=0, minimum=0)
        self.begin = gr.Button("Start", variant="primary", interactive=False, elem_id="start")
        self.progress = gr.Markdown(
            "",
            elem_classes="progress-view",
            elem_id="progress",
            latex_delimiters=[],
            container=True,
            visible=False,
        )

    # How it is connected

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects the components with what happens on them."""
        private: dict[str, Any] = {
            "api_visibility": "private",
            "concurrency_id": "admin",
            "concurrency_limit": 1,
        }
        chosen = [
            self.upload.said, self.chunk, self.steps, *self.check.components,
            self.strategy, self.explained, self.options, self.begin,
        ]  # fmt: skip
        self.upload.connect(blocks, chosen, self._chosen, self._not_chosen, private)
        self.use.click(self._use_known, [self.known], chosen, **private)
        self.check.connect(self.chunk, private)
        self.check.go_on.click(
            lambda: gr.Walkthrough(selected=TEACH), None, self.steps, api_visibility="private"
        )
        self.strategy.input(
            self._explain,
            [self.chunk, self.strategy],
            [self.explained, self.options],
            show_progress="hidden",
            **private,
        )
        watched = [self.job, self.timer, self.progress, self.begin]
        self.begin.click(
            self._start,
            [self.chunk, self.strategy, self.options, self.seed, self.at_once, self.why],
            watched,
            **private,
        )
        ended = [self.progress, self.timer, self.begin, self.past, self.steps, *self.decide.components]
        self.timer.tick(self._watch, [self.job], ended, show_progress="hidden", **private)
        self.decide.connect(self.why, private)
        self.decide.connect_past(self.past, self.read, self.upload.said, self.steps, private)
        # Not queued: events that begin together when a page opens would race for the one stream of the queue.
        blocks.load(
            self._resume,
            None,
            [self.known, self.past, *watched, self.steps],
            queue=False,
            show_progress="hidden",
            **private,
        )

    # What happens

    def _use_known(self, chunk_id: str | None, request: gr.Request) -> Outputs:
        if not chunk_id:
            return self._not_chosen("Choose a chunk first.")
        try:
            self.access.admin(request)
            record = self.serving.workspace.catalog.chunk(chunk_id)
            return self._chosen(record.id, None, request)
        except OWN_ERRORS as error:
            return self._not_chosen(f"**{wording.escaped(error)}**")

    def _chosen(self, chunk_id: str, embedded: int | None, request: gr.Request) -> Outputs:
        base = wording.base_address(*base_of(request))
        shown = self.check.shown(self.serving.workspace.catalog.chunk(chunk_id), base, embedded=embedded)
        name, _ = self.serving.recommended(chunk_id)
        choices = strategy_words.menu(STRATEGIES, recommended=name)
        explained, options = self._describe(chunk_id, name)
        return (
            "",
            chunk_id,
            gr.Walkthrough(selected=CHECK),
            *shown,
            gr.Dropdown(choices=choices, value=name),
            explained,
            options,
            gr.Button(interactive=True),
        )

    def _not_chosen(self, line: str) -> Outputs:
        return (line, "", *([gr.skip()] * (len(self.check.components) + 5)))

    def _explain(self, chunk_id: str, name: str, request: gr.Request) -> Outputs:
        try:
            self.access.admin(request)
            return self._describe(chunk_id, name)
        except OWN_ERRORS as error:
            return wording.escaped(error), []

    def _describe(self, chunk_id: str, name: str) -> tuple[str, list[list[str]]]:
        strategy = strategy_named(name)
        lines = [wording.escaped(strategy.summary)]
        if chunk_id:
            recommended, why = self.serving.recommended(chunk_id)
            verb = (
                "It is recommended"
                if recommended == name
                else f"{wording.escaped(recommended)} is recommended"
            )
            lines.append(f"{verb}: {wording.escaped(why)}")
            unfit = self.serving.misfit(chunk_id, name)
            if unfit is not None:
                lines.append(f"**It does not fit this chunk:** {wording.escaped(unfit)}.")
        lines.append(
            "\n".join(f"- {what}: {wording.escaped(which)}" for what, which in strategy_words.said(strategy))
        )
        defaults = strategy.Options()
        return "\n\n".join(lines), [
            [option.name, str(getattr(defaults, option.name))] for option in dataclasses.fields(defaults)
        ]

    def _start(
        self,
        chunk_id: str,
        name: str,
        options: list[list[str]],
        seed: float,
        at_once: bool,
        why: str,
        request: gr.Request,
    ) -> Outputs:
        try:
            account = self.access.admin(request)
            # Only what was changed is passed on: a default may depend on the encoder.
            usual = {key: value for key, value in self._describe("", name)[1]}
            changed = {str(key): str(value) for key, value in options if str(value) != usual.get(str(key))}
            job = self.serving.work.start_update(
                UpdateRequest(chunk_id, name, changed, int(seed or 0), at_once, why, account.name)
            )
        except OWN_ERRORS as error:
            return "", gr.Timer(), gr.Markdown(f"**{wording.escaped(error)}**", visible=True), gr.Button()
        shown = gr.Markdown(update_words.progress_view(job.state, {}), visible=True)
        return job.id, gr.Timer(active=True), shown, gr.Button(interactive=False)

    def _watch(self, job_id: str, request: gr.Request) -> Outputs:
        nothing = [gr.skip()] * (1 + len(self.decide.components))
        try:
            self.access.admin(request)
            job = self.serving.workspace.catalog.job(job_id)
        except OWN_ERRORS as error:
            said = f"**{wording.escaped(error)}**"
            return said, gr.Timer(active=False), gr.skip(), gr.skip(), *nothing
        if job.state not in FINAL_STATES:
            said = update_words.progress_view(job.state, job.progress)
            return said, gr.skip(), gr.skip(), gr.skip(), *nothing
        stop, again = gr.Timer(active=False), gr.Button(interactive=True)
        if not job.result.get("verdict"):
            line = f"## It failed\n\n{wording.escaped(job.error or job.state)}\n\nNothing live has changed."
            return line, stop, again, gr.skip(), *nothing
        self.serving.refresh()
        done = {"name": "ended", "message": job.result.get("sentence"), "fraction": 1}
        return (
            update_words.progress_view("ended", done),
            stop,
            again,
            self.decide.past(),
            gr.Walkthrough(selected=DECIDE),
            *self.decide.shown(job, request),
        )

    def _resume(self, request: gr.Request) -> Outputs:
        """Fills the menu, and finds an update that is still running."""
        try:
            self.access.admin(request)
            chunks = self.serving.workspace.catalog.chunks()
            job = self.serving.work.unfinished("update")
        except OWN_ERRORS:
            return gr.Dropdown(), gr.Dropdown(), "", gr.Timer(), gr.Markdown(), gr.Button(), gr.skip()
        known = gr.Dropdown(
            choices=[(update_words.chunk_label(chunk), chunk.id) for chunk in reversed(chunks)]
        )
        if job is None:
            return known, self.decide.past(), "", gr.Timer(active=False), gr.skip(), gr.skip(), gr.skip()
        shown = gr.Markdown(update_words.progress_view(job.state, job.progress), visible=True)
        return (
            known,
            self.decide.past(),
            job.id,
            gr.Timer(active=True),
            shown,
            gr.Button(interactive=False),
            gr.Walkthrough(selected=TEACH),
        )
