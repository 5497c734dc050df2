"""The shadow of a release on the Releases tab: what it has shown, and the buttons that begin and end it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.ui.access import Access, Shown, Visit
from app.ui.drawn import drawing, drawn
from app.ui.events import AT_ONCE
from app.ui.parts import text
from app.ui.shadow_plot import shadow_view
from app.ui.words import ENGLISH, Words
from ingest.sentence import phrase

_SHARES = {1.0: phrase("every one"), 0.2: phrase("one in five"), 0.05: phrase("one in twenty")}


class ShadowPart:
    """A share, two buttons, and a table of what the chosen release has shown."""

    def __init__(self, access: Access, share: float) -> None:
        """Draws them; call where they are to stand. `share` of the live queries is what is asked without a word."""
        self.access, self._own = access, share
        self.said = text("shadow-said", "status")
        self.found = drawing("release-shadow", "tables")
        with gr.Row(elem_classes="beside"):
            self.share = gr.Dropdown(
                self._shares(),
                value=share,
                label="Share of the live queries",
                scale=2,
                min_width=160,
                elem_id="shadow-share",
            )
            self.start = gr.Button("Ask it in the shadow", scale=2, elem_id="shadow-start")
            self.stop = gr.Button("Stop asking it", scale=2, visible=False, elem_id="shadow-stop")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills."""
        return [self.said, self.found, self.share, self.start, self.stop]

    def connect(self, chosen: gr.State, why: gr.Textbox) -> tuple[Any, Any]:
        """Connects the buttons; returns the two events, for what is to follow.

        Args:
            chosen: the release that is looked at.
            why: what a person says.
        """

        def start(visit: Visit, release: str, share: float, _why: str) -> Shown:
            visit.desk.start_shadow(release, share)
            return self.shown(visit, release)

        def stop(visit: Visit, release: str, _share: float, why: str) -> Shown:
            visit.desk.stop_shadow(release, why)
            return self.shown(visit, release)

        given = [chosen, self.share, why]
        first, second = (
            button.click(self.access.of_admin(act, self.said), given, self.components, **AT_ONCE)
            for button, act in ((self.start, start), (self.stop, stop))
        )
        return first, second

    def _shares(self, say: Words = ENGLISH) -> list[tuple[str, float]]:
        shares = {self._own: f"{100 * self._own:g} %"} | _SHARES
        return [(say.said(words), share) for share, words in sorted(shares.items(), reverse=True)]

    def shown(self, visit: Visit, release: str) -> Shown:
        """Returns what the components show of a release."""
        told = visit.desk.shadow(release)
        versions = {one.version: one for one in visit.desk.releases() if one.live or one.id == told.release}
        may_start = not told.is_active and len(versions) > 1
        return {
            self.said: gr.update(value="", visible=False),
            self.found: drawn(shadow_view(told, visit.say) if told.started or may_start else None),
            self.share: gr.update(choices=self._shares(visit.say), visible=may_start),
            self.start: gr.update(visible=may_start),
            self.stop: gr.update(visible=told.is_active),
        }
