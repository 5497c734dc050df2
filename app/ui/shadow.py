"""The shadow of a release on the Releases tab: what it has shown, and the buttons that begin and end it."""

from __future__ import annotations

from typing import Any

import gradio as gr

from app.feedback import shadow
from app.server.serving import OWN_ERRORS, Serving
from app.ui.access import Access
from app.ui.drawn import drawing, drawn
from app.ui.shadow_plot import shadow_view
from app.ui.wording import refusal
from app.ui.words import ENGLISH, Words, words_of
from ingest.sentence import phrase

_SHARES = {1.0: phrase("every one"), 0.2: phrase("one in five"), 0.05: phrase("one in twenty")}
Outputs = tuple[Any, ...]


class ShadowPart:
    """A share, two buttons, and a table of what the chosen release has shown."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.serving = serving
        self.access = access
        self.said = gr.Markdown("", elem_id="shadow-said", elem_classes="status", latex_delimiters=[])
        self.found = drawing("release-shadow", "tables")
        with gr.Row(elem_classes="beside"):
            self.share = gr.Dropdown(
                self._shares(),
                value=serving.settings.shadow_share,
                label="Of the live queries",
                scale=2,
                min_width=160,
                elem_id="shadow-share",
            )
            self.start = gr.Button("Ask it in the shadow", scale=2, elem_id="shadow-start")
            self.stop = gr.Button("Stop asking it", scale=2, visible=False, elem_id="shadow-stop")

    @property
    def components(self) -> list[Any]:
        """What `shown` fills, in its order."""
        return [self.said, self.found, self.share, self.start, self.stop]

    def connect(self, chosen: gr.State, why: gr.Textbox, private: dict[str, Any]) -> tuple[Any, Any]:
        """Connects the buttons; returns the two events, for what is to follow.

        Args:
            chosen: the release that is looked at.
            why: what a person says.
            private: how Gradio is to call functions of admins.
        """
        return (
            self.start.click(self._start, [chosen, self.share], self.components, **private),
            self.stop.click(self._stop, [chosen, why], self.components, **private),
        )

    def _shares(self, say: Words = ENGLISH) -> list[tuple[str, float]]:
        own = self.serving.settings.shadow_share
        shares = {own: f"{100 * own:g} %"} | _SHARES
        return [(say.said(words), share) for share, words in sorted(shares.items(), reverse=True)]

    def shown(self, release: str, say: Words) -> Outputs:
        """Returns what the components show of a release."""
        told = self.serving.shadowing.report(release)
        may_start = not told.is_active and not self._is_live(release)
        return (
            gr.Markdown("", visible=False),
            drawn(shadow_view(told, say) if told.started or may_start else None),
            gr.Dropdown(choices=self._shares(say), visible=may_start),
            gr.Button(visible=may_start),
            gr.Button(visible=told.is_active),
        )

    def _is_live(self, release: str) -> bool:
        live, releases = self.serving.live_id(), self.serving.workspace.releases
        return live is not None and releases.release(live).version == releases.release(release).version

    def _start(self, release: str, share: float, request: gr.Request) -> Outputs:
        try:
            account = self.access.admin(request)
            shadow.start(self.serving.workspace, release, share=share, by=account.name)
            return self.shown(release, words_of(request))
        except OWN_ERRORS as error:
            return _refused(error, words_of(request))

    def _stop(self, release: str, why: str, request: gr.Request) -> Outputs:
        try:
            account = self.access.admin(request)
            shadow.stop(self.serving.workspace, release, by=account.name, why=why)
            return self.shown(release, words_of(request))
        except OWN_ERRORS as error:
            return _refused(error, words_of(request))


def _refused(error: Exception, say: Words) -> Outputs:
    return gr.Markdown(refusal(error, say), visible=True), *([gr.skip()] * 4)
