"""The Guide tab of the demo: the story step by step, a button each, with the numbers it found."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.demo.findings import Exhibit, Findings
from app.demo.guide import Guide
from app.demo.story import STEPS, Step
from app.desk.troubles import OWN_ERRORS
from app.ui import update_words, wording
from app.ui.access import Shown, base_of
from app.ui.events import AT_ONCE
from app.ui.parts import text

_POLL_SECONDS = 1.0
_INTRO = (
    "Nine steps tell what Perennial does, on pictures drawn on this machine. Each button does the real thing: chunks "
    "are taken in, updates run as jobs, what passes the gate goes live. Between the steps, try *Search* and *Compare*, "
    "or look at [Update and Releases](/admin/)."
)


def add_guide_tab(blocks: gr.Blocks, guide: Guide) -> None:
    """Draws the tab and connects it; call inside its tab."""
    _GuideTab(guide).connect(blocks)


class _GuideTab:
    """An accordion for each step, and a timer that watches the one at work."""

    def __init__(self, guide: Guide) -> None:
        self.guide = guide
        gr.Markdown(_INTRO)
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        self.panels: list[gr.Accordion] = []
        self.buttons: list[gr.Button] = []
        self.texts: list[gr.Markdown] = []
        self.pictures: list[gr.Markdown] = []
        for number, step in enumerate(STEPS, start=1):
            with gr.Accordion(f"{number}. {step.title}", open=number == 1) as panel:
                gr.Markdown(step.tells)
                self.buttons.append(
                    gr.Button(
                        "Play this step", variant="primary", interactive=False, elem_id=f"play-{step.name}"
                    )
                )
                self.texts.append(text(f"found-{step.name}"))
                # No gr.HTML: it evaluates its template as a script, which the page's policy forbids.
                shown = gr.Markdown(visible=False, elem_id=f"pictures-{step.name}", elem_classes="strip")
                self.pictures.append(shown)
            self.panels.append(panel)

    @property
    def _outputs(self) -> list[Any]:
        return [self.timer, *self.panels, *self.buttons, *self.texts, *self.pictures]

    def connect(self, blocks: gr.Blocks) -> None:
        """Connects buttons, timer and page."""
        private = {**AT_ONCE, "show_progress": "hidden"}
        for step, button in zip(STEPS, self.buttons, strict=True):
            button.click(self._starter(step), None, self._outputs, **private)
        self.timer.tick(self._watch, None, self._outputs, **private)
        blocks.load(self._all, None, self._outputs, **private)

    def _starter(self, step: Step) -> Any:
        def start(request: gr.Request) -> Shown:
            try:
                self.guide.start(step.name)
            except OWN_ERRORS as error:
                gr.Info(str(error))
            return self._all(request)

        return start

    def _watch(self, request: gr.Request) -> Shown:
        running = self.guide.running
        if running is None:
            return self._all(request)
        return {self.texts[STEPS.index(running.step)]: self._progress()}

    def _all(self, request: gr.Request) -> Shown:
        """Everything as it stands: for a page that opens, and when a step begins or ends."""
        found, running, following = self.guide.found(), self.guide.running, self.guide.following()
        base = wording.base_address(*base_of(request))
        shown: dict[Any, Any] = {self.timer: gr.update(active=running is not None)}
        for number, step in enumerate(STEPS):
            findings = found.get(step.name)
            is_running = running is not None and running.step is step
            mark = "" if findings is None else (" ✓" if findings.passed else " ✗")
            is_open = is_running or (running is None and step is (following or STEPS[-1]))
            is_open = is_open or (running is None and findings is not None and _is_newest(step, following))
            pictures = () if findings is None or is_running else findings.shown
            shown |= {
                self.panels[number]: gr.update(label=f"{number + 1}. {step.title}{mark}", open=is_open),
                self.buttons[number]: gr.update(
                    value="Play this step again" if findings is not None else "Play this step",
                    interactive=running is None and step is following,
                    visible=findings is None or not findings.passed,
                ),
                self.texts[number]: self._progress() if is_running else _found(findings),
                self.pictures[number]: gr.update(
                    value="\n\n".join(_row(one, base) for one in pictures), visible=bool(pictures)
                ),
            }
        return shown

    def _progress(self) -> str:
        running = self.guide.running
        if running is None:
            return ""
        return update_words.progress_view(
            "running", {"name": "At work", "message": running.message, "fraction": running.fraction}
        )


def _is_newest(step: Step, following: Step | None) -> bool:
    """Whether it is the step played last: its numbers stay in view while the next one waits."""
    place = len(STEPS) if following is None else STEPS.index(following)
    return STEPS.index(step) == place - 1


def _found(findings: Findings | None) -> str:
    if findings is None:
        return ""
    checks = [f"- {'✓' if check.holds else '✗'} {wording.escaped(check.claim)}" for check in findings.checks]
    # Indented lines are rows of a small table and keep their columns.
    lines = [
        f"    {line}" if line.startswith("  ") else f"\n{wording.escaped(line)}\n" for line in findings.lines
    ]
    return "\n".join([*lines, "", *checks, "", f"{findings.seconds:.1f} s"])


def _row(shown: Exhibit, base: str) -> str:
    urls = [wording.thumbnail_url(base, image_id) for image_id in shown.image_ids]
    return f"{wording.escaped(shown.title)}\n\n{' '.join(f'![a picture found]({url})' for url in urls)}"
