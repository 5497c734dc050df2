"""A release carried to another home and back, on the Releases tab: export to a file, import from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from app.home.package import SUFFIX
from app.jobs.intake import receive_stream
from app.server.packages import checked_sha256, packed, require_package
from app.server.serving import OWN_ERRORS, Serving
from app.ui import update_words
from app.ui.access import Access
from app.ui.wording import escaped, refusal
from app.ui.words import ENGLISH, Words, words_of
from app.words.messages import size
from ingest.records import FINAL_STATES, JobRecord
from ingest.sentence import phrase

_POLL_SECONDS = 1.0
_INTRO = phrase(
    "One file of weights and a manifest. The other home embeds its own pictures; nothing is live there before somebody "
    "promotes it. Tell its checksum by another way: it proves that the file is the one that was sent."
)
Outputs = tuple[Any, ...]


class Travelling:
    """The components, and what happens on them."""

    def __init__(self, serving: Serving, access: Access) -> None:
        """Draws them; call where they are to stand."""
        self.serving = serving
        self.access = access
        self.job = gr.State("")
        self.timer = gr.Timer(_POLL_SECONDS, active=False)
        with gr.Accordion("Carry a release to another home, or take one in", open=False):
            gr.Markdown(_INTRO)
            with gr.Row(elem_classes="beside"):
                self.export = gr.Button("Export selected", interactive=False, elem_id="export")
                self.fetch = gr.Button("Download it", visible=False, elem_id="fetch-export")
            self.exported = gr.Markdown("", elem_classes="status", elem_id="exported", latex_delimiters=[])
            with gr.Row():
                self.file = gr.File(
                    label="An exported release", file_types=[SUFFIX], height=140, elem_id="package"
                )
                self.sha256 = gr.Textbox(
                    label="Its checksum, as the sender told it",
                    placeholder="64 letters; without it the file is trusted to be what it says",
                    max_length=80,
                    elem_id="package-sha256",
                )
            self.take = gr.Button("Take it in", elem_id="take-package")
            self.taken = gr.Markdown("", elem_classes="status", elem_id="package-said", latex_delimiters=[])

    def connect(self, chosen: gr.State, rows: list[Any], shown: Any, private: dict[str, Any]) -> None:
        """Connects the buttons.

        Args:
            chosen: the id of the selected release.
            rows: the components that list the releases.
            shown: returns what they list now, given the words.
            private: how Gradio is to call functions of admins.
        """
        self._rows, self._shown = rows, shown
        running = [self.job, self.timer, self.take, self.taken]
        self.export.click(self._export, [chosen], [self.exported, self.fetch], **private)
        self.take.click(self._take, [self.file, self.sha256], running, **private)
        self.timer.tick(self._watch, [self.job], [*running[1:], *rows], show_progress="hidden", **private)

    def _export(self, release: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        if not release:
            return say("Select a release first."), gr.Button(visible=False)
        try:
            self.access.admin(request)
            made = packed(self.serving.workspace, release)
        except OWN_ERRORS as error:
            return refusal(error, say), gr.Button(visible=False)
        said = say(
            "{release} is packed ({size}). Checksum: `{checksum}`",
            release=escaped(made.release),
            size=size(made.bytes),
            checksum=made.sha256,
        )
        return said, gr.Button(visible=True, link=f"/v1/releases/{made.release}/package")

    def _take(self, file: str | None, sha256: str, request: gr.Request) -> Outputs:
        say = words_of(request)
        if not file:
            return "", gr.Timer(active=False), gr.skip(), say("Choose a file first.")
        try:
            account, name = self.access.admin(request), Path(file).name
            require_package(name)
            checked = checked_sha256(sha256)
            with Path(file).open("rb") as upload:
                received = receive_stream(upload, name, self.serving.workspace.home.inbox)
            job = self.serving.work.take_release(received, name=name, sha256=checked, by=account.name)
        except OWN_ERRORS as error:
            return "", gr.Timer(active=False), gr.skip(), refusal(error, say)
        said = update_words.progress_view(job.state, job.progress, say)
        return job.id, gr.Timer(active=True), gr.Button(interactive=False), said

    def _watch(self, job_id: str, request: gr.Request) -> Outputs:
        kept = [gr.skip()] * len(self._rows)
        over, say = (gr.Timer(active=False), gr.Button(interactive=True)), words_of(request)
        try:
            self.access.admin(request)
            job = self.serving.workspace.catalog.job(job_id)
        except OWN_ERRORS as error:
            return *over, refusal(error, say), *kept
        if job.state not in FINAL_STATES and job.state != "interrupted":
            said = update_words.progress_view(job.state, job.progress, say)
            return gr.skip(), gr.skip(), said, *kept
        if job.state != "succeeded":
            return *over, refusal(job.error or job.state, say), *kept
        return *over, came_line(job, say), *self._shown(say)


def came_line(job: JobRecord, say: Words = ENGLISH) -> str:
    """Says what an import brought, and how sure it is to be what was sent."""
    came = job.result
    proof = (
        phrase("Its checksum is right.")
        if came["verified"]
        else phrase("Nobody gave a checksum; its parts are as its manifest says.")
    )
    return say(
        "{origin} is here as **{release}**, not live; {count} pictures were embedded. {proof}",
        origin=escaped(came["origin"]),
        release=escaped(came["release"]),
        count=came["images_embedded"],
        proof=proof,
    )
